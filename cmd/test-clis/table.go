package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// A row is how one CLI did.
type row struct {
	name, version                      string
	ready, accepted, end, approval     string // the evidence
	wrote, second, resumed, checkpoint bool
	usage                              bool
	first                              string   // how the first prompt was handed over
	screen                             []string // what was known by the screen alone
	failed                             string
}

// String is the row for a person who waits.
func (r row) String() string {
	text := strings.Join(r.cells(), " | ")
	if r.failed != "" {
		text += "\n" + r.failed
	}
	return text
}

func (r row) cells() []string {
	return []string{
		r.name, dash(r.version), dash(r.ready), dash(r.accepted), dash(r.end), yes(r.wrote), yes(r.second), dash(r.approval), yes(r.resumed),
		yes(r.checkpoint), yes(r.usage), dash(r.first), dash(strings.Join(r.screen, ", ")),
	}
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

func dash(s string) string {
	if s == "" {
		return "no"
	}
	return s
}

const (
	beginMark = "<!-- begin: written by script/test-clis -->"
	endMark   = "<!-- end -->"
)

// writeTable puts the rows into the document between the marks. Rows of CLIs
// that were not tried stay.
func writeTable(path string, rows []row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(text, []byte(beginMark))
	old, tail, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no table: want the lines %q and %q", path, beginMark, endMark)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(old)) {
		if name, ok := strings.CutPrefix(line, "| "); ok {
			name, _, _ = strings.Cut(name, " |")
			lines[name] = line
		}
	}
	for _, r := range rows {
		lines[r.name] = "| " + strings.Join(append(r.cells(), time.Now().Format(time.DateOnly)), " | ") + " |\n"
	}
	var b strings.Builder
	b.Write(head)
	b.WriteString(beginMark + "\n\n| CLI | version | ready | accepted | turn end | wrote a file | prompt while it works | approval | resumed | checkpoint a turn | usage | first prompt by | by its screen alone | tried |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range products() {
		b.WriteString(lines[p.name])
	}
	b.WriteString("\n" + endMark)
	b.Write(tail)
	return os.WriteFile(path, []byte(b.String()), 0o644) //nolint:gosec // a document
}
