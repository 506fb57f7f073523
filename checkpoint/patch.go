package checkpoint

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// contextLines around a change, as in git.
const contextLines = 3

// Patch writes the difference of two checkpoints as a patch that `git apply`
// takes. Hashes are whole, so that git can apply a change of a binary file
// ("Binary files differ") in a repository that has the new blob.
func (s *Store) Patch(ctx context.Context, w io.Writer, from, to Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	diffs, err := s.pathDiffs(from, to)
	if err != nil {
		return fmt.Errorf("comparing checkpoints: %w", err)
	}
	for _, d := range diffs {
		parts := []pathDiff{d}
		if d.typeChanged() { // as git: the old one goes, the new one comes
			parts = []pathDiff{{path: d.path, old: d.old}, {path: d.path, new: d.new}}
		}
		for _, part := range parts {
			text, err := s.filePatch(ctx, part)
			if err != nil {
				return fmt.Errorf("comparing %s: %w", d.path, err)
			}
			if _, err := io.WriteString(w, text); err != nil {
				return fmt.Errorf("writing patch: %w", err)
			}
		}
	}
	return nil
}

func (s *Store) filePatch(ctx context.Context, d pathDiff) (string, error) {
	before, after, err := s.texts(ctx, d)
	if err != nil {
		return "", err
	}
	oldName, newName := quoteName("a/"+d.path), quoteName("b/"+d.path)
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", oldName, newName)
	index := fmt.Sprintf("index %s..%s", d.old.hash, d.new.hash) // an absent side is all zeros
	switch {
	case d.old.mode == 0:
		fmt.Fprintf(&b, "new file mode %o\n", d.new.mode)
		oldName = "/dev/null"
	case d.new.mode == 0:
		fmt.Fprintf(&b, "deleted file mode %o\n", d.old.mode)
		newName = "/dev/null"
	case d.old.mode != d.new.mode:
		fmt.Fprintf(&b, "old mode %o\nnew mode %o\n", d.old.mode, d.new.mode)
	default:
		index += fmt.Sprintf(" %o", d.new.mode)
	}
	if d.old.hash == d.new.hash {
		return b.String(), nil
	}
	b.WriteString(index + "\n")
	if isBinary(before) || isBinary(after) {
		fmt.Fprintf(&b, "Binary files %s and %s differ\n", oldName, newName)
		return b.String(), nil
	}
	hunks, err := udiff.ToUnified("", "", string(before), udiff.Lines(string(before), string(after)), contextLines)
	if err != nil || hunks == "" {
		return b.String(), err
	}
	_, hunks, _ = strings.Cut(hunks, "\n") // its own "---" and "+++"
	_, hunks, _ = strings.Cut(hunks, "\n")
	fmt.Fprintf(&b, "--- %s\n+++ %s\n%s", endName(oldName), endName(newName), hunks)
	return b.String(), nil
}

// endName marks the end of a name with spaces by a tab, as git does.
func endName(name string) string {
	if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
		return name + "\t"
	}
	return name
}

// quoteName quotes a name in the C style if it has odd bytes (core.quotePath).
func quoteName(name string) string {
	const named = "\a\b\t\n\v\f\r\"\\"
	const letters = `abtnvfr"\`
	odd := false
	var b strings.Builder
	for _, c := range []byte(name) {
		if i := strings.IndexByte(named, c); i >= 0 {
			b.WriteByte('\\')
			b.WriteByte(letters[i])
			odd = true
			continue
		}
		if c < ' ' || c >= 0x7f {
			fmt.Fprintf(&b, `\%03o`, c)
			odd = true
			continue
		}
		b.WriteByte(c)
	}
	if odd {
		return `"` + b.String() + `"`
	}
	return name
}
