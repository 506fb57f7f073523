package ignore

import "strings"

// This file follows git's wildmatch.c step by step, with its quirks (a bad
// class name fails the whole match, "**" counts only beside slashes), since
// the answers must agree.

type result int

const (
	match result = iota
	noMatch
	abortAll        // no match, and no longer text will help an outer "*"
	abortToStarStar // no match unless a "**" further out can cross the slash
)

type flags struct {
	fold     bool // ASCII case does not count
	pathname bool // "*" and "?" do not match a slash
}

// lower makes c ready to be compared.
func (f flags) lower(c byte) byte {
	if f.fold {
		return lower(c)
	}
	return c
}

// at returns s[i], or 0 behind its end: patterns and paths hold no NUL.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func wildmatch(p, text string, f flags) result {
	i, j := 0, 0
	for ; i < len(p); i, j = i+1, j+1 {
		pc, tc := p[i], at(text, j)
		if tc == 0 && pc != '*' {
			return abortAll
		}
		pc, tc = f.lower(pc), f.lower(tc)
		switch pc {
		case '?':
			if f.pathname && tc == '/' {
				return noMatch
			}
		case '*':
			next, skip, res := star(p, i, text[j:], f)
			if next < 0 {
				return res
			}
			i, j = next, j+skip
		case '[':
			end, ok := class(p, i, tc, f)
			if end < 0 {
				return abortAll
			}
			if !ok || f.pathname && tc == '/' {
				return noMatch
			}
			i = end
		case '\\':
			i++
			if tc != at(p, i) {
				return noMatch
			}
		default:
			if tc != pc {
				return noMatch
			}
		}
	}
	if j < len(text) {
		return noMatch
	}
	return match
}

// star matches the run of stars at p[i] and, except for "*/", all that
// follows. For "*/" it returns the slash's place in p and how much text lies
// before the slash there; else next is -1 and the result is final.
func star(p string, i int, text string, f flags) (next, skip int, res result) {
	cross := !f.pathname
	before := i - 1
	i++
	if at(p, i) == '*' {
		for at(p, i) == '*' {
			i++
		}
		beside := before < 0 || p[before] == '/'
		if f.pathname && beside && (i >= len(p) || p[i] == '/' || p[i] == '\\' && at(p, i+1) == '/') {
			if at(p, i) == '/' && wildmatch(p[i+1:], text, f) == match {
				return -1, 0, match
			}
			cross = true
		}
	}
	if i >= len(p) {
		if !cross && strings.Contains(text, "/") {
			return -1, 0, noMatch
		}
		return -1, 0, match
	}
	if !cross && p[i] == '/' {
		slash := strings.IndexByte(text, '/')
		if slash < 0 {
			return -1, 0, noMatch
		}
		return i, slash, match
	}
	return -1, 0, starRest(p[i:], text, cross, f)
}

// starRest tries rest at each place of text that the star may reach.
func starRest(rest, text string, cross bool, f flags) result {
	literal := !strings.ContainsRune(`*?[\`, rune(rest[0]))
	for j := 0; j < len(text); j++ {
		if literal {
			want := f.lower(rest[0])
			for j < len(text) && (cross || text[j] != '/') && f.lower(text[j]) != want {
				j++
			}
			if j == len(text) || f.lower(text[j]) != want {
				return noMatch
			}
		}
		if res := wildmatch(rest, text[j:], f); res != noMatch {
			if !cross || res != abortToStarStar {
				return res
			}
		} else if !cross && text[j] == '/' {
			return abortToStarStar
		}
	}
	return abortAll
}

// class matches c against the bracket expression at p[i]. It returns the
// place of its closing bracket, or -1 if the expression is broken.
func class(p string, i int, c byte, f flags) (end int, ok bool) {
	i++
	negated := at(p, i) == '!' || at(p, i) == '^'
	if negated {
		i++
	}
	matched := false
	var prev byte
	for first := true; first || at(p, i) != ']'; first = false {
		pc := at(p, i)
		switch {
		case pc == 0:
			return -1, false
		case pc == '\\':
			if pc, i = member(p, i); pc == 0 {
				return -1, false
			}
			matched = matched || c == pc
		case pc == '-' && prev != 0 && at(p, i+1) != 0 && at(p, i+1) != ']':
			if pc, i = member(p, i+1); pc == 0 {
				return -1, false
			}
			matched = matched || inRange(c, prev, pc, f)
			pc = 0
		case pc == '[' && at(p, i+1) == ':':
			last, found, valid := named(p, i+2, c, f)
			if !valid {
				return -1, false
			}
			if last < 0 { // no ":]": an ordinary bracket in the set
				matched = matched || c == '['
				break
			}
			i, pc, matched = last, 0, matched || found
		default:
			matched = matched || c == pc
		}
		prev = pc
		i++
	}
	return i, matched != negated
}

// member is the byte of a bracket expression at p[i], where a backslash stands
// for the byte behind it, and its place. It is 0 behind the end of p.
func member(p string, i int) (c byte, place int) {
	if at(p, i) == '\\' {
		i++
	}
	return at(p, i), i
}

func inRange(c, from, to byte, f flags) bool {
	if from <= c && c <= to {
		return true
	}
	if f.fold && 'a' <= c && c <= 'z' {
		up := c - 'a' + 'A'
		return from <= up && up <= to
	}
	return false
}

// named matches c against a class such as "[:alpha:]" whose name starts at
// p[i]. last is the place of its closing bracket, -1 if it does not end in
// ":]". valid is false for a name that git does not know, and for no bracket.
func named(p string, i int, c byte, f flags) (last int, found, valid bool) {
	n := strings.IndexByte(p[min(i, len(p)):], ']')
	if n < 0 {
		return -1, false, false
	}
	last = i + n
	if n < 1 || p[last-1] != ':' {
		return -1, false, true
	}
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	digit := '0' <= c && c <= '9'
	graph := 0x20 < c && c < 0x7f
	switch p[i : last-1] {
	case "alnum":
		found = letter || digit
	case "alpha":
		found = letter
	case "blank":
		found = c == ' ' || c == '\t'
	case "cntrl":
		found = c < 0x20 || c == 0x7f
	case "digit":
		found = digit
	case "graph":
		found = graph
	case "lower":
		found = 'a' <= c && c <= 'z'
	case "print":
		found = graph || c == ' '
	case "punct":
		found = graph && !letter && !digit
	case "space":
		found = c == ' ' || '\t' <= c && c <= '\r'
	case "upper":
		found = 'A' <= c && c <= 'Z' || f.fold && 'a' <= c && c <= 'z'
	case "xdigit":
		found = digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	default:
		return -1, false, false
	}
	return last, found, true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
