package checkpoint

import (
	"context"
	"fmt"
	"maps"
)

// maxPartial is how many snapshots in a row may rest on a watcher before one
// looks everywhere: a watcher does not see writes through memory maps, hard
// links from outside, or other machines.
const maxPartial = 20

// lookAhead is after how many of them Maintain looks everywhere, so that no Save has to.
const lookAhead = maxPartial / 2

// maxNews bounds the answers of a watcher that are kept.
const maxNews = 64

// A Watcher tells a Store which folders of the worktree changed, so that a
// snapshot looks only there. Package checkpoint/watch has one.
type Watcher interface {
	// Add begins to watch a folder (slashes, relative to the worktree, "" for
	// the worktree itself). It is called before a folder is read, by several
	// goroutines, and again and again for the same folder. An error says why
	// the folder is not watched; the next snapshot then looks everywhere.
	Add(dir string) error
	// Changed returns the folders that changed since the last call, true for
	// those with everything below them. It includes all that happened before
	// the call. An error says that changes may be missing; the next snapshot then
	// looks everywhere. Names of files may be among the folders.
	Changed(ctx context.Context) (map[string]bool, error)
}

// An answer is what the watcher said once.
type answer struct {
	dirs map[string]bool
	err  error
}

// drain takes the watcher's news. They are kept until a snapshot that knows
// them is the base of the next one.
func (s *Store) drain(ctx context.Context) error {
	dirs, err := s.opts.Watcher.Changed(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.answers++
	if len(s.news) >= maxNews {
		s.news = s.news[:copy(s.news, s.news[maxNews/2:])]
	}
	s.news = append(s.news, answer{dirs: dirs, err: err})
	return nil
}

// dirtySince gathers what changed since a snapshot that had seen some answers.
// ok is false if that is not known.
func (s *Store) dirtySince(seen int) (dirs map[string]bool, ok bool) {
	first := s.answers - len(s.news)
	if seen < first {
		return nil, false
	}
	s.news = s.news[seen-first:]
	dirs = map[string]bool{}
	for _, a := range s.news {
		if a.err != nil {
			return nil, false
		}
		for dir, deep := range a.dirs {
			dirs[dir] = dirs[dir] || deep
		}
	}
	return dirs, true
}

// lookAround makes the full look that will be due before long, while nobody
// waits. It counts if it finds the worktree as the newest checkpoint has it; else a Save makes it.
func (s *Store) lookAround(ctx context.Context) error {
	if s.opts.Watcher == nil {
		return nil
	}
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	had := s.last
	if had == nil || had.partial < lookAhead || s.interrupted() {
		return nil
	}
	snap, err := s.take(ctx, look{everywhere: true})
	if err != nil {
		return fmt.Errorf("looking at worktree %s: %w", s.repo.Root, err)
	}
	// Other contents, if only of bytes that git converts, are in no checkpoint yet.
	if s.last == had && snap.tree == had.tree && maps.Equal(snap.root.rawHashes(), had.root.rawHashes()) {
		snap.commit, snap.ref = had.commit, had.ref
		s.last = snap
	}
	return nil
}
