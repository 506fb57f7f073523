package tool

import (
	"errors"
	"fmt"
	"strings"

	"muntin/checkpoint/ignore"
)

// maxAlternatives is how many patterns the braces of one glob may stand for.
const maxAlternatives = 256

// A glob picks paths below the folder of a search. Without a slash it looks at
// the name alone, at any depth; with one, at the whole path. The wildcards are
// git's (*, ?, [a-z], **), and braces hold alternatives: "*.{js,ts}".
type glob struct {
	scope *ignore.Scope
	not   bool
}

type globOptions struct {
	fold   bool // letters match without regard to case
	negate bool // "!" before the pattern turns it around
}

func parseGlob(pattern string, o globOptions) (glob, error) {
	var g glob
	if o.negate {
		pattern, g.not = strings.CutPrefix(pattern, "!")
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if strings.Trim(pattern, "/") == "" {
		return glob{}, errors.New("the glob is empty")
	}
	if strings.ContainsAny(pattern, "\x00\n") {
		return glob{}, errors.New("the glob holds a line break or a NUL byte")
	}
	all, err := braces(pattern)
	if err != nil {
		return glob{}, err
	}
	for i, p := range all {
		if strings.Contains(strings.TrimSuffix(p, "/"), "/") && !strings.HasPrefix(p, "/") {
			p = "/" + p
		}
		if strings.HasPrefix(p, "#") || strings.HasPrefix(p, "!") {
			p = `\` + p
		}
		if strings.HasSuffix(p, " ") {
			p = strings.TrimSuffix(p, " ") + `\ `
		}
		all[i] = p
	}
	g.scope = ignore.Root(ignore.Parse([]byte(strings.Join(all, "\n")), o.fold))
	return g, nil
}

func (g glob) match(rel string, isDir bool) bool {
	return (g.scope.Match(rel, isDir) == ignore.Ignored) != g.not
}

// braces writes out the alternatives of a pattern.
func braces(pattern string) ([]string, error) {
	open, shut, commas := outerBraces(pattern)
	if open < 0 {
		return []string{pattern}, nil
	}
	tails, err := braces(pattern[shut+1:])
	if err != nil {
		return nil, err
	}
	var all []string
	from := open + 1
	for _, end := range append(commas, shut) {
		heads, err := braces(pattern[from:end])
		if err != nil {
			return nil, err
		}
		for _, head := range heads {
			for _, tail := range tails {
				all = append(all, pattern[:open]+head+tail)
			}
		}
		if len(all) > maxAlternatives {
			return nil, fmt.Errorf("the glob stands for more than %d patterns", maxAlternatives)
		}
		from = end + 1
	}
	return all, nil
}

// outerBraces finds the first pair of braces and the commas right in it; open is
// below zero when there is none.
func outerBraces(p string) (open, shut int, commas []int) {
	open = -1
	depth, inClass := 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[' && strings.Contains(p[i:], "]"):
			inClass = true
		case c == '{':
			if depth++; depth == 1 {
				open, commas = i, nil
			}
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return -1, 0, nil
}
