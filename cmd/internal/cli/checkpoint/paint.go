package checkpoint

import (
	"bytes"
	"io"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

// newPainter is a writer that colours the lines of a unified diff for a
// terminal, and leaves them alone where there is none.
func newPainter(a *app.App) io.Writer {
	if !a.Streams.OutTTY {
		return a.Streams.Out
	}
	return &painter{out: a.Streams.Out, theme: a.Theme}
}

type painter struct {
	out   io.Writer
	theme term.Theme
	rest  []byte // a line that has not ended yet
}

func (p *painter) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.rest = rest
		if _, err := io.WriteString(p.out, p.paint(term.Clean(string(line)))+"\n"); err != nil {
			return 0, err
		}
	}
}

func (p *painter) paint(line string) string {
	switch {
	case hasAny(line, "diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode"):
		return term.Paint(p.theme.Strong, line)
	case hasAny(line, "@@"):
		return term.Paint(p.theme.Command, line)
	case hasAny(line, "+"):
		return term.Paint(p.theme.Good, line)
	case hasAny(line, "-"):
		return term.Paint(p.theme.Bad, line)
	}
	return line
}

func hasAny(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if len(s) >= len(p) && s[:len(p)] == p {
			return true
		}
	}
	return false
}
