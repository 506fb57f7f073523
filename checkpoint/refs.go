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
)

// Refs are read and moved as git itself does (gitglossary, files backend):
// a loose file, else a line of packed-refs; a change holds <ref>.lock and
// renames it over the loose file. go-git does not look at these locks.

// namespace is where all our refs live. They are shared by all worktrees: the
// per-worktree refs of a linked worktree are not safe from a gc elsewhere.
const namespace = "refs/muntin/"

// labels is where names for single checkpoints live: refs to their commits.
const labels = namespace + "labels/"

// chains is where the chains of runs live, one level deeper than all other refs.
const chains = namespace + "checkpoints/"

const (
	lockWait  = 5 * time.Second // for a ref's lock that git holds
	lockPoll  = 5 * time.Millisecond
	lockStale = 10 * time.Second // a lock in our namespace that old belongs to no living process
)

// errMoved says that a ref had not the expected value.
var errMoved = errors.New("ref was moved by another process")

// checkRef accepts the names below refs/muntin/ that git check-ref-format
// accepts. Their depth is fixed, refs/muntin/checkpoints/<run>/<agent> and
// refs/muntin/<kind>/<name>, so that no ref is in the way of another's folder.
func checkRef(name string) error {
	rest, ok := strings.CutPrefix(name, namespace)
	if !ok {
		return fmt.Errorf("checking ref %q: it must begin with %s", name, namespace)
	}
	parts := strings.Split(rest, "/")
	depth := 2
	if strings.HasPrefix(name, chains) {
		depth = 3
	}
	if len(parts) != depth {
		return fmt.Errorf("checking ref %q: want refs/muntin/checkpoints/<run>/<agent> or refs/muntin/<kind>/<name>", name)
	}
	for _, part := range parts {
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
func (s *Store) readRef(name string) (plumbing.Hash, error) { return readRef(s.where.Path, name) }

// moveRef moves a ref of the store, durably.
func (s *Store) moveRef(ctx context.Context, m refMove) error {
	m.perm = s.odb.perm
	return moveRef(ctx, s.where.Path, m)
}

// syncRef makes the last moves of a ref of the store durable.
func (s *Store) syncRef(name string) error {
	return durable.SyncDir(filepath.Dir(filepath.Join(s.where.Path, name)))
}

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
	found, err := packedName(common, name)
	h, _ := parseHash(found)
	return h, err
}

// packedName is packedRef for any kind of hash; "" for none.
func packedName(common, name string) (string, error) {
	var found string
	err := eachPacked(common, func(ref, hash string) {
		if ref == name {
			found = hash
		}
	})
	return found, err
}

func eachPacked(common string, fn func(ref, hash string)) error {
	text, err := readOptional(filepath.Join(common, "packed-refs"))
	if err != nil {
		return fmt.Errorf("reading packed refs: %w", err)
	}
	for line := range bytes.Lines(text) {
		hash, ref, ok := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
		if ok && isHash(hash) {
			fn(ref, hash)
		}
	}
	return nil
}

// A refMove is a change of a ref from one value to another; zero: no such ref.
type refMove struct {
	name      string
	old, next plumbing.Hash
	perm      sharing
	ready     func() error // called before the move, with the ref locked; nil: nothing to wait for
	soon      bool         // the move need not be durable yet: the caller syncs the ref's folder
}

// moveRef sets a ref to its next value if it has the old one now, else it
// returns errMoved. The new value is durable, unless the move says soon.
func moveRef(ctx context.Context, common string, m refMove) error {
	l, err := lockRef(ctx, common, m, m.next.String()+"\n")
	if err != nil {
		return err
	}
	defer l.unlock()
	now, err := readRef(common, m.name)
	if err != nil {
		return err
	}
	if now != m.old {
		return fmt.Errorf("moving ref %s: %w", m.name, errMoved)
	}
	if m.ready != nil {
		if err := m.ready(); err != nil {
			return err
		}
	}
	file := filepath.Join(common, m.name)
	// An empty folder may be left of deleted refs, as git removes it too.
	if isDir(file) {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("moving ref: %w", err)
		}
	}
	if m.soon {
		return l.move()
	}
	return l.commit()
}

// A refLock is git's lock on a file, held by us. There is one at a time.
type refLock struct {
	file   string // what is locked; the lock is file+".lock"
	mark   string // a file of ours that the lock is a hard link to
	copied bool   // there are no hard links here: the lock is a copy of mark
	ours   *durable.Held
}

// lockRef takes git's lock on a ref with content as the value to be. The
// lock is a hard link to a file of ours, so that the lock of a process that
// was killed can be told from git's.
func lockRef(ctx context.Context, common string, m refMove, content string) (*refLock, error) {
	wrap := func(err error) error { return fmt.Errorf("locking ref %s: %w", m.name, err) }
	dir := filepath.Join(common, "muntin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, wrap(err)
	}
	ours, err := durable.Lock(ctx, filepath.Join(dir, "refs.lock"))
	if err != nil {
		return nil, wrap(err)
	}
	l := &refLock{file: filepath.Join(common, m.name), mark: filepath.Join(dir, "ref.next"), ours: ours}
	dropStale(l.file+".lock", l.mark)
	err = writeSynced(l.mark, content)
	if err == nil {
		err = m.perm.adjust(l.mark)
	}
	if err == nil {
		err = l.wait(ctx, common, m.perm)
	}
	if err != nil {
		return nil, errors.Join(wrap(err), ours.Unlock())
	}
	return l, nil
}

// commit makes the content the ref's value, durably.
func (l *refLock) commit() error {
	if err := l.move(); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(l.file))
}

// move makes the content the ref's value.
func (l *refLock) move() error {
	l.copied = false
	if err := os.Rename(l.file+".lock", l.file); err != nil {
		return fmt.Errorf("moving ref: %w", err)
	}
	return nil
}

// unlock ends the lock. It is still there only if there was no commit. What
// cannot be removed now is known by its mark to the next process.
func (l *refLock) unlock() {
	if l.copied {
		_ = os.Remove(l.file + ".lock")
	}
	dropStale(l.file+".lock", l.mark)
	_ = os.Remove(l.mark)
	_ = l.ours.Unlock()
}

// wait makes the lock, waiting while git holds it.
func (l *refLock) wait(ctx context.Context, common string, perm sharing) error {
	lock := l.file + ".lock"
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		if err := makeRefDir(common, filepath.Dir(lock), perm); err != nil {
			return err
		}
		var err error
		if l.copied, err = linkOrCopy(l.mark, lock); err == nil {
			return nil
		}
		// In our own namespace git holds a lock for moments, so an old one is
		// left of a process that was killed where there are no hard links.
		if info, e := os.Stat(lock); e == nil && time.Since(info.ModTime()) > lockStale && within(lock, filepath.Join(common, namespace)) {
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

// makeRefDir makes the folder of a ref, durably: a ref whose folder is lost
// with the power is lost, too.
func makeRefDir(common, dir string, perm sharing) error {
	if dir == common || isDir(dir) {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := makeRefDir(common, parent, perm); err != nil {
		return err
	}
	if err := perm.mkdir(dir); err != nil {
		return err
	}
	return durable.SyncDir(parent)
}

// linkOrCopy makes to a hard link of from, or a copy where the file system has no links.
func linkOrCopy(from, to string) (copied bool, err error) {
	err = os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	text, readErr := os.ReadFile(from)
	if readErr != nil {
		return false, errors.Join(err, readErr)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as git's
	if err != nil {
		return false, err
	}
	_, err = f.Write(text)
	return true, errors.Join(err, f.Sync(), f.Close())
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
	l, err := lockRef(ctx, common, refMove{name: name}, "")
	if err != nil {
		return err
	}
	defer l.unlock()
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
	if err := os.Remove(l.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting ref: %w", err)
	}
	return durable.SyncDir(filepath.Dir(l.file))
}

// unpackRef takes a ref out of packed-refs under git's lock of that file. The
// caller holds our lock on refs.
func unpackRef(ctx context.Context, common, name string) error {
	if h, err := packedRef(common, name); err != nil || h.IsZero() {
		return err
	}
	file := filepath.Join(common, "packed-refs")
	l := &refLock{file: file, mark: filepath.Join(common, "muntin", "packed-refs.next")}
	dropStale(file+".lock", l.mark)
	if err := writeSynced(l.mark, ""); err != nil {
		return err
	}
	defer os.Remove(l.mark)
	if err := l.wait(ctx, common, sharing{}); err != nil {
		return err
	}
	defer func() {
		if l.copied {
			_ = os.Remove(file + ".lock")
		}
		dropStale(file+".lock", l.mark)
	}()
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file+".lock", os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(withoutRef(text, name))
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return l.commit()
}

// withoutRef is the text of packed-refs without one ref.
func withoutRef(text []byte, name string) string {
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
	return out.String()
}

// listRefs returns the names of all refs with the prefix, sorted.
func listRefs(common, prefix string) ([]string, error) {
	seen := map[string]bool{}
	err := eachPacked(common, func(ref, _ string) {
		if strings.HasPrefix(ref, prefix) {
			seen[ref] = true
		}
	})
	if err != nil {
		return nil, err
	}
	top := filepath.Join(common, filepath.FromSlash(prefix[:strings.LastIndexByte(prefix, '/')]))
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		rel, err := filepath.Rel(common, path)
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
