// Package id makes and checks the identifiers muntin uses: ULIDs for things
// that are made (messages, runs' journal entries) and short names for things
// that people name (runs, agents, roles, tasks).
package id

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// MaxName is the longest name accepted, in bytes.
const MaxName = 32

// Sets of characters for Word.
const (
	Digits = "0123456789"
	Lower  = "abcdefghijklmnopqrstuvwxyz"
	Upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Word reports whether s has 1 to limit bytes, the first of the set first and
// the others of the set rest. It is here in place of regular expressions,
// which every start of the program would have to compile.
func Word(s, first, rest string, limit int) bool {
	if s == "" || len(s) > limit || strings.IndexByte(first, s[0]) < 0 {
		return false
	}
	for i := 1; i < len(s); i++ {
		if strings.IndexByte(rest, s[i]) < 0 {
			return false
		}
	}
	return true
}

// New returns a ULID for the moment t: 26 characters that sort by time.
// See https://github.com/ulid/spec.
func New(t time.Time) string {
	return ulid.MustNew(ulid.Timestamp(t), rand.Reader).String()
}

// Valid reports whether s is a ULID as New makes them.
func Valid(s string) bool {
	_, err := ulid.ParseStrict(s)
	return err == nil
}

// Time returns the moment that is written in a ULID.
func Time(s string) (time.Time, error) {
	u, err := ulid.ParseStrict(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the time of id %q: %w", s, err)
	}
	return ulid.Time(u.Time()), nil
}

// CheckName returns an error that names what the name is for unless name is
// a lower-case letter or digit followed by at most 31 letters, digits and
// hyphens. Such a name is safe in file names, git refs, tmux targets and argv.
func CheckName(what, name string) error {
	if Word(name, Lower+Digits, Lower+Digits+"-", MaxName) {
		return nil
	}
	if name == "" {
		return fmt.Errorf("%s name is empty", what)
	}
	return fmt.Errorf("%s name %q: want a letter or digit, then at most %d of a-z, 0-9 and '-'", what, name, MaxName-1)
}
