package cast

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// maxLine bounds a line of text; what is longer is cut into several.
const maxLine = 64 << 10

// Text makes lines of what a pane printed, as far as that can be without a
// screen: escape sequences go, and what moves the cursor to another place
// ends a line. A program that draws its whole screen again says its lines again.
// The zero value is at the beginning.
type Text struct {
	line strings.Builder
	rest string // the beginning of a sequence whose end has not come yet
}

// Add takes output and calls fn with each line that ended in it.
func (t *Text) Add(data string, fn func(line string) error) error {
	data = t.rest + data
	t.rest = ""
	for state := byte(0); len(data) > 0; {
		seq, width, n, next := ansi.DecodeSequence(data, state, nil)
		if n <= 0 {
			break
		}
		if n == len(data) && next != 0 && len(data) < maxLine {
			t.rest = data
			return nil
		}
		state, data = next, data[n:]
		switch {
		case width > 0:
			t.line.WriteString(seq)
		case seq == "\t":
			t.line.WriteByte('\t')
		case breaks(seq) || t.line.Len() > maxLine:
			if err := t.Flush(fn); err != nil {
				return err
			}
		case ansi.HasCsiPrefix(seq) && strings.HasSuffix(seq, "C"): // the cursor goes to the right
			t.line.WriteByte(' ')
		}
	}
	return nil
}

// breaks tells whether a sequence ends a line: line feeds, carriage returns, and
// the CSI sequences that move the cursor up, down or to a place (ECMA-48).
func breaks(seq string) bool {
	if seq == "\n" || seq == "\r" || seq == "\x0b" || seq == "\x0c" {
		return true
	}
	return ansi.HasCsiPrefix(seq) && strings.ContainsAny(seq[len(seq)-1:], "ABEFGHfdJ")
}

// Flush calls fn with the line that has not ended, if there is one.
func (t *Text) Flush(fn func(line string) error) error {
	line := strings.TrimRight(t.line.String(), " ")
	t.line.Reset()
	if line == "" {
		return nil
	}
	return fn(line)
}
