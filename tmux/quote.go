package tmux

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	ident "muntin/internal/id"
	"muntin/tmux/control"
)

// wordChars are what names and variables are made of.
const wordChars = ident.Lower + ident.Upper + ident.Digits + "_"

// CheckName returns an error that names what the name is for unless name is
// 1 to 40 of A-Z, a-z, 0-9, '_' and '-' and does not begin with '-'. tmux
// rewrites or refuses ':' and '.' depending on its version; other words for
// people belong in a title or in metadata.
func CheckName(what, name string) error {
	if ident.Word(name, wordChars, wordChars+"-", 40) {
		return nil
	}
	return fmt.Errorf("tmux %s name %q: want 1 to 40 letters, digits, '_' or '-', not '-' first", what, name)
}

// Escape makes text literal in a tmux format: '#' is doubled, so that neither
// #(command), #{variable} nor #[style] is seen in it. Control characters and
// bytes that are not UTF-8 are dropped.
//
// Where tmux draws the result (status line, borders) it shows the text as it
// was. Where tmux only stores it (a title), "#[" is stored as "##[".
func Escape(s string) string {
	return strings.ReplaceAll(plain(s), "#", "##")
}

// EscapeTime is Escape for formats that also go through strftime(3), which are
// the status line's options and display-message: '%' is doubled too.
func EscapeTime(s string) string {
	return strings.ReplaceAll(Escape(s), "%", "%%")
}

// plain drops control characters and what is not UTF-8.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// escapePath makes a path, or a command, literal in a format and keeps every byte. A run of
// '#' before '[' is a style to tmux, which copies the whole run as it is.
func escapePath(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); {
		n := 0
		for i+n < len(path) && path[i+n] == '#' {
			n++
		}
		switch {
		case n == 0:
			b.WriteByte(path[i])
			i++
			continue
		case i+n < len(path) && path[i+n] == '[':
			b.WriteString(path[i : i+n])
		default:
			b.WriteString(strings.Repeat("##", n))
		}
		i += n
	}
	return b.String()
}

// A Cmd is one tmux command: its full name and its arguments, each taken
// literally. Options must come before "--" and free text after it.
type Cmd = control.Cmd

// line writes commands as one list in tmux's own syntax: an error in one
// drops the rest.
func line(cmds ...Cmd) (string, error) { return control.Line(cmds...) }

// unquote reads what the format #{q:…} printed. tmux puts a backslash before
// the shell's special characters; 3.4 to 3.6 then write control characters and
// bytes that are not UTF-8 in the style of vis(3), "\001", and 3.4 one more
// backslash before a '$' that looks like a variable.
func unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], `\`))
		switch {
		case n == 0:
			b.WriteByte(s[i])
			i++
		case i+n < len(s) && s[i+n] == '$':
			b.WriteString(strings.Repeat(`\`, (n-1)/2) + "$")
			i += n + 1
		case i+1 == len(s):
			b.WriteByte(s[i])
			i++
		default:
			c, width := unvis(s[i+1:])
			b.WriteByte(c)
			i += 1 + width
		}
	}
	return b.String()
}

// unvis reads what follows a backslash: three octal digits, a letter of C, or
// the character itself.
func unvis(s string) (c byte, width int) {
	if len(s) >= 3 && ident.Word(s[:3], "0123", "01234567", 3) {
		return (s[0]-'0')<<6 | (s[1]-'0')<<3 | (s[2] - '0'), 3
	}
	if at := strings.IndexByte("abtnvfr", s[0]); at >= 0 {
		return byte('\a' + at), 1
	}
	return s[0], 1
}
