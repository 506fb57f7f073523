package pty

import (
	"bytes"
	"slices"
)

// A redactor leaves fixed values out of a stream, also where one lies across
// two pieces of it: what may be the beginning of a value is kept back until
// the next piece shows whether it is.
type redactor struct {
	secrets [][]byte // the longest first
	held    []byte
}

// minSecret is the length from which a value is worth hiding; a shorter one
// would be found everywhere.
const minSecret = 4

func newRedactor(values []string) *redactor {
	r := &redactor{}
	for _, v := range values {
		if len(v) >= minSecret {
			r.secrets = append(r.secrets, []byte(v))
		}
	}
	slices.SortFunc(r.secrets, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

// pass returns what can be shown of the stream up to and with b. The result
// may be b itself, and is of use until the next call.
func (r *redactor) pass(b []byte) []byte {
	if len(r.secrets) == 0 {
		return b
	}
	if len(r.held) > 0 {
		b = append(r.held, b...)
	}
	keep := 0
	for _, s := range r.secrets {
		if bytes.Contains(b, s) { // ReplaceAll copies in any case
			b = bytes.ReplaceAll(b, s, []byte(redacted))
		}
	}
	for _, s := range r.secrets {
		keep = max(keep, overlap(b, s))
	}
	r.held = append([]byte(nil), b[len(b)-keep:]...)
	return b[:len(b)-keep]
}

// rest returns what is still kept back, at the end of the stream.
func (r *redactor) rest() []byte {
	b := r.held
	r.held = nil
	return b
}

// overlap is the length of the longest end of b that is a proper beginning of s.
func overlap(b, s []byte) int {
	for n := min(len(s)-1, len(b)); n > 0; n-- {
		if bytes.Equal(b[len(b)-n:], s[:n]) {
			return n
		}
	}
	return 0
}
