package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// How far the end of an emphasis is looked for, in bytes, and how deep one may lie
// in another.
const (
	maxReach = 2000
	maxDepth = 6
)

// inline finds emphasis, code and links in a line.
func inline(text string, st style) []piece {
	p := parser{}
	p.parse(text, st, 0)
	return p.out
}

type parser struct{ out []piece }

func (p *parser) add(text string, st style, link string) {
	if text == "" {
		return
	}
	if n := len(p.out); n > 0 && p.out[n-1].style == st && p.out[n-1].link == link {
		p.out[n-1].text += text
		return
	}
	p.out = append(p.out, piece{text, st, link})
}

func (p *parser) parse(text string, st style, depth int) {
	plain := 0 // where the text begins that is not added yet
	for i := 0; i < len(text); {
		n := 0
		if depth < maxDepth && strings.IndexByte("\\`*_~[<h!", text[i]) >= 0 {
			p.add(text[plain:i], st, "")
			plain = i
			n = p.special(text, i, st, depth)
		}
		if n > 0 {
			i += n
			plain = i
			continue
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	p.add(text[plain:], st, "")
}

// special adds what begins at i, if it is more than text, and returns its length.
func (p *parser) special(text string, i int, st style, depth int) int {
	rest := text[i:]
	switch rest[0] {
	case '\\':
		if len(rest) > 1 && strings.IndexByte("\\`*_~[]<>#!|()+-.{}", rest[1]) >= 0 {
			p.add(rest[1:2], st, "")
			return 2
		}
	case '`':
		return p.codeSpan(rest, st)
	case '*', '_', '~':
		return p.emphasis(text, i, st, depth)
	case '!':
		if strings.HasPrefix(rest, "![") {
			if n := p.link(rest[1:], st, depth); n > 0 {
				return n + 1
			}
		}
	case '[':
		return p.link(rest, st, depth)
	case '<':
		if end := strings.IndexByte(reach(rest), '>'); end > 0 && isURL(rest[1:end]) {
			p.add(rest[1:end], st.with(linkStyle), rest[1:end])
			return end + 1
		}
	case 'h':
		if n := urlLen(rest); n > 0 && !wordBefore(text, i) {
			p.add(rest[:n], st.with(linkStyle), rest[:n])
			return n
		}
	}
	return 0
}

func (p *parser) codeSpan(rest string, st style) int {
	n := run(rest)
	for at := n; at < len(rest); {
		i := strings.IndexByte(rest[at:], '`')
		if i < 0 || at+i > maxReach {
			break
		}
		at += i
		m := run(rest[at:])
		if m == n {
			code := rest[n:at]
			if len(code) > 2 && code[0] == ' ' && code[len(code)-1] == ' ' && strings.TrimSpace(code) != "" {
				code = code[1 : len(code)-1]
			}
			p.add(code, st.with(codeStyle), "")
			return at + n
		}
		at += m
	}
	p.add(rest[:n], st, "") // no code: as it stands
	return n
}

// emphasis is *this*, **this**, ***this***, the same with _, and ~~this~~.
func (p *parser) emphasis(text string, i int, st style, depth int) int {
	rest := text[i:]
	c, n := rest[0], run(rest)
	as := style(0)
	switch {
	case c == '~' && n == 2:
		as = strike
	case c == '~' || n > 3:
	case n == 1:
		as = italic
	case n == 2:
		as = bold
	default:
		as = bold | italic
	}
	if as != 0 && len(rest) > n && rest[n] != ' ' && !(c == '_' && wordBefore(text, i)) {
		if end := closing(rest, c, n); end > 0 {
			p.parse(rest[n:end], st.with(as), depth+1)
			return end + n
		}
	}
	p.add(rest[:n], st, "")
	return n
}

// closing finds the run of n characters c that ends what rest begins with.
func closing(rest string, c byte, n int) int {
	near := reach(rest)
	inCode := false
	for at := n; at < len(near); {
		i := strings.IndexByte(near[at:], c)
		if i < 0 {
			return 0
		}
		if strings.Count(near[at:at+i], "`")%2 == 1 {
			inCode = !inCode
		}
		at += i
		m := run(rest[at:])
		after, _ := utf8.DecodeRuneInString(rest[at+m:])
		word := c == '_' && (unicode.IsLetter(after) || unicode.IsDigit(after))
		fits := m == n || m == 3 // the end of one within the other as well
		if fits && rest[at-1] != ' ' && !word && !inCode {
			return at + m - n
		}
		at += m
	}
	return 0
}

// link is [text](address), shown as the text, which leads there, and the address.
func (p *parser) link(rest string, st style, depth int) int {
	near := reach(rest)
	end := strings.Index(near, "](")
	if end < 1 || strings.ContainsRune(near[1:end], '[') {
		return 0
	}
	length := strings.IndexByte(near[end+2:], ')')
	if length < 1 {
		return 0
	}
	target := near[end+2 : end+2+length]
	if strings.ContainsRune(target, '(') { // an address with brackets of its own
		if more := strings.IndexByte(near[end+3+length:], ')'); more >= 0 && !strings.ContainsRune(near[end+3+length:end+3+length+more], ' ') {
			length += more + 1
			target = near[end+2 : end+2+length]
		}
	}
	address, _, _ := strings.Cut(target, " ")
	to := ""
	if isURL(address) {
		to = address
	}
	label := near[1:end]
	inner := parser{}
	inner.parse(label, st.with(linkStyle), depth+1)
	for _, q := range inner.out {
		p.add(q.text, q.style, to)
	}
	if label != target {
		p.add(" ("+target+")", st.with(faint), "")
	}
	return end + 3 + length
}

// reach is as much of a text as the end of something is looked for in.
func reach(text string) string {
	if len(text) > maxReach {
		return text[:maxReach]
	}
	return text
}

// run is how often the first byte is repeated at the front.
func run(text string) int {
	n := 0
	for n < len(text) && text[n] == text[0] {
		n++
	}
	return n
}

func wordBefore(text string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func isURL(text string) bool {
	return (strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")) && !strings.ContainsAny(text, " \t<>\"")
}

// urlLen is the length of the address that a text begins with.
func urlLen(text string) int {
	if !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
		return 0
	}
	end := strings.IndexAny(text, " \t<>\"`|")
	if end < 0 {
		end = len(text)
	}
	url := strings.TrimRight(text[:end], ".,;:!?*_~'")
	for strings.HasSuffix(url, ")") && strings.Count(url, "(") < strings.Count(url, ")") {
		url = strings.TrimRight(url[:len(url)-1], ".,;:!?*_~'")
	}
	if strings.HasSuffix(url, "/") && strings.Count(url, "/") == 2 {
		return 0
	}
	return len(url)
}
