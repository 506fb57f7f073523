package worktree

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Bounds of what is told about conflicts.
const (
	maxExplained = 20      // files
	maxHunks     = 10      // in a file
	maxBlob      = 1 << 20 // bytes; of larger files no hunks are told
	maxHunkText  = 2 << 10 // bytes of one side of a hunk
)

// Lines are a range of lines in a file. With a Count of 0 it is the place
// before line First.
type Lines struct {
	First int `json:"first"` // 1 is the first line
	Count int `json:"count"`
}

// String says it in words: "line 3", "lines 3-5".
func (l Lines) String() string {
	switch l.Count {
	case 0:
		return fmt.Sprintf("before line %d", l.First)
	case 1:
		return fmt.Sprintf("line %d", l.First)
	}
	return fmt.Sprintf("lines %d-%d", l.First, l.First+l.Count-1)
}

// A Hunk is a place where both sides changed the same lines: where it is in
// the file of each, and how each has it, cut off when it is long.
type Hunk struct {
	Ours       Lines  `json:"ours"`
	Theirs     Lines  `json:"theirs"`
	OursText   string `json:"ours_text,omitempty"`
	TheirsText string `json:"theirs_text,omitempty"`
}

// fillHunks finds the hunks of conflicts in contents. Those of binary and of
// very large files, and of files that only one side has, stay empty.
func (g git) fillHunks(ctx context.Context, dir string, list []Conflict) error {
	var oids []string
	for i := range list[:min(len(list), maxExplained)] {
		if s := list[i].stages; s[0] != "" && s[1] != "" && s[2] != "" {
			oids = append(oids, s[1], s[2])
		}
	}
	if len(oids) == 0 {
		return nil
	}
	blobs, err := g.blobs(ctx, dir, oids)
	if err != nil {
		return fmt.Errorf("reading the sides of a conflict: %w", err)
	}
	for i := range list[:min(len(list), maxExplained)] {
		s := list[i].stages
		ours, haveOurs := blobs[s[1]]
		theirs, haveTheirs := blobs[s[2]]
		if s[0] == "" || !haveOurs || !haveTheirs {
			continue
		}
		a, err := g.changes(ctx, dir, s[0], s[1])
		if err != nil {
			return err
		}
		b, err := g.changes(ctx, dir, s[0], s[2])
		if err != nil {
			return err
		}
		list[i].Hunks = clashes(a, b, splitLines(ours), splitLines(theirs))
	}
	return nil
}

// blobs reads the blobs that are not too large with one process
// (git-cat-file(1), BATCH OUTPUT).
func (g git) blobs(ctx context.Context, dir string, oids []string) (map[string]string, error) {
	c := call{dir: dir, args: []string{"cat-file", "--batch-check"}, stdin: strings.Join(oids, "\n") + "\n"}
	out, err := g.run(ctx, c)
	if err != nil {
		return nil, err
	}
	var small []string
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" {
			continue // a submodule's commit
		}
		if size, err := strconv.Atoi(f[2]); err == nil && size <= maxBlob {
			small = append(small, f[0])
		}
	}
	blobs := map[string]string{}
	if len(small) == 0 {
		return blobs, nil
	}
	c.args, c.stdin = []string{"cat-file", "--batch"}, strings.Join(small, "\n")+"\n"
	if out, err = g.run(ctx, c); err != nil {
		return nil, err
	}
	for _, oid := range small {
		head, rest, ok := strings.Cut(out, "\n")
		f := strings.Fields(head)
		if !ok || len(f) != 3 || f[0] != oid {
			return nil, fmt.Errorf("git's cat-file: cannot read %.80q", head)
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size < 0 || len(rest) < size+1 {
			return nil, fmt.Errorf("git's cat-file: cannot read %.80q", head)
		}
		blobs[oid], out = rest[:size], rest[size+1:]
	}
	return blobs, nil
}

// A change is one hunk of a diff without context: n lines from line at of the
// old file, counted from 0, became m lines.
type change struct{ at, n, m int }

// changes compares two blobs as git-merge does.
func (g git) changes(ctx context.Context, dir, from, to string) ([]change, error) {
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--unified=0", "--diff-algorithm=histogram", "--inter-hunk-context=0", from, to}
	out, err := g.run(ctx, call{dir: dir, args: args})
	if err != nil {
		return nil, fmt.Errorf("comparing the sides of a conflict: %w", err)
	}
	return parseChanges(out)
}

var hunkHead = regexp.MustCompile(`(?m)^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// parseChanges reads the hunk heads of a unified diff without context. A range
// of no lines names the line before it (git-diff(1)).
func parseChanges(out string) ([]change, error) {
	var list []change
	for _, h := range hunkHead.FindAllStringSubmatch(out, -1) {
		num := func(s string) int {
			if s == "" {
				return 1
			}
			n, err := strconv.Atoi(s)
			if err != nil {
				return -1
			}
			return n
		}
		c := change{at: num(h[1]), n: num(h[2]), m: num(h[4])}
		if c.n > 0 {
			c.at--
		}
		if c.at < 0 || c.n < 0 || c.m < 0 {
			return nil, fmt.Errorf("reading git's diff: cannot read %.80q", h[0])
		}
		if k := len(list); k > 0 && c.at < list[k-1].at+list[k-1].n {
			return nil, errors.New("reading git's diff: its hunks are out of order")
		}
		list = append(list, c)
	}
	return list, nil
}

// clashes finds where changes of both sides overlap or touch, which is where
// git cannot merge them, unless both say the same.
func clashes(ours, theirs []change, oursLines, theirsLines []string) []Hunk {
	var hunks []Hunk
	shiftOurs, shiftTheirs := 0, 0 // how far each side's lines have moved so far
	for len(ours) > 0 && len(theirs) > 0 && len(hunks) < maxHunks {
		start := min(ours[0].at, theirs[0].at)
		end, beforeOurs, beforeTheirs := start, shiftOurs, shiftTheirs
		both := [2]bool{}
		take := func(side *[]change, shift *int, which int) bool {
			s := *side
			if len(s) == 0 || s[0].at > end && (both[0] || both[1]) || s[0].at > start && !both[0] && !both[1] {
				return false
			}
			end, both[which] = max(end, s[0].at+s[0].n), true
			*shift += s[0].m - s[0].n
			*side = s[1:]
			return true
		}
		for take(&ours, &shiftOurs, 0) || take(&theirs, &shiftTheirs, 1) {
		}
		if !both[0] || !both[1] {
			continue
		}
		h := Hunk{
			Ours:   Lines{start + beforeOurs + 1, end + shiftOurs - start - beforeOurs},
			Theirs: Lines{start + beforeTheirs + 1, end + shiftTheirs - start - beforeTheirs},
		}
		h.OursText, h.TheirsText = h.Ours.of(oursLines), h.Theirs.of(theirsLines)
		if h.OursText != h.TheirsText || h.OursText == "" {
			hunks = append(hunks, h)
		}
	}
	return hunks
}

// of is the text of the lines, cut off when it is long.
func (l Lines) of(lines []string) string {
	from := min(max(l.First-1, 0), len(lines))
	text := strings.Join(lines[from:min(from+max(l.Count, 0), len(lines))], "")
	if len(text) > maxHunkText {
		text = text[:maxHunkText] + "[…]\n"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// splitLines keeps the line ends.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
