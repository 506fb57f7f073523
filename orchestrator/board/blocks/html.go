package blocks

import (
	"bytes"
	"strings"
)

// htmlStart is the number of the condition by which an HTML block starts with s,
// a line without its indentation, or 0 if it starts none:
// https://spec.commonmark.org/0.31.2/#html-blocks.
func htmlStart(s []byte) uint8 {
	if len(s) < 2 {
		return 0
	}
	switch {
	case bytes.HasPrefix(s, []byte("<!--")):
		return 2
	case s[1] == '?':
		return 3
	case bytes.HasPrefix(s, []byte("<![CDATA[")):
		return 5
	case s[1] == '!':
		if len(s) > 2 && isLetter(s[2]) {
			return 4
		}
		return 0
	}
	name, closing, rest := tagName(s)
	if name == "" {
		return 0
	}
	if isRawTag(name) {
		if !closing && (len(rest) == 0 || isSpace(rest[0]) || rest[0] == '>') {
			return 1
		}
		return 0
	}
	if isBlockTag(name) && (len(rest) == 0 || isSpace(rest[0]) || rest[0] == '>' || bytes.HasPrefix(rest, []byte("/>"))) {
		return 6
	}
	if closing && isEnd(bytes.TrimLeft(rest, " \t")) || !closing && isOpenTag(rest) {
		return 7
	}
	return 0
}

// htmlEnds reports whether a block that started by a condition ends with the line
// s. Conditions 6 and 7 end before a blank line instead.
func htmlEnds(s []byte, kind uint8) bool {
	switch kind {
	case 1:
		return endsRawTag(s)
	case 2:
		return bytes.Contains(s, []byte("-->"))
	case 3:
		return bytes.Contains(s, []byte("?>"))
	case 4:
		return bytes.IndexByte(s, '>') >= 0
	case 5:
		return bytes.Contains(s, []byte("]]>"))
	}
	return false
}

// endsRawTag reports whether a closing tag of a raw element is in s.
func endsRawTag(s []byte) bool {
	for {
		i := bytes.Index(s, []byte("</"))
		if i < 0 {
			return false
		}
		if name, _, rest := tagName(s[i:]); isRawTag(name) && len(rest) > 0 && rest[0] == '>' {
			return true
		}
		s = s[i+2:]
	}
}

// maxTagName is longer than every name that means something.
const maxTagName = 10

// tagName reads "<" or "</" and a tag's name, which it returns in lower case. A
// long name is cut short, since it is none of those that are looked for.
func tagName(s []byte) (name string, closing bool, rest []byte) {
	s = s[1:]
	if len(s) > 0 && s[0] == '/' {
		s, closing = s[1:], true
	}
	n := 0
	for n < len(s) && (isLetter(s[n]) || n > 0 && (isDigit(s[n]) || s[n] == '-')) {
		n++
	}
	return strings.ToLower(string(s[:min(n, maxTagName+1)])), closing, s[n:]
}

func isRawTag(name string) bool {
	return name == "pre" || name == "script" || name == "style" || name == "textarea"
}

// isBlockTag reports whether a line that starts with this tag starts an HTML block.
func isBlockTag(name string) bool {
	switch name {
	case "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col", "colgroup",
		"dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame",
		"frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "iframe", "legend", "li", "link",
		"main", "menu", "menuitem", "nav", "noframes", "ol", "optgroup", "option", "p", "param", "search", "section",
		"summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "track", "ul":
		return true
	}
	return false
}

// isOpenTag reports whether s is the rest of an open tag behind its name, and
// white space: https://spec.commonmark.org/0.31.2/#open-tag.
func isOpenTag(s []byte) bool {
	for {
		t := bytes.TrimLeft(s, " \t")
		n := attributeName(t)
		if n == 0 || len(t) == len(s) {
			return isEnd(bytes.TrimPrefix(t, []byte("/")))
		}
		s = t[n:]
		value := bytes.TrimLeft(s, " \t")
		if len(value) == 0 || value[0] != '=' {
			continue
		}
		value = bytes.TrimLeft(value[1:], " \t")
		n = attributeValue(value)
		if n == 0 {
			return false
		}
		s = value[n:]
	}
}

// isEnd reports whether s is the end of a tag, and white space.
func isEnd(s []byte) bool { return len(s) > 0 && s[0] == '>' && isBlank(s[1:]) }

// attributeName is the length of the attribute's name that s starts with.
func attributeName(s []byte) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || s[n] == '_' || s[n] == ':' || n > 0 && (isDigit(s[n]) || s[n] == '.' || s[n] == '-')) {
		n++
	}
	return n
}

// attributeValue is the length of the attribute's value that s starts with, 0 if
// there is none.
func attributeValue(s []byte) int {
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		if n := bytes.IndexByte(s[1:], s[0]); n >= 0 {
			return n + 2
		}
		return 0
	}
	if n := bytes.IndexAny(s, " \t\"'=<>`"); n >= 0 {
		return n
	}
	return len(s)
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
