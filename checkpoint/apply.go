package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// An applier carries out the ops of a plan.
type applier struct {
	store *Store
	now   *snapshot // what the ops start from
	root  int       // open folder
	total int       // ops
	bulk  bool      // many files: one sync for all, before they are renamed

	begun  func() error   // waits until the worktree may be changed; new files beside their places are no change
	synced errgroup.Group // makes the changes durable

	blobs sync.Mutex // held while a blob is read: the object store takes one reader at a time

	mu        sync.Mutex      // guards what follows
	done      int             // ops
	dirs      map[string]bool // folders to sync
	ready     []readyFile     // written beside their places, to be renamed
	written   []string
	deleted   []string
	conflicts []PathNote
}

// A readyFile waits for its rename.
type readyFile struct {
	op   op
	temp string
}

const (
	// bulkFiles bounds how many files wait for their renames.
	bulkFiles = 256
	// applyWorkers write files at once: most of the time they wait for the
	// file system, which commits syncs that wait together as one.
	applyWorkers = 8
)

// errConflict says that a path is not in the state that the op starts from.
var errConflict = errors.New("changed by another process while restoring")

// apply carries out ops, the first of them when begun has returned. A path
// that is not as expected is left alone and becomes a conflict; any other error
// ends it. The caller waits for the applier's synced, unless there was an error.
func (s *Store) apply(ctx context.Context, now *snapshot, ops []op, begun func() error) (*applier, error) {
	a := &applier{store: s, now: now, total: len(ops), dirs: map[string]bool{}, begun: begun}
	var err error
	if a.root, err = openRoot(s.repo.Root); err != nil {
		return nil, fmt.Errorf("opening worktree: %w", err)
	}
	if err := a.carryOut(ctx, ops); err != nil {
		_ = unix.Close(a.root)
		return a, err
	}
	a.synced.Go(func() error {
		defer unix.Close(a.root)
		return a.sync()
	})
	return a, nil
}

func (a *applier) carryOut(ctx context.Context, ops []op) error {
	// Deletions first, the deepest first, so that folders can become files and
	// files folders, and so that names that differ only in case do not meet.
	var puts []op
	for _, o := range slices.Backward(ops) {
		if o.new.mode != 0 {
			puts = append(puts, o)
			continue
		}
		if err := a.step(ctx, o, a.remove); err != nil {
			return err
		}
	}
	slices.Reverse(puts)
	a.bulk = canSyncAll && len(puts) >= manyFiles
	for batch := range slices.Chunk(puts, bulkFiles) {
		err := each(batch, func(o op) error { return a.step(ctx, o, a.put) })
		if err == nil {
			err = a.rename(ctx)
		}
		if err != nil {
			return errors.Join(err, a.store.dropTemps(ops))
		}
	}
	return nil
}

// each calls fn for all items, several at once, and returns the first error.
// After an error the items that were not begun are left out.
func each[T any](items []T, fn func(T) error) error {
	var group errgroup.Group
	group.SetLimit(applyWorkers)
	var failed atomic.Bool
	for _, item := range items {
		group.Go(func() error {
			if failed.Load() {
				return nil
			}
			err := fn(item)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return group.Wait()
}

// locked changes what the mutex guards.
func (a *applier) locked(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// rename puts the files that are ready in their places.
func (a *applier) rename(ctx context.Context) error {
	if a.bulk && len(a.ready) > 0 {
		if err := syncAll(a.root); err != nil {
			return fmt.Errorf("syncing worktree: %w", err)
		}
	}
	a.reached("files written")
	if err := a.begun(); err != nil {
		return err
	}
	ready := a.ready
	a.ready = nil
	return each(ready, func(f readyFile) error {
		return a.step(ctx, f.op, func(_ context.Context, dir int, o op) error {
			if err := a.place(dir, f); err != nil {
				return err
			}
			a.locked(func() {
				a.dirs[path.Dir(o.path)] = true
				a.written = append(a.written, o.path)
			})
			a.reached("file in place")
			a.progress()
			return nil
		})
	})
}

// progress tells that an op is done.
func (a *applier) progress() {
	a.locked(func() {
		a.done++
		a.store.progress(Progress{What: "restoring", Done: a.done, Total: a.total})
	})
}

// step runs one op in its open folder.
func (a *applier) step(ctx context.Context, o op, run func(context.Context, int, op) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir, err := a.folder(path.Dir(o.path), o.new.mode != 0)
	if err == nil {
		defer unix.Close(dir)
		err = run(ctx, dir, o)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errConflict):
		a.locked(func() { a.conflicts = append(a.conflicts, PathNote{Path: o.path, Why: err.Error()}) })
		return nil
	}
	return fmt.Errorf("restoring %s: %w", o.path, err)
}

// folder opens the folder of a path, making it and those above it if asked.
func (a *applier) folder(rel string, create bool) (int, error) {
	if rel == "." {
		rel = ""
	}
	fd, err := openDir(a.root, rel)
	if err == nil {
		return fd, nil
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || !create && errors.Is(err, fs.ErrNotExist) {
		return -1, errConflict
	}
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return -1, err
	}
	parent, err := a.folder(path.Dir(rel), true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	if err := unix.Mkdirat(parent, path.Base(rel), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return -1, err
	}
	a.locked(func() { a.dirs[path.Dir(rel)] = true })
	return openDir(a.root, rel)
}

// expect checks that the path is still as the op starts from, and returns its stat data.
func (a *applier) expect(dir int, o op) (statKey, error) {
	name := path.Base(o.path)
	st, err := lstatAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		if o.old.mode != 0 {
			return statKey{}, errConflict
		}
		return statKey{}, nil
	}
	if err != nil {
		return statKey{}, err
	}
	key := statKeyOf(&st)
	if o.old.mode == 0 {
		if key.isDir() && o.new.mode != 0 {
			return key, a.removeEmpty(dir, name)
		}
		return key, errConflict
	}
	return key, a.matches(dir, name, o, key)
}

// matches checks that a name in an open folder, whose stat data are key, holds
// what the op starts from. Without a ctime in key the file has another name than it had.
func (a *applier) matches(dir int, name string, o op, key statKey) error {
	e := a.now.root.lookup(o.path)
	if e == nil || e.mode == modeDir {
		return errConflict
	}
	want := e.stat
	if key.ctime == 0 {
		want = want.moved()
	}
	if want != key {
		return errConflict
	}
	if !e.racy {
		return nil
	}
	at, err := stateAt(dir, name)
	if err == nil && !at.is(o.old) {
		return errConflict
	}
	return err
}

// removeEmpty removes a folder that has only folders in it.
func (a *applier) removeEmpty(dir int, name string) error {
	fd, err := retry(func() (int, error) { return unix.Openat(dir, name, dirFlags, 0) })
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, d := range list {
		if !d.IsDir() {
			return errConflict
		}
		if err := a.removeEmpty(fd, d.Name()); err != nil {
			return err
		}
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// remove deletes a file, and the folders above it that became empty by that.
func (a *applier) remove(_ context.Context, dir int, o op) error {
	if err := a.begun(); err != nil {
		return err
	}
	if _, err := a.expect(dir, o); err != nil {
		return err
	}
	if err := a.takeAway(dir, o); err != nil {
		return err
	}
	at := path.Dir(o.path)
	for ; at != "."; at = path.Dir(at) {
		parent, err := a.folder(path.Dir(at), false)
		if err != nil {
			return err
		}
		err = unix.Unlinkat(parent, path.Base(at), unix.AT_REMOVEDIR)
		_ = unix.Close(parent)
		if err != nil {
			break // not empty, or not ours to remove
		}
		a.locked(func() { delete(a.dirs, at) })
	}
	a.locked(func() {
		a.dirs[at] = true
		a.deleted = append(a.deleted, o.path)
	})
	a.reached("file deleted")
	a.progress()
	return nil
}

// put writes a file or symlink beside its place, to be renamed there.
func (a *applier) put(ctx context.Context, dir int, o op) error {
	key, err := a.expect(dir, o)
	if err != nil {
		return err
	}
	name := path.Base(o.path)
	if isFile(o.old.mode) && isFile(o.new.mode) && o.old.hash == o.new.hash {
		if err := a.chmod(dir, name, key, o.new.mode); err != nil {
			return err
		}
		a.locked(func() { a.written = append(a.written, o.path) })
		a.progress()
		return nil
	}
	temp := o.tempName()
	if o.new.mode == modeSymlink {
		var target []byte
		if target, err = a.content(ctx, o.new.hash); err == nil {
			err = unix.Symlinkat(string(target), dir, temp)
		}
	} else {
		err = a.writeFile(ctx, newFile{dir: dir, name: temp, was: key, to: o.new})
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temp, 0) // it may not be there
		return err
	}
	a.locked(func() { a.ready = append(a.ready, readyFile{op: o, temp: temp}) })
	a.reached("file written")
	return nil
}

// content reads a blob.
func (a *applier) content(ctx context.Context, h plumbing.Hash) ([]byte, error) {
	a.blobs.Lock()
	defer a.blobs.Unlock()
	return a.store.blob(ctx, h)
}

// A newFile is a file to be made, in the open folder dir.
type newFile struct {
	dir  int
	name string
	was  statKey // the file that it will replace
	to   fileState
}

// writeFile writes a blob to a new file. The permissions of the file that it
// will replace are kept, but for the executable bits.
func (a *applier) writeFile(ctx context.Context, n newFile) error {
	perm := uint32(0o666)
	if n.to.mode == modeExec {
		perm = 0o777
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(n.dir, n.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
	})
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), n.name)
	a.blobs.Lock()
	err = a.store.copyBlob(ctx, f, n.to.hash)
	a.blobs.Unlock()
	if err == nil && n.was.isRegular() {
		err = unix.Fchmod(fd, a.store.permissions(n.was, n.to.mode))
	}
	if err == nil && !a.bulk {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// permissions are those of a file with the executable bits of a mode.
func (s *Store) permissions(was statKey, mode uint32) uint32 {
	perm := was.mode & 0o777
	switch {
	case !s.conf.fileMode:
	case mode == modeExec:
		perm |= perm & 0o444 >> 2
		perm |= 0o100
	default:
		perm &^= 0o111
	}
	return perm
}

func (a *applier) chmod(dir int, name string, was statKey, mode uint32) error {
	if err := a.begun(); err != nil {
		return err
	}
	fd, err := retry(func() (int, error) { return unix.Openat(dir, name, fileFlags, 0) })
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, a.store.permissions(was, mode))
}

// sync makes the names durable in all folders that changed.
func (a *applier) sync() error {
	if a.bulk {
		if err := syncAll(a.root); err != nil {
			return fmt.Errorf("syncing worktree: %w", err)
		}
		return nil
	}
	return each(slices.Collect(maps.Keys(a.dirs)), func(dir string) error {
		fd, err := a.folder(dir, false)
		if errors.Is(err, errConflict) {
			return nil // the folder is gone
		}
		if err != nil {
			return fmt.Errorf("syncing folder %s: %w", dir, err)
		}
		err = unix.Fsync(fd)
		_ = unix.Close(fd)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
			return fmt.Errorf("syncing folder %s: %w", dir, err)
		}
		return nil
	})
}

// copyBlob writes a blob's content to w.
func (s *Store) copyBlob(ctx context.Context, w io.Writer, h plumbing.Hash) error {
	obj, err := s.odb.get(plumbing.BlobObject, h)
	if err != nil {
		// A partial clone: git fetches it.
		content, gitErr := s.git.run(ctx, "", nil, "cat-file", "blob", h.String())
		if gitErr != nil {
			return errors.Join(err, gitErr)
		}
		_, err = w.Write(content)
		return err
	}
	r, err := obj.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}

// blob reads a whole blob.
func (s *Store) blob(ctx context.Context, h plumbing.Hash) ([]byte, error) {
	var b bytes.Buffer
	err := s.copyBlob(ctx, &b, h)
	return b.Bytes(), err
}
