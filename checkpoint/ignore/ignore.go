// Package ignore answers which paths git ignores, as `git check-ignore` does:
// pattern lists, one scope a folder, evaluated top-down so that an ignored
// folder needs no look inside.
//
// The rules are those of gitignore(5) and of git's dir.c. The package reads no
// files: the caller hands in the content of each list.
package ignore

import (
	"bytes"
	"strings"
)

// A Verdict is what the lists say about one path.
type Verdict int

// The verdicts. Undecided means that no pattern matched, so git does not ignore the path.
const (
	Undecided Verdict = iota
	Ignored
	Included // a negated pattern ("!name") matched
)

// A List holds the patterns of one file, in its order.
type List struct {
	patterns []pattern
	fold     bool
}

type pattern struct {
	text     string
	literal  int // length of the part before the first special character
	negated  bool
	dirOnly  bool
	anyDepth bool // no slash: matches the name alone
	suffix   bool // "*literal"
}

// Parse reads the content of a .gitignore, an info/exclude or a
// core.excludesFile. With fold, letters match without regard to ASCII case
// (core.ignoreCase). Any content is accepted, as git does.
func Parse(content []byte, fold bool) *List {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	l := &List{fold: fold}
	for len(content) > 0 {
		line := content
		if i := bytes.IndexByte(content, '\n'); i >= 0 {
			line, content = content[:i], content[i+1:]
			line = bytes.TrimSuffix(line, []byte("\r"))
		} else {
			content = nil
		}
		if p, ok := parseLine(line); ok {
			l.patterns = append(l.patterns, p)
		}
	}
	return l
}

// Empty tells that the list has no pattern, so it need not be asked.
func (l *List) Empty() bool { return l == nil || len(l.patterns) == 0 }

func parseLine(line []byte) (pattern, bool) {
	if i := bytes.IndexByte(line, 0); i >= 0 {
		line = line[:i] // git's patterns are C strings
	}
	if len(line) == 0 || line[0] == '#' {
		return pattern{}, false
	}
	var p pattern
	text := string(trimSpaces(line))
	if strings.HasPrefix(text, "!") {
		p.negated = true
		text = text[1:]
	}
	whole := text
	if strings.HasSuffix(text, "/") {
		p.dirOnly = true
		text = text[:len(text)-1]
	}
	p.anyDepth = !strings.Contains(text, "/")
	p.literal = min(literalLen(whole), len(text))
	p.suffix = strings.HasPrefix(whole, "*") && literalLen(whole[1:]) == len(whole)-1
	p.text = text
	return p, true
}

// trimSpaces takes trailing spaces away unless a backslash protects them.
func trimSpaces(line []byte) []byte {
	end := -1
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			if end < 0 {
				end = i
			}
		case '\\':
			i++
			if i == len(line) {
				return line
			}
			end = -1
		default:
			end = -1
		}
	}
	if end >= 0 {
		return line[:end]
	}
	return line
}

func literalLen(s string) int {
	if i := strings.IndexAny(s, `*?[\`); i >= 0 {
		return i
	}
	return len(s)
}

// A Scope is the chain of lists that decide about the entries of one folder.
type Scope struct {
	parent *Scope
	base   string // the folder of the list, "" for the root, without a slash at its end
	list   *List
}

// Root makes the scope above the worktree's root from the lists outside it,
// weakest first: core.excludesFile, then info/exclude.
func Root(lists ...*List) *Scope {
	var s *Scope
	for _, l := range lists {
		if !l.Empty() {
			s = &Scope{parent: s, list: l}
		}
	}
	return s
}

// Enter adds the .gitignore of the folder dir ("" is the root, else a path
// with slashes, relative to the root). It returns the scope for dir's
// entries, s itself if the list has no patterns. A nil s is an empty scope.
func (s *Scope) Enter(dir string, list *List) *Scope {
	if list.Empty() {
		return s
	}
	return &Scope{parent: s, base: dir, list: list}
}

// Match tells what the lists say about path itself (slashes, relative to the
// root). It does not look at path's parents: a caller that walks top-down has
// pruned them, and below an ignored folder everything is ignored.
func (s *Scope) Match(path string, isDir bool) Verdict {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for ; s != nil; s = s.parent {
		for i := len(s.list.patterns) - 1; i >= 0; i-- {
			p := &s.list.patterns[i]
			if p.dirOnly && !isDir || !p.matches(path, name, s) {
				continue
			}
			if p.negated {
				return Included
			}
			return Ignored
		}
	}
	return Undecided
}

func (p *pattern) matches(path, name string, s *Scope) bool {
	fold := s.list.fold
	if p.anyDepth {
		switch {
		case p.literal == len(p.text):
			return equal(p.text, name, fold)
		case p.suffix:
			tail := p.text[1:]
			return len(tail) <= len(name) && equal(tail, name[len(name)-len(tail):], fold)
		}
		return wildmatch(p.text, name, flags{fold: fold}) == match
	}
	text, literal := p.text, p.literal
	if text[0] == '/' {
		text, literal = text[1:], literal-1
	}
	if s.base != "" {
		if len(path) <= len(s.base) || path[len(s.base)] != '/' || !equal(path[:len(s.base)], s.base, fold) {
			return false
		}
		path = path[len(s.base)+1:]
	}
	if literal > 0 {
		if literal > len(path) || !equal(text[:literal], path[:literal], fold) {
			return false
		}
		text, path = text[literal:], path[literal:]
		if text == "" && path == "" {
			return true
		}
	}
	return wildmatch(text, path, flags{fold: fold, pathname: true}) == match
}

// equal compares bytes, with fold without regard to ASCII case.
func equal(a, b string, fold bool) bool {
	if !fold {
		return a == b
	}
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}
