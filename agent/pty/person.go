package pty

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// Why nothing is typed now.
var (
	errTyping = errors.New("a person is typing in the pane")
	errDraft  = errors.New("a person's text stands in the pane, not sent yet")
)

// A draft counts what a person has typed and not yet sent, from the keys that
// go through: an estimate, since only the program knows what it made of them.
// It is empty again with Enter, Ctrl-C and Ctrl-U, or when all was deleted.
// One goroutine feeds it.
type draft struct {
	n     int
	paste bool // in a bracketed paste
	shell bool // a line feed sends too
}

// feed takes a person's keys.
func (d *draft) feed(b []byte) {
	for len(b) > 0 {
		n := d.key(b)
		b = b[n:]
	}
}

// key takes the key at the start of b and returns its length.
func (d *draft) key(b []byte) int {
	if d.paste {
		end := bytes.Index(b, []byte(pasteEnd))
		if end < 0 {
			d.n += len(b)
			return len(b)
		}
		d.n += end
		d.paste = false
		return end + len(pasteEnd)
	}
	switch c := b[0]; {
	case c == 0x1b:
		return d.escape(b)
	case c == '\r', c == 0x03, c == 0x15, c == '\n' && d.shell: // Enter, Ctrl-C, Ctrl-U
		d.n = 0
	case c == 0x7f || c == 0x08:
		d.n = max(d.n-1, 0)
	case c == '\n' || c == '\t' && d.n > 0:
		d.n++
	case c >= 0x20:
		_, size := utf8.DecodeRune(b)
		d.n++
		return size
	}
	return 1
}

// escape takes an escape sequence. An arrow up may have brought an earlier text
// back.
func (d *draft) escape(b []byte) int {
	if bytes.HasPrefix(b, []byte(pasteStart)) {
		d.paste = true
		return len(pasteStart)
	}
	if n := report(b); n > 0 {
		return n
	}
	if len(b) < 3 || b[1] != '[' && b[1] != 'O' {
		return min(len(b), 2) // Escape, or Alt with a key
	}
	end := 2
	for end < len(b)-1 && (b[end] < 0x40 || b[end] > 0x7e) {
		end++
	}
	switch seq := string(b[2 : end+1]); seq {
	case "A":
		d.n++
	case "13u", "99;5u", "117;5u": // Enter, Ctrl-C, Ctrl-U of the kitty protocol
		d.n = 0
	case "127u":
		d.n = max(d.n-1, 0)
	default:
		if b[end] == 'u' && bytes.IndexByte(b[2:end], ';') < 0 {
			d.n++ // another key of that protocol
		}
	}
	return end + 1
}

// kittyKeys are the keys as a program wants them that has these flags of the
// kitty keyboard protocol on: with 1 Escape and Ctrl with a letter are
// sequences, with 8 every key is.
func kittyKeys(keys []byte, flags int32) []byte {
	const disambiguate, all = 1, 8
	if len(keys) != 1 || flags&(disambiguate|all) == 0 {
		return keys
	}
	switch c := keys[0]; {
	case c == 0x1b:
		return []byte("\x1b[27u")
	case c == 0x03:
		return []byte("\x1b[99;5u")
	case c == '\r' && flags&all != 0:
		return []byte("\x1b[13u")
	}
	return keys
}
