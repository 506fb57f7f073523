package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// An ObjectNote is an object that is not as it must be.
type ObjectNote struct {
	Hash string `json:"hash"`
	Kind string `json:"kind"`
	Path string `json:"path,omitempty"` // of the blob or tree, in the first checkpoint that has it
	In   string `json:"in"`             // the commit of that checkpoint
	Why  string `json:"why"`
}

// A VerifyReport tells whether the checkpoints of a repository are whole.
type VerifyReport struct {
	Chains      int          `json:"chains"`
	Labels      int          `json:"labels"`
	Checkpoints int          `json:"checkpoints"`
	Objects     int          `json:"objects"` // that were read and hashed, each once
	Bytes       int64        `json:"bytes"`
	Broken      []ObjectNote `json:"broken,omitempty"`
	NotFetched  int          `json:"notFetched,omitempty"` // blobs that a partial clone has not fetched
	Files       int          `json:"files,omitempty"`      // of the worktree that were read again (full)
	Stale       []PathNote   `json:"stale,omitempty"`      // files that the stat cache has wrong (full)
}

// OK tells that nothing was found.
func (r *VerifyReport) OK() bool { return len(r.Broken) == 0 && len(r.Stale) == 0 }

// Verify reads every object that the chains and labels of the repository
// reach and hashes it: commits, trees, and blobs, and HEAD's commits of the
// checkpoints without what these reach, which is git's own. With full it also reads each file of the
// worktree and compares it with what a save would take for it.
func (s *Store) Verify(ctx context.Context, full bool) (VerifyReport, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return VerifyReport{}, err
	}
	defer end()
	v := &verifier{store: s, seen: map[plumbing.Hash]bool{}}
	v.promisor = s.conf.values["extensions.partialclone"] != ""
	refs, err := listRefs(s.where.Path, namespace)
	if err != nil {
		return VerifyReport{}, fmt.Errorf("verifying checkpoints: %w", err)
	}
	for _, ref := range refs {
		if err := v.chain(ctx, ref); err != nil {
			return v.report, fmt.Errorf("verifying checkpoints: %w", err)
		}
	}
	if full {
		if err := v.worktree(ctx); err != nil {
			return v.report, fmt.Errorf("verifying the stat cache: %w", err)
		}
	}
	return v.report, nil
}

type verifier struct {
	store    *Store
	seen     map[plumbing.Hash]bool
	promisor bool
	report   VerifyReport
}

// read reads an object that was not seen yet, and reports one that is broken; nil if there is nothing to look into.
func (v *verifier) read(ctx context.Context, n ObjectNote, kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	if v.seen[h] {
		return nil, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	v.seen[h] = true
	content, err := v.store.odb.content(kind, h)
	n.Hash, n.Kind = h.String(), kind.String()
	switch {
	case err != nil && v.promisor && kind == plumbing.BlobObject && !v.store.odb.has(h):
		v.report.NotFetched++
		return nil, nil
	case errors.Is(err, plumbing.ErrObjectNotFound):
		n.Why = "is missing"
	case err != nil:
		n.Why = "cannot be read: " + err.Error()
	case plumbing.ComputeHash(kind, content) != h:
		n.Why = "has other content than its name says"
	default:
		v.report.Objects++
		v.report.Bytes += int64(len(content))
		v.store.progress(Progress{What: "reading objects", Done: v.report.Objects})
		if content == nil {
			content = []byte{}
		}
		return content, nil
	}
	v.report.Broken = append(v.report.Broken, n)
	return nil, nil
}

// chain verifies a ref and all checkpoints below it.
func (v *verifier) chain(ctx context.Context, ref string) error {
	h, err := v.store.readRef(ref)
	if err != nil || h.IsZero() {
		return err
	}
	if content, err := v.store.odb.content(plumbing.CommitObject, h); err == nil {
		if _, err := parseCommit(h, content); errors.Is(err, errNoCheckpoint) {
			return nil // kept there for another purpose
		}
	}
	if strings.HasPrefix(ref, labelSpace) {
		v.report.Labels++
	} else {
		v.report.Chains++
	}
	for !h.IsZero() {
		content, err := v.read(ctx, ObjectNote{In: h.String()}, plumbing.CommitObject, h)
		if err != nil || content == nil {
			return err
		}
		r, err := parseCommit(h, content)
		if err != nil {
			v.report.Broken = append(v.report.Broken, ObjectNote{Hash: h.String(), Kind: "commit", In: h.String(), Why: err.Error()})
			return nil
		}
		if r.meta.Cause != causeGoal {
			v.report.Checkpoints++
		}
		if err := v.checkpoint(ctx, r); err != nil {
			return err
		}
		h = r.previous
	}
	return nil
}

func (v *verifier) checkpoint(ctx context.Context, r *record) error {
	note := ObjectNote{In: r.hash.String()}
	if err := v.tree(ctx, note, r.tree); err != nil {
		return err
	}
	if !r.head.IsZero() {
		if _, err := v.read(ctx, note, plumbing.CommitObject, r.head); err != nil {
			return err
		}
	}
	for _, h := range []plumbing.Hash{r.side, r.goal} {
		if h.IsZero() {
			continue
		}
		content, err := v.read(ctx, note, plumbing.CommitObject, h)
		if err != nil {
			return err
		}
		if content == nil {
			continue
		}
		if goal, err := parseCommit(h, content); err == nil { // a goal has a side commit of its own
			if err := v.checkpoint(ctx, goal); err != nil {
				return err
			}
			continue
		}
		tree, err := v.store.odb.commitTree(h)
		if err != nil {
			return err
		}
		if err := v.tree(ctx, note, tree); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) tree(ctx context.Context, n ObjectNote, h plumbing.Hash) error {
	content, err := v.read(ctx, n, plumbing.TreeObject, h)
	if err != nil || content == nil {
		return err
	}
	entries, err := parseTree(content)
	if err != nil {
		n.Hash, n.Kind, n.Why = h.String(), "tree", err.Error()
		v.report.Broken = append(v.report.Broken, n)
		return nil
	}
	for _, e := range entries {
		under := n
		under.Path = join(n.Path, e.name)
		switch e.mode {
		case modeDir:
			err = v.tree(ctx, under, e.hash)
		case modeGitlink: // a commit of another repository
		default:
			_, err = v.read(ctx, under, plumbing.BlobObject, e.hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// worktree reads every file and compares it with what the stat cache vouches for.
func (v *verifier) worktree(ctx context.Context) error {
	snap, err := v.store.take(ctx, look{})
	if err != nil {
		return err
	}
	root, err := openRoot(v.store.repo.Root)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	snap.root.each("", func(name string, e *ent) {
		if err == nil && e.stat != (statKey{}) && e.mode != modeGitlink {
			err = v.file(ctx, root, name, e)
		}
	})
	return err
}

func (v *verifier) file(ctx context.Context, root int, name string, e *ent) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir, err := openDir(root, path.Dir(name))
	if err != nil {
		return changedSince(err)
	}
	defer unix.Close(dir)
	var content []byte
	if e.mode == modeSymlink {
		content, err = readlinkAt(dir, path.Base(name))
	} else {
		content, _, _, err = (&reader{}).file(dir, path.Base(name), e.stat.size)
	}
	if err != nil {
		return changedSince(err)
	}
	v.report.Files++
	v.store.progress(Progress{What: "reading files", Done: v.report.Files})
	if plumbing.ComputeHash(plumbing.BlobObject, content) == e.disk() {
		return nil
	}
	st, err := lstatAt(dir, path.Base(name))
	if err != nil || statKeyOf(&st) != e.stat {
		return changedSince(err)
	}
	v.report.Stale = append(v.report.Stale, PathNote{Path: name, Why: "the content is another, size and times are the same"})
	return nil
}

// changedSince drops the error of a path that is no longer there as it was: there is nothing to compare.
func changedSince(err error) error {
	for _, gone := range []error{os.ErrNotExist, unix.ENOTDIR, unix.ELOOP, os.ErrPermission} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}
