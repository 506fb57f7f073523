package pty

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"muntin/agent/adapter"
)

// randomText is one as people and programs send: any length, hostile, but
// nothing that is left out of what is typed.
func randomText(r *rand.Rand, n int) string {
	words := []string{
		"word", "漢字", "é", "👩‍👩‍👧‍👦", "\n", "\t", "$(rm -rf x)", "`x`", "#{pane_id}", ";", "--", "'\"\\", "Enter", "C-c", "\u202e", "/quit", "@file", "!ls", "[200~", "\u00a0",
	}
	var b strings.Builder
	fmt.Fprintf(&b, "m%d ", n)
	for range r.IntN(1 << r.IntN(9)) {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	b.WriteString("end")
	return b.String()
}

func (f *fakeTUI) keep(rec adapter.Record) error {
	if f.Keeps == "" {
		return nil
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return appendLine(f.Keeps, string(line))
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
