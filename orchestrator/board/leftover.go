package board

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/internal/durable"
)

// leftOver clears away what a writer left beside the file that was killed while it
// wrote it. Mostly that is a text that is known. If somebody saved the file in the
// very moment of the exchange, it is theirs, and nowhere else: then it is kept
// with the versions and merged into b. The caller has the lock, so no writer is at
// work.
func (f File) leftOver(b *Board, all []version) (*Board, error) {
	if len(all) == 0 {
		return b, nil
	}
	path, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return b, nil // there is no file, and nothing was exchanged
	}
	for _, temp := range temps(path) {
		text, err := os.ReadFile(temp)
		if err != nil {
			return nil, fmt.Errorf("reading what was left beside the board: %w", err)
		}
		if !f.known(all, text) {
			if b, err = f.bringIn(b, all, text); err != nil {
				return nil, err
			}
		}
		if err := os.Remove(temp); err != nil {
			return nil, fmt.Errorf("clearing away what was left beside the board: %w", err)
		}
	}
	return b, nil
}

// temps are the files that durable.Exchange makes beside path.
func temps(path string) []string {
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	var out []string
	for _, item := range list {
		number, ok := strings.CutPrefix(item.Name(), "."+filepath.Base(path)+".")
		if ok && number != "" && strings.Trim(number, "0123456789") == "" && item.Type().IsRegular() {
			out = append(out, filepath.Join(filepath.Dir(path), item.Name()))
		}
	}
	return out
}

// known tells whether a text is one of the kept ones, or the beginning of the one
// that was to be written.
func (f File) known(all []version, text []byte) bool {
	sum := sumOf(text)
	if slices.ContainsFunc(all, func(v version) bool { return v.sum == sum }) {
		return true
	}
	next, ok := all[len(all)-1].read()
	return ok && bytes.HasPrefix(next, text)
}

func (f File) bringIn(b *Board, all []version, text []byte) (*Board, error) {
	if err := durable.WriteFile(filepath.Join(f.Versions, "saved-"+sumOf(text)+".md"), text, 0o600); err != nil {
		return nil, fmt.Errorf("keeping what was saved meanwhile: %w", err)
	}
	base, from := origin(all, text)
	m, err := Merge(base, Side{text, Person}, Side{b.Bytes(), since(all, from)})
	if err != nil {
		return nil, fmt.Errorf("%s was saved meanwhile: %w", f.Path, err)
	}
	if b, err = Parse(m.Text); err != nil {
		return nil, fmt.Errorf("%s was saved meanwhile: %w", f.Path, err)
	}
	return b, nil
}
