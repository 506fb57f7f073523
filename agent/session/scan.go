package session

import (
	"bytes"
	"errors"
)

// errSyntax says that a line is no whole JSON object.
var errSyntax = errors.New("it is no whole JSON object")

// fields calls each for every field of the JSON object b, in order, with the key
// without its quotes and the value as it stands. It finds where strings and
// brackets end and checks nothing else, which is what makes a look at every line
// of a large file cheap; what is decoded later is checked then. An error of each
// ends it.
func fields(b []byte, each func(key, value []byte) error) error {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return errSyntax
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return ended(b, i+1)
	}
	for {
		key := i
		if i >= len(b) || b[i] != '"' {
			return errSyntax
		}
		if i = stringEnd(b, i); i < 0 {
			return errSyntax
		}
		name := b[key+1 : i-1]
		if i = space(b, i); i >= len(b) || b[i] != ':' {
			return errSyntax
		}
		value := space(b, i+1)
		if i = valueEnd(b, value); i < 0 {
			return errSyntax
		}
		if err := each(name, b[value:i]); err != nil {
			return err
		}
		i = space(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = space(b, i+1)
		case i < len(b) && b[i] == '}':
			return ended(b, i+1)
		default:
			return errSyntax
		}
	}
}

func ended(b []byte, i int) error {
	if space(b, i) != len(b) {
		return errSyntax
	}
	return nil
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// stringEnd is behind the closing quote of the string that starts at i, or -1.
func stringEnd(b []byte, i int) int {
	first := i + 1
	for at := first; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		slashes := at
		for slashes > first && b[slashes-1] == '\\' {
			slashes--
		}
		if (at-slashes)%2 == 0 {
			return at + 1
		}
		at++
	}
}

// valueEnd is behind the value that starts at i, or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return bracketEnd(b, i)
	}
	start := i
	for i < len(b) && !ends(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// ends tells whether c ends a number or a word.
func ends(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// elements calls each for every value of the JSON array b; see fields.
func elements(b []byte, each func(value []byte) error) error {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return errSyntax
	}
	if i = space(b, i+1); i < len(b) && b[i] == ']' {
		return ended(b, i+1)
	}
	for {
		value := i
		if i = valueEnd(b, value); i < 0 {
			return errSyntax
		}
		if err := each(b[value:i]); err != nil {
			return err
		}
		i = space(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = space(b, i+1)
		case i < len(b) && b[i] == ']':
			return ended(b, i+1)
		default:
			return errSyntax
		}
	}
}

func bracketEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i); i < 0 {
				return -1
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
