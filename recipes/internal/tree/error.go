package tree

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxShown is how many problems an Error's text has; the rest is counted.
const maxShown = 20

// A Problem is one mistake in a file. Line and Col count from 1, Col in
// characters; a Line of 0 is about the whole of what File names.
type Problem struct {
	File   string // its path, or what else the text is called
	Line   int
	Col    int
	Text   string
	Source string // the line it is in, without its end
}

// An Error is all that is wrong with a text and those it builds on, sorted by
// place. Commands exit with code 2 on it.
type Error struct {
	Problems []Problem
}

// Error has, for each problem, "file:line:col: text" and the source line with
// a pointer to the place.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == maxShown {
			fmt.Fprintf(&b, "\nand %d more", len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		if p.Line == 0 {
			fmt.Fprintf(&b, "%s: %s", p.File, p.Text)
			continue
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", p.File, p.Line, p.Col, p.Text)
		b.WriteString(p.pointer())
	}
	return b.String()
}

// pointer shows the source line with a caret below the place. Long lines are
// cut around it; control characters become spaces.
func (p Problem) pointer() string {
	const before, width = 40, 100
	line := []rune(p.Source)
	col := min(max(p.Col-1, 0), len(line))
	if len(line) == 0 {
		return ""
	}
	start := 0
	if len(line) > width {
		start = max(0, col-before)
		line = line[start:min(len(line), start+width)]
	}
	for i, r := range line {
		if !unicode.IsPrint(r) {
			line[i] = ' '
		}
	}
	number := fmt.Sprintf("%6d | ", p.Line)
	return "\n" + number + strings.TrimRight(string(line), " ") +
		"\n" + strings.Repeat(" ", len(number)-2) + "| " + strings.Repeat(" ", col-start) + "^"
}

// A Source is a text that places are in.
type Source struct {
	Name  string
	lines []string
}

// NewSource is the text src under a name for errors: its path, or what else it
// is called.
func NewSource(name string, src []byte) *Source {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(src)) // as YAML has it
	return &Source{Name: name, lines: strings.Split(text, "\n")}
}

// A Place is where a value stands. Both numbers count from 1. Without a Source
// the value came from elsewhere.
type Place struct {
	Source    *Source
	Line, Col int
}

// Problems collects mistakes. The zero value is ready to use.
type Problems struct {
	found []Problem
}

// Add notes a mistake at a place.
func (p *Problems) Add(at Place, format string, args ...any) {
	one := Problem{Line: max(at.Line, 1), Col: max(at.Col, 1), Text: fmt.Sprintf(format, args...)}
	if at.Source != nil {
		one.File = at.Source.Name
		one.Line = min(one.Line, max(len(at.Source.lines), 1))
		if one.Line <= len(at.Source.lines) {
			one.Source = at.Source.lines[one.Line-1]
		}
	}
	p.found = append(p.found, one)
}

// AddAbout notes a mistake that stands in no text, such as one of an option.
func (p *Problems) AddAbout(what, format string, args ...any) {
	p.found = append(p.found, Problem{File: what, Text: fmt.Sprintf(format, args...)})
}

// Reported tells whether a mistake at this place is known already.
func (p *Problems) Reported(at Place) bool {
	return at.Source != nil && slices.ContainsFunc(p.found, func(one Problem) bool {
		return one.Line == at.Line && one.Col == at.Col && one.File == at.Source.Name
	})
}

// Any tells whether there was a mistake.
func (p *Problems) Any() bool { return len(p.found) > 0 }

// Err is the Error, or nil if there was no mistake. Files come in the order in
// which the first mistake of each was found.
func (p *Problems) Err() error {
	if len(p.found) == 0 {
		return nil
	}
	var files []string
	for _, one := range p.found {
		if !slices.Contains(files, one.File) {
			files = append(files, one.File)
		}
	}
	slices.SortStableFunc(p.found, func(a, b Problem) int {
		if a.File != b.File {
			return slices.Index(files, a.File) - slices.Index(files, b.File)
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	return &Error{Problems: p.found}
}
