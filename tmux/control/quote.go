package control

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"muntin/internal/id"
)

// A Cmd is one tmux command: its full name and its arguments, each taken
// literally. Options must come before "--" and free text after it.
type Cmd []string

// Line writes commands as one list in tmux's own syntax, without a line feed:
// an error in one drops the rest. A name that is none and an argument with a
// NUL byte, which tmux cannot carry, are errors.
func Line(cmds ...Cmd) (string, error) {
	var b strings.Builder
	for i, c := range cmds {
		if len(c) == 0 || !id.Word(c[0], id.Lower, id.Lower+"-", len(c[0])) {
			return "", fmt.Errorf("tmux command %d: not a command name", i)
		}
		if i > 0 {
			b.WriteString(" ; ")
		}
		b.WriteString(c[0])
		for _, arg := range c[1:] {
			if strings.IndexByte(arg, 0) >= 0 {
				return "", fmt.Errorf("tmux %s: an argument holds a NUL byte", c[0])
			}
			b.WriteByte(' ')
			quoteTo(&b, arg)
		}
	}
	return b.String(), nil
}

// quoteTo writes arg as one double-quoted word of tmux's syntax (tmux(1),
// PARSING SYNTAX): control bytes and bytes that are not UTF-8 in octal, since
// a raw 0xff ends tmux's input; '"', '\', '$' and '~' behind a backslash.
func quoteTo(b *strings.Builder, arg string) {
	b.WriteByte('"')
	for i := 0; i < len(arg); {
		r, n := utf8.DecodeRuneInString(arg[i:])
		switch c := arg[i]; {
		case c < 0x20 || c == 0x7f || r == utf8.RuneError && n == 1:
			fmt.Fprintf(b, `\%03o`, c)
		case strings.IndexByte("\"\\$~", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteString(arg[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
}

// decode undoes, in place, the escapes of %output: '\' and three octal digits
// stand for a byte. Anything else is as it is.
func decode(b []byte) []byte {
	w := 0
	for i := 0; i < len(b); {
		if b[i] == '\\' && i+3 < len(b) && octal(b[i+1], '3') && octal(b[i+2], '7') && octal(b[i+3], '7') {
			b[w] = (b[i+1]-'0')<<6 | (b[i+2]-'0')<<3 | (b[i+3] - '0')
			i += 4
		} else {
			b[w] = b[i]
			i++
		}
		w++
	}
	return b[:w]
}

func octal(c, last byte) bool { return c >= '0' && c <= last }
