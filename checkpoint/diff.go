package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// A Kind says how a path changed.
type Kind string

// The kinds of changes. KindType is a file that became a symlink or a nested
// repository, or one of these that became another.
const (
	KindAdded    Kind = "added"
	KindModified Kind = "modified"
	KindDeleted  Kind = "deleted"
	KindType     Kind = "type"
)

// A Change is one path that two checkpoints do not share. Renames show as a
// deletion and an addition.
type Change struct {
	Path      string `json:"path"`
	Kind      Kind   `json:"kind"`
	OldMode   string `json:"oldMode,omitempty"` // octal, as in git: 100644, 100755, 120000, 160000; "" if absent
	NewMode   string `json:"newMode,omitempty"`
	OldHash   string `json:"oldHash,omitempty"` // of the blob, or the nested repository's commit
	NewHash   string `json:"newHash,omitempty"`
	Binary    bool   `json:"binary,omitempty"` // no lines were counted
	Additions int    `json:"additions"`        // lines
	Deletions int    `json:"deletions"`
}

// binaryLook is how much of a file git looks at for a NUL byte.
const binaryLook = 8000

// Diff lists what changed from one checkpoint to another, by path. Either may
// be one that Worktree returned.
func (s *Store) Diff(ctx context.Context, from, to Checkpoint) ([]Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	diffs, err := s.pathDiffs(from, to)
	if err != nil {
		return nil, fmt.Errorf("comparing checkpoints: %w", err)
	}
	changes := make([]Change, 0, len(diffs))
	for _, d := range diffs {
		c := Change{Path: d.path, Kind: d.kind(), OldMode: octal(d.old.mode), NewMode: octal(d.new.mode),
			OldHash: hexOrEmpty(d.old.hash), NewHash: hexOrEmpty(d.new.hash)}
		before, after, err := s.texts(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", d.path, err)
		}
		if c.Binary = isBinary(before) || isBinary(after); !c.Binary {
			c.Additions, c.Deletions = countLines(string(before), string(after))
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// pathDiffs compares the trees of two checkpoints, by path.
func (s *Store) pathDiffs(from, to Checkpoint) ([]pathDiff, error) {
	a, okA := parseHash(from.Tree)
	b, okB := parseHash(to.Tree)
	if !okA || !okB {
		return nil, fmt.Errorf("checkpoint has no tree: %w", ErrNotFound)
	}
	var diffs []pathDiff
	err := s.odb.diffTrees(a, b, func(d pathDiff) error {
		diffs = append(diffs, d)
		return nil
	})
	slices.SortFunc(diffs, func(a, b pathDiff) int { return strings.Compare(a.path, b.path) })
	return diffs, err
}

func (d *pathDiff) kind() Kind {
	switch {
	case d.old.mode == 0:
		return KindAdded
	case d.new.mode == 0:
		return KindDeleted
	case d.typeChanged():
		return KindType
	}
	return KindModified
}

func (d *pathDiff) typeChanged() bool {
	return d.old.mode != 0 && d.new.mode != 0 && d.old.mode != d.new.mode && !(isFile(d.old.mode) && isFile(d.new.mode))
}

func octal(mode uint32) string {
	if mode == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(mode), 8)
}

// texts returns the contents of both sides; nil for an absent one.
func (s *Store) texts(ctx context.Context, d pathDiff) (before, after []byte, err error) {
	if before, err = s.text(ctx, d.old); err != nil {
		return nil, nil, err
	}
	if after, err = s.text(ctx, d.new); err != nil {
		return nil, nil, err
	}
	return before, after, nil
}

func (s *Store) text(ctx context.Context, e treeEntry) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	switch e.mode {
	case 0:
		return nil, nil
	case modeGitlink:
		return []byte("Subproject commit " + e.hash.String() + "\n"), nil
	}
	return s.blob(ctx, e.hash)
}

func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), binaryLook)], 0) >= 0
}

func countLines(before, after string) (added, deleted int) {
	switch {
	case before == "":
		return lines(after), 0
	case after == "":
		return 0, lines(before)
	}
	for _, e := range udiff.Lines(before, after) {
		added += lines(e.New)
		deleted += lines(before[e.Start:e.End])
	}
	return added, deleted
}

func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
