package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/proc"
)

// ExportOptions say what the exported branch holds.
type ExportOptions struct {
	Chain   bool   // a commit for every checkpoint up to it that changed something; else one
	Message string // of the one commit, or the last one; "": made of the checkpoint
}

// An Exported branch is what Export made.
type Exported struct {
	Branch  string `json:"branch"`
	Commit  string `json:"commit"`
	Parent  string `json:"parent,omitempty"` // HEAD's commit; "" on an unborn branch
	Commits int    `json:"commits"`
}

// Export makes an ordinary branch with a checkpoint's tree in a commit on top
// of HEAD, by the user's own git identity. Nothing is checked out and no hook runs. The
// error matches ErrExists if there is such a branch.
func (s *Store) Export(ctx context.Context, c Checkpoint, branch string, opts ExportOptions) (Exported, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return Exported{}, err
	}
	defer end()
	out, err := s.export(ctx, c, branch, opts)
	if err != nil {
		return Exported{}, fmt.Errorf("exporting to branch %s: %w", branch, err)
	}
	return out, nil
}

func (s *Store) export(ctx context.Context, c Checkpoint, branch string, opts ExportOptions) (Exported, error) {
	last, _, err := s.load(c)
	if err != nil {
		return Exported{}, err
	}
	if _, err := s.git.run(ctx, "", nil, "check-ref-format", "--branch", branch); err != nil {
		return Exported{}, errors.New("not a name that git takes for a branch")
	}
	ref := "refs/heads/" + branch
	if _, err := s.git.run(ctx, "", nil, "show-ref", "--verify", "--quiet", ref); err == nil {
		return Exported{}, ErrExists
	}
	// As a commit by hand: with the name that git knows, or git's own complaint that it knows none.
	who, err := s.git.run(ctx, "", nil, "var", "GIT_AUTHOR_IDENT")
	if err != nil {
		return Exported{}, err
	}
	parent, err := headCommit(s.repo.GitDir, s.repo.CommonDir)
	if err != nil {
		return Exported{}, err
	}
	out := Exported{Branch: branch, Parent: hexOrEmpty(parent)}
	records := []*record{last}
	if opts.Chain {
		if records, err = s.upTo(ctx, last); err != nil {
			return Exported{}, err
		}
	}
	at := parent
	for i, r := range records {
		text := opts.Message
		if text == "" || i < len(records)-1 {
			text = r.title()
		}
		if at, err = s.odb.write(plumbing.CommitObject, ordinary(r, at, string(who), text)); err != nil {
			return Exported{}, err
		}
		out.Commits++
	}
	if err := s.odb.sync(); err != nil {
		return Exported{}, err
	}
	out.Commit = at.String()
	// An old value of zeros: only if it is not there.
	_, err = s.git.run(ctx, "", nil, "update-ref", "-m", "muntin: exported "+r8(last), ref, out.Commit, plumbing.ZeroHash.String())
	var exit *proc.ExitError
	if errors.As(err, &exit) && strings.Contains(string(exit.Result.Stderr), "already exists") {
		err = ErrExists
	}
	return out, err
}

func r8(r *record) string { return "checkpoint " + r.hash.String()[:8] }

// upTo lists the checkpoints up to last that changed something, the first one first.
func (s *Store) upTo(ctx context.Context, last *record) ([]*record, error) {
	var all []*record
	for r := last; ; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if n := len(all); n > 0 && all[n-1].tree == r.tree {
			all[n-1] = r // the later one changed nothing
		} else {
			all = append(all, r)
		}
		if r.previous.IsZero() {
			break
		}
		var err error
		if r, err = s.record(r.previous); err != nil {
			return nil, err
		}
	}
	slices.Reverse(all)
	return all, nil
}

// title is a commit message for people.
func (r *record) title() string {
	switch {
	case r.meta.Note != "" && r.meta.Cause == CauseManual:
		return r.meta.Note
	case r.meta.Agent != "" && r.meta.Turn != 0:
		return fmt.Sprintf("%s, turn %d", r.meta.Agent, r.meta.Turn)
	}
	return fmt.Sprintf("Checkpoint %d of %s", r.seq, r.time.Format("2006-01-02 15:04:05"))
}

// ordinary makes a commit object as git commit-tree would; who is "Name <mail> time zone".
func ordinary(r *record, parent plumbing.Hash, who, text string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", r.tree)
	if !parent.IsZero() {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	who = strings.TrimSpace(who)
	name := who[:strings.LastIndexByte(who, '>')+1]
	fmt.Fprintf(&b, "author %s %d +0000\ncommitter %s\n\n%s\n", name, r.time.Unix(), who, strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")))
	return b.Bytes()
}
