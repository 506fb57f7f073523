package recipes

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxShown is how many problems an Error's text has; the rest is counted.
const maxShown = 20

// A Problem is one mistake in a recipe. Line and Col count from 1, Col in characters.
type Problem struct {
	Line   int
	Col    int
	Text   string
	Source string // the line it is in, without its end
}

// An Error is all that is wrong with a recipe, sorted by place. Commands exit
// with code 2 on it.
type Error struct {
	Name     string // the file, or the name of a built-in recipe
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
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.Name, p.Line, p.Col, p.Text)
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

// problems collects mistakes and knows the source they are in.
type problems struct {
	lines []string
	found []Problem
}

func newProblems(src []byte) *problems {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(src)) // as YAML has it
	return &problems{lines: strings.Split(text, "\n")}
}

func (p *problems) add(line, col int, format string, args ...any) {
	line, col = min(max(line, 1), max(len(p.lines), 1)), max(col, 1)
	source := ""
	if line <= len(p.lines) {
		source = p.lines[line-1]
	}
	p.found = append(p.found, Problem{Line: line, Col: col, Text: fmt.Sprintf(format, args...), Source: source})
}

// err is the Error, or nil if there was no mistake.
func (p *problems) err(name string) error {
	if len(p.found) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	return &Error{Name: name, Problems: p.found}
}
