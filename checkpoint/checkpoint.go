// Package checkpoint saves whole worktrees as commits on private refs, lists
// and compares them, and restores them so that a restore can be undone.
//
// A checkpoint holds what `git add -A` would stage: tracked files and
// untracked ones that are not ignored, with contents, executable bits and
// symlinks, and the commits of nested repositories. Its tree is bit-identical
// to git's. Where git converts contents on their way in (autocrlf, text, eol,
// ident, filter, working-tree-encoding), git does the conversion, and the bytes as
// they were on disk are kept beside it, so that a restore is byte-exact.
//
// Not saved, as in git: empty folders, owners, modes beyond the executable
// bit, extended attributes, hard links, and what lies inside nested repositories. Left out
// and reported: files over the size cap, unreadable ones, FIFOs, sockets and
// devices, and names that git refuses. A restore never touches what was left out.
//
// Index, HEAD, branches, stash, configuration, hooks and the modification
// times of files are never touched. The package keeps its locks and its
// journal in the folder "muntin" of the git folder.
//
// Checkpoints are kept in the worktree's own repository, so that a clone
// to another disk or a backup has them, and git's gc knows them. Where that
// cannot be (objects named by SHA-256, refs in a reftable, a read-only
// repository, none at all) they are in a sidecar: a bare repository in the
// state folder, complete in itself. Store.Where tells which and why.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
)

// DefaultSizeCap is the largest file that is saved unless Options say otherwise.
const DefaultSizeCap = 50 << 20

// Errors that callers may test for.
var (
	ErrNotFound      = errors.New("no such checkpoint")
	ErrAmbiguous     = errors.New("ambiguous checkpoint")
	ErrNothingToUndo = errors.New("nothing to undo")
	ErrNothingToRedo = errors.New("nothing to redo")
	ErrNoPath        = errors.New("no such path in the checkpoint or the worktree")
	ErrBusy          = errors.New("files are being changed by another process")
	ErrConflict      = errors.New("what came later is in the way")
	ErrUnsupported   = errors.New("repository not supported")
)

// A Cause says why a checkpoint was taken.
type Cause string

// The causes. CauseStart is the state before the first turn, CauseBetween what a person changed between two, CauseUndo is the present before a restore, CauseRestored the state after it.
const (
	CauseStart    Cause = "start"
	CauseTurn     Cause = "turn"
	CauseBetween  Cause = "between"
	CauseManual   Cause = "manual"
	CauseUndo     Cause = "undo"
	CauseRestored Cause = "restored"
)

// Options say which worktree to save and where.
type Options struct {
	Worktree string           // the worktree or a folder in it
	Ref      string           // full name below refs/muntin/, as refs/muntin/checkpoints/<run>/<agent>
	CacheDir string           // folder for the stat cache; "" keeps it in memory
	SizeCap  int64            // bytes; larger files are left out and reported; 0: DefaultSizeCap
	Now      func() time.Time // nil: time.Now
	Progress func(Progress)   // called now and then from the goroutine of a long call; nil: not

	// Recovered is told what Open or another call did with a restore that a
	// crash had interrupted, before it did its own work; nil: nobody is.
	Recovered func(RestoreReport)

	Watcher   Watcher // of the worktree, for this Store alone; nil: every snapshot looks everywhere
	WatchFrom int     // number of tracked files from which on the watcher is used

	reached func(point string) // called by a restore at the points that have names, by several goroutines; for tests, nil: not
}

// Meta is what the caller knows about a checkpoint. All of it is kept in the
// commit's trailers.
type Meta struct {
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Turn    int    `json:"turn,omitempty"`
	Message string `json:"message,omitempty"` // id of the message that began the turn
	Entry   string `json:"entry,omitempty"`   // id of the session entry
	Cause   Cause  `json:"cause"`
	Note    string `json:"note,omitempty"` // free text
}

// A Checkpoint is one saved state of a worktree.
type Checkpoint struct {
	ID     int       `json:"id"`               // 1 is the first of its chain; 0: not saved (see Store.Worktree)
	Commit string    `json:"commit"`           // hash of the commit, "" if not saved
	Tree   string    `json:"tree"`             // hash of the tree
	Parent string    `json:"parent,omitempty"` // commit of the checkpoint before
	Ref    string    `json:"ref"`
	Head   string    `json:"head,omitempty"` // HEAD's commit at that moment
	Time   time.Time `json:"time"`           // whole seconds
	Meta
	Files    int    `json:"files"`              // paths that differ from the checkpoint before; for the first from HEAD, in a sidecar all
	Restored string `json:"restored,omitempty"` // CauseRestored, CauseUndo: the commit that was restored
	Before   string `json:"before,omitempty"`   // CauseRestored: the commit of the state before the restore
	Step     Step   `json:"step,omitempty"`     // CauseRestored: whether it was an undo or a redo
}

// A PathNote tells why a path was left out or left alone.
type PathNote struct {
	Path string `json:"path"` // relative to the worktree, with slashes
	Why  string `json:"why"`
}

// A Report tells what a save could not take as it should.
type Report struct {
	Skipped     []PathNote `json:"skipped,omitempty"`     // not in the checkpoint
	Unstable    []PathNote `json:"unstable,omitempty"`    // changed while they were read; one state of them was saved
	Unconverted []PathNote `json:"unconverted,omitempty"` // saved as they are on disk because git's conversion failed
	Unwatched   string     `json:"unwatched,omitempty"`   // why the watcher does not see every folder; snapshots look everywhere then
}

// A Store saves and restores one worktree on one chain. Its methods may be
// called from several goroutines and processes at once; those that change
// something wait for each other.
type Store struct {
	opts Options
	home        // the worktree's repository, and where the checkpoints are
	dir  string // the worktree's lock and journal
	git  *git   // runs on the worktree's repository

	mu       sync.Mutex // guards what follows; held for the whole of a method
	odb      *objects
	imported map[string]plumbing.Hash // copies of the repository's objects in a sidecar, by their names there
	conf     *settings
	last     *snapshot // of the newest checkpoint saved or loaded; nil if not known
	cached   *snapshot // what the cache file holds, if this Store wrote it

	news    []answer // the watcher's newest answers
	answers int      // how many it gave
}

// Open opens the worktree's checkpoints and finishes an interrupted restore.
// They are in the worktree's repository, or in a sidecar where that cannot
// take them or does not exist: Where tells. The error matches ErrUnsupported
// for folders without a repository that are too much to save, as the home folder.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if err := checkRef(opts.Ref); err != nil {
		return nil, err
	}
	h, err := place(opts.Worktree, true)
	if err != nil {
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	}
	if opts.SizeCap == 0 {
		opts.SizeCap = DefaultSizeCap
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Store{opts: opts, home: h, dir: h.worktreeDir(), git: newGit(h.repo), odb: openObjects(h.where.Path), imported: map[string]plumbing.Hash{}}
	if file := s.cacheFile("settings"); file != "" && !h.where.Sidecar {
		s.git.cache = file
	}
	format := h.ext["objectformat"]
	s.git.longHash = format != "" && format != "sha1"
	if err := s.loadSettings(ctx); err != nil {
		return nil, fmt.Errorf("opening checkpoints of %s: %w", h.repo.Root, err)
	}
	if !h.where.Sidecar {
		s.odb.perm = parseSharing(s.conf.values["core.sharedrepository"])
	}
	if err := s.makeFolders(); err != nil {
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	}
	if s.interrupted() {
		report, err := s.Recover(ctx)
		if err != nil {
			return nil, err
		}
		s.tellRecovered(report)
	}
	return s, nil
}

// makeFolders makes the folders of our own locks. Who may write a shared
// repository must be able to take them, too.
func (s *Store) makeFolders() error {
	for _, dir := range []string{s.dir, filepath.Join(s.where.Path, "muntin")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if s.odb.perm == (sharing{}) {
			continue
		}
		for _, lock := range []string{"lock", "refs.lock", "maintain.lock"} {
			f, err := os.OpenFile(filepath.Join(dir, lock), os.O_WRONLY|os.O_CREATE, 0o600)
			if err == nil {
				err = errors.Join(f.Close(), s.odb.perm.adjust(f.Name()))
			}
			if err != nil && !errors.Is(err, os.ErrPermission) { // another user's, which that user adjusted
				return err
			}
		}
		if err := s.odb.perm.adjust(dir); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}

// Ref returns the full name of the chain's ref.
func (s *Store) Ref() string { return s.opts.Ref }

// begin takes the worktree's lock, in this process and among processes.
func (s *Store) begin(ctx context.Context) (end func(), err error) {
	s.mu.Lock()
	held, err := durable.Lock(ctx, filepath.Join(s.dir, "lock"))
	if err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("locking worktree %s: %w", s.repo.Root, err)
	}
	s.lend(ctx)
	return func() {
		// The lock ends with the file in any case, so there is nothing to do about an error.
		_ = held.Unlock()
		s.odb.fetch = nil
		s.mu.Unlock()
	}, nil
}

// beginChange is begin for methods that change the worktree or the chain: an
// interrupted restore is finished first, so that it cannot mix with them.
func (s *Store) beginChange(ctx context.Context) (end func(), err error) {
	end, err = s.begin(ctx)
	if err != nil {
		return nil, err
	}
	report, err := s.recoverLocked(ctx)
	if err != nil {
		end()
		return nil, err
	}
	s.tellRecovered(report)
	return end, nil
}

func (s *Store) tellRecovered(report *RestoreReport) {
	if report != nil && s.opts.Recovered != nil {
		s.opts.Recovered(*report)
	}
}
