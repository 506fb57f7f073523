package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// errNoCheckpoint says that a commit is not ours.
var errNoCheckpoint = errors.New("not a checkpoint")

const identity = "muntin <muntin@localhost>"

// A record is a checkpoint's commit. Its parents are, as far as there are
// such: the checkpoint before, HEAD's commit, the side commit, and the goal.
type record struct {
	hash     plumbing.Hash // of the commit itself
	tree     plumbing.Hash
	previous plumbing.Hash
	head     plumbing.Hash // keeps work alive that a later reset of the branch would orphan
	headName string        // HEAD's commit, also where the store has not got it
	side     plumbing.Hash // what a restore needs beside the tree, see side.go
	goal     plumbing.Hash // CauseUndo: the state that the change after it aims at, if that is no checkpoint's
	time     time.Time
	seq      int
	files    int
	meta     Meta
	restored plumbing.Hash   // CauseRestored, CauseUndo: the commit that the restore went to
	before   plumbing.Hash   // the commit of the state before that restore
	was      []plumbing.Hash // the hashes it had before gc gave it other parents: the first, and the last few
	step     Step            // CauseRestored: whether it was an undo or a redo
}

// trailer is the common prefix of our commit trailers.
const trailer = "Muntin-"

// encode makes the commit object, in the format of gitformat-commit. There
// is no signature, and the identity is ours: no configuration is asked.
func (r *record) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", r.tree)
	for _, p := range []plumbing.Hash{r.previous, r.head, r.side, r.goal} {
		if !p.IsZero() {
			fmt.Fprintf(&b, "parent %s\n", p)
		}
	}
	fmt.Fprintf(&b, "author %s %d +0000\ncommitter %s %d +0000\n\n", identity, r.time.Unix(), identity, r.time.Unix())
	fmt.Fprintf(&b, "%s\n\n", r.subject())
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", trailer, key, quoteValue(value))
		}
	}
	hash := func(key string, h plumbing.Hash) {
		if !h.IsZero() {
			line(key, h.String())
		}
	}
	line("Run", r.meta.Run)
	line("Agent", r.meta.Agent)
	if r.meta.Turn != 0 {
		line("Turn", strconv.Itoa(r.meta.Turn))
	}
	line("Message", r.meta.Message)
	line("Entry", r.meta.Entry)
	line("Cause", string(r.meta.Cause))
	line("Note", r.meta.Note)
	hash("Head", r.head)
	if r.head.IsZero() {
		line("Foreign-Head", r.headName)
	}
	hash("Side", r.side)
	hash("Goal", r.goal)
	hash("Restored", r.restored)
	hash("Before", r.before)
	line("Step", string(r.step))
	for _, h := range r.was {
		hash("Was", h)
	}
	line("Files", strconv.Itoa(r.files))
	line("Seq", strconv.Itoa(r.seq))
	return b.Bytes()
}

func (r *record) subject() string {
	text := fmt.Sprintf("checkpoint %d: %s", r.seq, r.meta.Cause)
	if r.meta.Turn != 0 {
		text += fmt.Sprintf(", turn %d", r.meta.Turn)
	}
	if r.meta.Agent != "" {
		text += " of " + strings.Join(strings.Fields(r.meta.Agent), " ")
	}
	return text
}

// quoteValue keeps a value in one line; parseValue takes it back.
func quoteValue(v string) string {
	plain := v == strings.TrimSpace(v) && !strings.HasPrefix(v, `"`) && strings.IndexFunc(v, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\uFFFD' }) < 0
	if plain {
		return v
	}
	return strconv.Quote(v)
}

func parseValue(v string) string {
	if strings.HasPrefix(v, `"`) {
		if s, err := strconv.Unquote(v); err == nil {
			return s
		}
	}
	return v
}

// parseCommit reads a checkpoint's commit. Commits that are not ours are an error.
func parseCommit(hash plumbing.Hash, data []byte) (*record, error) {
	r := &record{hash: hash}
	head, message, ok := strings.Cut(string(data), "\n\n")
	if !ok {
		return nil, errors.New("commit has no message")
	}
	var parents []plumbing.Hash
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		h, isHash := parseHash(value)
		switch key {
		case "tree", "parent":
			if !isHash {
				return nil, fmt.Errorf("commit has a bad %s", key)
			}
			if key == "tree" {
				r.tree = h
			} else {
				parents = append(parents, h)
			}
		case "committer":
			f := strings.Fields(value)
			if len(f) < 2 {
				return nil, errors.New("commit has no date")
			}
			sec, err := strconv.ParseInt(f[len(f)-2], 10, 64)
			if err != nil {
				return nil, errors.New("commit has a bad date")
			}
			r.time = time.Unix(sec, 0).UTC()
		}
	}
	for line := range strings.SplitSeq(message, "\n") {
		if rest, ok := strings.CutPrefix(line, trailer); ok {
			key, value, _ := strings.Cut(rest, ": ")
			r.setTrailer(key, parseValue(value))
		}
	}
	if r.seq < 1 || r.tree.IsZero() {
		return nil, errNoCheckpoint
	}
	extra := 0
	for _, h := range []plumbing.Hash{r.head, r.side, r.goal} {
		if !h.IsZero() {
			extra++
		}
	}
	if len(parents) > extra {
		r.previous = parents[0]
	}
	return r, nil
}

func (r *record) setTrailer(key, value string) {
	number := func() int {
		n, err := strconv.Atoi(value)
		if err != nil {
			return 0
		}
		return n
	}
	hash := func() plumbing.Hash {
		h, _ := parseHash(value)
		return h
	}
	switch key {
	case "Run":
		r.meta.Run = value
	case "Agent":
		r.meta.Agent = value
	case "Turn":
		r.meta.Turn = number()
	case "Message":
		r.meta.Message = value
	case "Entry":
		r.meta.Entry = value
	case "Cause":
		r.meta.Cause = Cause(value)
	case "Note":
		r.meta.Note = value
	case "Head":
		r.head, r.headName = hash(), value
	case "Foreign-Head":
		r.headName = value
	case "Was":
		if h := hash(); !h.IsZero() {
			r.was = append(r.was, h)
		}
	case "Side":
		r.side = hash()
	case "Goal":
		r.goal = hash()
	case "Step":
		r.step = Step(value)
	case "Restored":
		r.restored = hash()
	case "Before":
		r.before = hash()
	case "Files":
		r.files = number()
	case "Seq":
		r.seq = number()
	}
}

// record reads and parses a checkpoint's commit.
func (s *Store) record(h plumbing.Hash) (*record, error) { return s.odb.record(h) }

func (o *objects) record(h plumbing.Hash) (*record, error) {
	data, err := o.content(plumbing.CommitObject, h)
	if err != nil {
		return nil, err
	}
	r, err := parseCommit(h, data)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", h, err)
	}
	return r, nil
}

// commitTree reads the tree of any commit.
func (o *objects) commitTree(h plumbing.Hash) (plumbing.Hash, error) {
	data, err := o.content(plumbing.CommitObject, h)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	tree, ok := parseHash(strings.TrimPrefix(line, "tree "))
	if !ok {
		return plumbing.ZeroHash, fmt.Errorf("reading commit %s: it has no tree", h)
	}
	return tree, nil
}

// checkpoint is the record as callers see it.
func (r *record) checkpoint(ref string) Checkpoint {
	return Checkpoint{
		ID: r.seq, Commit: r.hash.String(), Tree: r.tree.String(), Parent: hexOrEmpty(r.previous), Ref: ref, Head: r.headName,
		Time: r.time, Meta: r.meta, Files: r.files, Restored: hexOrEmpty(r.restored), Before: hexOrEmpty(r.before), Step: r.step,
	}
}

// wasCommit tells whether the checkpoint had this commit before a gc.
func (r *record) wasCommit(h plumbing.Hash) bool { return slices.Contains(r.was, h) }

func hexOrEmpty(h plumbing.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}
