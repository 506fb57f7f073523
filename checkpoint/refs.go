package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
	"muntin/internal/state"
)

// Refs are read and moved as git itself does (gitglossary, files backend):
// a loose file, else a line of packed-refs; a change holds <ref>.lock and
// renames it over the loose file. go-git does not look at these locks.

// namespace is where all our refs live. They are shared by all worktrees: the
// per-worktree refs of a linked worktree are not safe from a gc elsewhere.
const namespace = "refs/muntin/"

const (
	lockWait  = 5 * time.Second // for a ref's lock that git holds
	lockPoll  = 5 * time.Millisecond
	lockStale = 10 * time.Second // a lock in our namespace that old belongs to no living process
)

// errMoved says that a ref had not the expected value.
var errMoved = errors.New("ref was moved by another process")

// checkRef accepts the names below refs/muntin/ that git check-ref-format accepts.
func checkRef(name string) error {
	rest, ok := strings.CutPrefix(name, namespace)
	if !ok {
		return fmt.Errorf("checking ref %q: it must begin with %s", name, namespace)
	}
	for part := range strings.SplitSeq(rest, "/") {
		bad := part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") ||
			strings.Contains(part, "..") || strings.Contains(part, "@{") || part == "@" || strings.ContainsAny(part, " ~^:?*[\\\x7f") ||
			strings.IndexFunc(part, func(c rune) bool { return c < ' ' }) >= 0
		if bad {
			return fmt.Errorf("checking ref %q: not a valid name", name)
		}
	}
	return nil
}

// readRef returns the value of a ref, zero if there is none.
func (s *Store) readRef(name string) (plumbing.Hash, error) { return readRef(s.repo.CommonDir, name) }

func readRef(common, name string) (plumbing.Hash, error) {
	text, err := os.ReadFile(filepath.Join(common, name))
	switch {
	case err == nil:
		h, ok := parseHash(strings.TrimSpace(string(text)))
		if !ok {
			return plumbing.ZeroHash, fmt.Errorf("reading ref %s: %q is no hash", name, text)
		}
		return h, nil
	case errors.Is(err, fs.ErrNotExist), isDirError(err):
		return packedRef(common, name)
	}
	return plumbing.ZeroHash, fmt.Errorf("reading ref: %w", err)
}

// packedRef looks a ref up in packed-refs.
func packedRef(common, name string) (plumbing.Hash, error) {
	var found plumbing.Hash
	err := eachPacked(common, func(ref string, h plumbing.Hash) {
		if ref == name {
			found = h
		}
	})
	return found, err
}

func eachPacked(common string, fn func(ref string, h plumbing.Hash)) error {
	text, err := readOptional(filepath.Join(common, "packed-refs"))
	if err != nil {
		return fmt.Errorf("reading packed refs: %w", err)
	}
	for line := range bytes.Lines(text) {
		hash, ref, ok := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
		if h, isHash := parseHash(hash); ok && isHash {
			fn(ref, h)
		}
	}
	return nil
}

// A refMove is a change of a ref from one value to another; zero: no such ref.
type refMove struct {
	name      string
	old, next plumbing.Hash
}

// moveRef sets a ref to its next value if it has the old one now, else it
// returns errMoved. The new value is durable.
func moveRef(ctx context.Context, common string, m refMove) error {
	unlock, err := lockRef(ctx, common, m.name, m.next.String()+"\n")
	if err != nil {
		return err
	}
	defer unlock()
	now, err := readRef(common, m.name)
	if err != nil {
		return err
	}
	if now != m.old {
		return fmt.Errorf("moving ref %s: %w", m.name, errMoved)
	}
	file := filepath.Join(common, m.name)
	// An empty folder may be left of deleted refs, as git removes it too.
	if isDir(file) {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("moving ref: %w", err)
		}
	}
	return durable.Rename(file+".lock", file)
}

// lockRef takes git's lock on a ref with content as the value to be. The
// lock is a hard link to a file of ours, so that the lock of a process that
// was killed can be told from git's.
func lockRef(ctx context.Context, common, name, content string) (unlock func(), err error) {
	dir := filepath.Join(common, "muntin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("locking ref %s: %w", name, err)
	}
	ours, err := durable.Lock(ctx, filepath.Join(dir, "refs.lock"))
	if err != nil {
		return nil, fmt.Errorf("locking ref %s: %w", name, err)
	}
	lock, mark := filepath.Join(common, name+".lock"), filepath.Join(dir, "ref.next")
	dropStale(lock, mark)
	if err = writeSynced(mark, content); err == nil {
		err = waitForLock(ctx, mark, lock)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking ref %s: %w", name, err), ours.Unlock())
	}
	return func() {
		// The lock is still there only if the ref was not moved. What cannot be
		// removed now is known by its mark to the next process.
		dropStale(lock, mark)
		_ = os.Remove(mark)
		_ = ours.Unlock()
	}, nil
}

// waitForLock links mark to lock, waiting while git holds the lock.
func waitForLock(ctx context.Context, mark, lock string) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		if err := os.MkdirAll(filepath.Dir(lock), 0o777); err != nil {
			return err
		}
		err := os.Link(mark, lock)
		if err == nil {
			return nil
		}
		if info, e := os.Stat(lock); e == nil && time.Since(info.ModTime()) > lockStale {
			if err := os.Remove(lock); err == nil {
				continue
			}
		}
		// ErrNotExist: git removed the empty folder just now.
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is held by another process: %w", lock, context.Cause(ctx))
		case <-poll.C:
		}
	}
}

// dropStale removes a lock that is our own mark. The caller holds our lock on refs.
func dropStale(lock, mark string) {
	a, errA := os.Stat(lock)
	b, errB := os.Stat(mark)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		_ = os.Remove(lock)
	}
}

func writeSynced(path, content string) error {
	// A new inode each time: after a move, the old one is the ref itself.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// deleteRef removes a ref that has the value old, from packed-refs first, so
// that no older value shows in between.
func deleteRef(ctx context.Context, common, name string, old plumbing.Hash) error {
	unlock, err := lockRef(ctx, common, name, "")
	if err != nil {
		return err
	}
	defer unlock()
	now, err := readRef(common, name)
	if err != nil {
		return err
	}
	if now != old {
		return fmt.Errorf("deleting ref %s: %w", name, errMoved)
	}
	if err := unpackRef(ctx, common, name); err != nil {
		return fmt.Errorf("deleting ref %s: %w", name, err)
	}
	file := filepath.Join(common, name)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting ref: %w", err)
	}
	return durable.SyncDir(filepath.Dir(file))
}

// unpackRef takes a ref out of packed-refs under git's lock of that file.
func unpackRef(ctx context.Context, common, name string) error {
	if h, err := packedRef(common, name); err != nil || h.IsZero() {
		return err
	}
	file := filepath.Join(common, "packed-refs")
	next := filepath.Join(common, "muntin", "packed-refs.next")
	if err := writeSynced(next, ""); err != nil {
		return err
	}
	defer os.Remove(next)
	if err := waitForLock(ctx, next, file+".lock"); err != nil {
		return err
	}
	defer dropStale(file+".lock", next)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out strings.Builder
	dropping := false
	for line := range bytes.Lines(text) {
		if line[0] != '^' { // a line with "^" belongs to the ref above it
			_, ref, _ := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
			dropping = ref == name
		}
		if !dropping {
			out.Write(line)
		}
	}
	f, err := os.OpenFile(file+".lock", os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(out.String())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return durable.Rename(file+".lock", file)
}

// listRefs returns the names of all refs with the prefix, sorted.
func listRefs(repo state.Repo, prefix string) ([]string, error) {
	seen := map[string]bool{}
	err := eachPacked(repo.CommonDir, func(ref string, _ plumbing.Hash) {
		if strings.HasPrefix(ref, prefix) {
			seen[ref] = true
		}
	})
	if err != nil {
		return nil, err
	}
	top := filepath.Join(repo.CommonDir, filepath.FromSlash(prefix[:strings.LastIndexByte(prefix, '/')]))
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		rel, err := filepath.Rel(repo.CommonDir, path)
		if ref := filepath.ToSlash(rel); err == nil && strings.HasPrefix(ref, prefix) {
			seen[ref] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing refs: %w", err)
	}
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
