package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
)

// A Policy says which checkpoints of a chain are worth keeping: those that
// are within every limit. Zero is no limit. Kept in any case are the newest
// checkpoint, those with a label, and the states that a kept restore could be undone to.
type Policy struct {
	MaxAge   time.Duration
	MaxCount int
	MaxBytes int64 // of file contents on disk that are in kept checkpoints and not in HEAD
	DryRun   bool  // only tell
}

// A GCReport tells what GC did, or would do.
type GCReport struct {
	Ref     string       `json:"ref"`
	Kept    int          `json:"kept"`
	Dropped []Checkpoint `json:"dropped,omitempty"` // newest first, as they were
	Freed   int64        `json:"freed"`             // bytes; 0 in the user's repository, where git gc frees them
	DryRun  bool         `json:"dryRun,omitempty"`
}

// maxWas bounds the former hashes that a checkpoint remembers.
const maxWas = 4

// GC drops the chain's checkpoints that the policy does not keep. The kept
// ones get new parents, so their commits change; their ids and trees do not,
// and Find still knows their former commits. Labels follow their checkpoints.
//
// In the user's repository the contents of dropped checkpoints go when git gc
// finds them old enough. In a sidecar they go at once.
func (s *Store) GC(ctx context.Context, p Policy) (GCReport, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return GCReport{}, err
	}
	defer end()
	var rep GCReport
	for range moveTries {
		rep, err = s.collect(ctx, p)
		if !errors.Is(err, errMoved) {
			break
		}
	}
	if err == nil && s.where.Sidecar && !p.DryRun && len(rep.Dropped) > 0 {
		rep.Freed, err = s.reclaim(ctx)
	}
	if err != nil {
		return GCReport{}, fmt.Errorf("collecting checkpoints of %s: %w", s.opts.Ref, err)
	}
	return rep, nil
}

// collect is one try of GC against the chain as it is now.
func (s *Store) collect(ctx context.Context, p Policy) (GCReport, error) {
	rep := GCReport{Ref: s.opts.Ref, DryRun: p.DryRun}
	var all []*record // newest first
	err := s.walk(ctx, func(r *record) bool {
		all = append(all, r)
		return true
	})
	if err != nil || len(all) == 0 {
		return rep, err
	}
	tags, err := s.labelled()
	if err != nil {
		return rep, err
	}
	pins, err := s.pinned()
	if err != nil {
		return rep, err
	}
	keep, err := s.worth(ctx, all, worthy{tags, pins, p})
	if err != nil {
		return rep, err
	}
	for i, r := range all {
		if keep[i] {
			rep.Kept++
		} else {
			rep.Dropped = append(rep.Dropped, r.checkpoint(s.opts.Ref))
		}
	}
	if p.DryRun || len(rep.Dropped) == 0 {
		return rep, nil
	}
	now, err := s.rewrite(all, keep)
	if err == nil {
		err = s.odb.sync()
	}
	if err == nil {
		err = s.moveRef(ctx, refMove{name: s.opts.Ref, old: all[0].hash, next: now[all[0].hash]})
	}
	if err == nil {
		err = s.moveLabels(ctx, all, now, tags)
	}
	if err = errors.Join(err, s.odb.settle()); err != nil {
		return rep, err
	}
	if s.last != nil {
		if h, ok := now[s.last.commit]; ok && s.last.ref == s.opts.Ref {
			s.last.commit = h
		} else {
			s.last = nil // dropped: what it holds may go
		}
	}
	return rep, nil
}

// labelled maps commits to the labels on them.
func (s *Store) labelled() (map[plumbing.Hash][]string, error) {
	names, err := listRefs(s.where.Path, labels)
	if err != nil {
		return nil, err
	}
	tags := map[plumbing.Hash][]string{}
	for _, name := range names {
		h, err := s.readRef(name)
		if err != nil {
			return nil, err
		}
		if !h.IsZero() { // else it was removed just now
			tags[h] = append(tags[h], name)
		}
	}
	return tags, nil
}

// hashes are the commits that mean this checkpoint, now or before a gc.
func (r *record) hashes() []plumbing.Hash { return append([]plumbing.Hash{r.hash}, r.was...) }

// worthy is what makes checkpoints worth keeping.
type worthy struct {
	tags map[plumbing.Hash][]string // labels by commit
	pins map[int]bool               // by number: fleet points hold them
	Policy
}

// worth tells for each checkpoint whether it is kept.
func (s *Store) worth(ctx context.Context, all []*record, p worthy) ([]bool, error) {
	keep := make([]bool, len(all))
	limit := s.opts.Now().Add(-p.MaxAge)
	fits := len(all)
	if p.MaxCount > 0 {
		fits = min(fits, p.MaxCount)
	}
	if p.MaxBytes > 0 {
		n, err := s.fitting(ctx, all[:fits], p.MaxBytes)
		if err != nil {
			return nil, err
		}
		fits = n
	}
	at := map[plumbing.Hash]int{}
	for i, r := range all {
		keep[i] = i == 0 || p.pins[r.seq] || i < fits && (p.MaxAge == 0 || !r.time.Before(limit))
		for _, h := range r.hashes() {
			keep[i] = keep[i] || len(p.tags[h]) > 0
			at[h] = i
		}
	}
	for i, r := range all { // what a restore points to is older than the restore
		if !keep[i] {
			continue
		}
		for _, h := range []plumbing.Hash{r.restored, r.before} {
			if j, ok := at[h]; ok {
				keep[j] = true
			}
		}
	}
	return keep, nil
}

// fitting counts how many of the newest checkpoints together hold no more
// than that many bytes of contents that HEAD does not have.
func (s *Store) fitting(ctx context.Context, all []*record, bytes int64) (int, error) {
	packed := map[*pack]map[plumbing.Hash]int64{}
	seen := map[plumbing.Hash]bool{}
	var from plumbing.Hash
	if head := all[0].head; !head.IsZero() {
		tree, err := s.odb.commitTree(head)
		if err != nil {
			return 0, err
		}
		from = tree
	}
	var sum int64
	for i, r := range all {
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		err := s.odb.diffTrees(from, r.tree, func(d pathDiff) error {
			if d.new.mode != 0 && d.new.mode != modeGitlink && !seen[d.new.hash] {
				seen[d.new.hash] = true
				sum += s.odb.size(d.new.hash, packed)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		if sum > bytes {
			return i, nil
		}
		from = r.tree
	}
	return len(all), nil
}

// rewrite writes the kept checkpoints with the parents they have without the
// others. It maps all kept commits to what they are now.
func (s *Store) rewrite(all []*record, keep []bool) (map[plumbing.Hash]plumbing.Hash, error) {
	now := map[plumbing.Hash]plumbing.Hash{}
	var previous *record
	for i, r := range slices.Backward(all) {
		if !keep[i] {
			continue
		}
		next := *r
		next.previous = plumbing.ZeroHash
		if previous != nil {
			next.previous = previous.hash
		}
		for _, link := range []*plumbing.Hash{&next.restored, &next.before} {
			if h, ok := now[*link]; ok {
				*link = h
			}
		}
		if next.previous != r.previous || next.restored != r.restored || next.before != r.before {
			if err := s.rewriteOne(&next, previous); err != nil {
				return nil, err
			}
		}
		now[r.hash] = next.hash
		for _, h := range r.was {
			now[h] = next.hash
		}
		previous = &next
	}
	return now, nil
}

func (s *Store) rewriteOne(r *record, previous *record) error {
	r.was = append(slices.Clone(r.was), r.hash)
	if len(r.was) > maxWas { // the first is the one that a person saw when it was saved
		r.was = append(r.was[:1], r.was[len(r.was)-maxWas+1:]...)
	}
	if previous != nil {
		r.files = 0
		err := s.odb.diffTrees(previous.tree, r.tree, func(pathDiff) error {
			r.files++
			return nil
		})
		if err != nil {
			return err
		}
	}
	var err error
	r.hash, err = s.odb.write(plumbing.CommitObject, r.encode())
	return err
}

// moveLabels makes labels follow their checkpoints. One that a kill left
// behind is found by the checkpoint's former hashes.
func (s *Store) moveLabels(ctx context.Context, all []*record, now map[plumbing.Hash]plumbing.Hash, tags map[plumbing.Hash][]string) error {
	for _, r := range all {
		for _, h := range r.hashes() {
			for _, name := range tags[h] {
				if now[r.hash] == h {
					continue
				}
				err := s.moveRef(ctx, refMove{name: name, old: h, next: now[r.hash]})
				if err != nil && !errors.Is(err, errMoved) { // moved: its owner put it elsewhere just now
					return err
				}
			}
		}
	}
	return nil
}

// reclaim deletes from a sidecar what no ref reaches. It does nothing while
// another worktree is being saved there.
func (s *Store) reclaim(ctx context.Context) (int64, error) {
	names, err := filepath.Glob(filepath.Join(s.where.Path, "muntin", "*", "lock"))
	if err != nil {
		return 0, err
	}
	names = append(names, filepath.Join(s.where.Path, "muntin", "maintain.lock"))
	for _, name := range names {
		if name == filepath.Join(s.dir, "lock") { // held by this save
			continue
		}
		held, err := durable.TryLock(name)
		if errors.Is(err, durable.ErrLocked) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		defer func() { _ = held.Unlock() }()
	}
	before := diskUse(filepath.Join(s.where.Path, "objects"))
	git := s.storeGit()
	if _, err := git.run(ctx, "", nil, "repack", "-a", "-d", "-q"); err != nil {
		return 0, err
	}
	// What another process looks at without saving it is young.
	if _, err := git.run(ctx, "", nil, "prune", "--expire=10.minutes.ago"); err != nil {
		return 0, err
	}
	s.odb.reopen()
	return max(0, before-diskUse(filepath.Join(s.where.Path, "objects"))), nil
}

// diskUse sums the sizes of the files below a folder.
func diskUse(dir string) int64 {
	var sum int64
	// Files come and go; the sum is for people.
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
