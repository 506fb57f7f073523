package editor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"muntin/internal/durable"
)

// maxHistory is how many texts are remembered.
const maxHistory = 500

// A History is what was sent before, the newest last. Prev and Next walk in it.
type History struct {
	texts []string
	at    int    // the text that is shown; len(texts): the draft
	draft string // what was being written when the walk began
}

// LoadHistory reads the history at path, JSON strings, one a line. A file that is
// not there, or no path, is an empty history.
func LoadHistory(path string) (*History, error) {
	texts, err := read(path)
	return &History{texts: texts, at: len(texts)}, err
}

func read(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was sent before: %w", err)
	}
	var texts []string
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var text string
		if json.Unmarshal(scan.Bytes(), &text) == nil && text != "" { // a line that is none costs itself only
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// Add remembers a text, here and not in the file.
func (h *History) Add(text string) {
	if text != "" {
		h.texts = add(h.texts, text)
	}
	h.Reset()
}

// SaveHistory adds a text to the file at path, to which other agents of the folder
// may add as well.
func SaveHistory(ctx context.Context, path, text string) error {
	if path == "" || text == "" {
		return nil
	}
	if err := save(ctx, path, text); err != nil {
		return fmt.Errorf("remembering what was sent: %w", err)
	}
	return nil
}

func save(ctx context.Context, path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := durable.Lock(ctx, path+".lock")
	if err != nil {
		return err
	}
	texts, err := read(path)
	if err != nil {
		return errors.Join(err, lock.Unlock())
	}
	var b bytes.Buffer
	for _, t := range add(texts, text) {
		line, err := json.Marshal(t)
		if err != nil {
			return errors.Join(err, lock.Unlock())
		}
		b.Write(append(line, '\n'))
	}
	return errors.Join(durable.WriteFile(path, b.Bytes(), 0o600), lock.Unlock())
}

func add(texts []string, text string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == text })
	texts = append(texts, text)
	return texts[max(len(texts)-maxHistory, 0):]
}

// Prev is the text before the one that is shown; draft is what the editor holds. ok
// is false at the beginning.
func (h *History) Prev(draft string) (text string, ok bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.texts) {
		h.draft = draft
	}
	h.at--
	return h.texts[h.at], true
}

// Next is the text after the one that is shown, in the end the draft. ok is false
// when that is shown already.
func (h *History) Next() (text string, ok bool) {
	if h.at >= len(h.texts) {
		return "", false
	}
	h.at++
	if h.at == len(h.texts) {
		return h.draft, true
	}
	return h.texts[h.at], true
}

// Reset ends a walk.
func (h *History) Reset() { h.at, h.draft = len(h.texts), "" }
