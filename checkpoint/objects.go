package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"

	"muntin/internal/durable"
	"muntin/internal/state"
)

// objects is the repository's object store, through go-git's formats. write
// may be called from several goroutines, the others may not.
type objects struct {
	root string // the objects folder
	read *packReader

	mu    sync.Mutex // guards fresh
	fresh []string   // files written since the last sync

	trees map[plumbing.Hash][]treeEntry // parsed trees, see tree.go
}

func openObjects(repo state.Repo) *objects {
	root := filepath.Join(repo.CommonDir, "objects")
	return &objects{root: root, read: newPackReader(root), trees: map[plumbing.Hash][]treeEntry{}}
}

func (o *objects) file(h plumbing.Hash) string { return loosePath(o.root, h) }

// write stores an object and returns its hash. The object is durable after
// the next sync.
func (o *objects) write(kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	h := plumbing.ComputeHash(kind, content)
	return h, o.writeAs(h, kind, content)
}

// writeAs is write for a content whose hash is known.
func (o *objects) writeAs(h plumbing.Hash, kind plumbing.ObjectType, content []byte) error {
	file := o.file(h)
	if info, err := os.Lstat(file); err == nil {
		if info.Size() > 0 {
			// A gc that runs now spares what is young, as it would a new object.
			now := time.Now()
			if err := os.Chtimes(file, now, now); err == nil {
				o.written(file)
				return nil
			}
		}
		if err := os.Remove(file); err != nil { // emptied by a power loss: write it again
			return fmt.Errorf("replacing broken object %s: %w", h, err)
		}
	}
	err := o.create(file, kind, content)
	if errors.Is(err, fs.ErrNotExist) {
		err = o.create(file, kind, content) // a gc removed the empty folder just now
	}
	if err != nil {
		return fmt.Errorf("writing object %s: %w", h, err)
	}
	o.written(file)
	return nil
}

// create writes an object's file as git does: under a temporary name that gc
// knows, read-only, and then in its place.
func (o *objects) create(file string, kind plumbing.ObjectType, content []byte) (err error) {
	if err := os.Mkdir(filepath.Dir(file), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.CreateTemp(o.root, "tmp_obj_*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	w := objfile.NewWriter(f)
	err = w.WriteHeader(kind, int64(len(content)))
	if err == nil {
		_, err = w.Write(content)
	}
	if err = errors.Join(err, w.Close(), f.Chmod(0o444), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func (o *objects) written(file string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fresh = append(o.fresh, file)
}

// manyFiles is from how many files on one sync of the whole file system is
// cheaper than one a file.
const manyFiles = 32

// sync makes all objects written so far survive a power loss. A ref must not
// point to them before: a ref to a missing object breaks the user's fetch and gc.
func (o *objects) sync() error {
	if len(o.fresh) == 0 {
		return nil
	}
	dir, err := os.Open(o.root)
	if err != nil {
		return fmt.Errorf("syncing objects: %w", err)
	}
	defer dir.Close()
	if canSyncAll && len(o.fresh) >= manyFiles {
		err = syncAll(int(dir.Fd()))
	} else if err = o.syncEach(); err == nil {
		// The names were in place before the files' syncs, whose journal holds
		// them; this is for file systems that need to be told. Git does not sync them at all.
		err = durable.SyncDir(o.root)
	}
	if err != nil {
		return fmt.Errorf("syncing objects: %w", err)
	}
	o.fresh = o.fresh[:0]
	return nil
}

func (o *objects) syncEach() error {
	const workers = 8 // the file system commits syncs that wait together as one
	next := make(chan string)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for file := range next {
				if err := syncFile(file); err != nil && errs[i] == nil {
					errs[i] = err
				}
			}
		})
	}
	for _, file := range o.fresh {
		next <- file
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// syncFile syncs an object's file; one that a gc packed meanwhile is durable.
func syncFile(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("syncing object: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing object %s: %w", file, err)
	}
	return nil
}

// has tells whether an object is in the repository.
func (o *objects) has(h plumbing.Hash) bool {
	if o.read.has(h) {
		return true
	}
	o.reopen()
	return o.read.has(h)
}

// get reads an object, looking at the packs again if a gc moved it.
func (o *objects) get(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	obj, err := o.read.get(kind, h)
	if err != nil {
		o.reopen()
		obj, err = o.read.get(kind, h)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	return obj, nil
}

// reopen forgets what is known about packs.
func (o *objects) reopen() {
	o.read.close()
	o.read = newPackReader(o.root)
}

// content reads a whole object.
func (o *objects) content(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	obj, err := o.get(kind, h)
	if err != nil {
		return nil, err
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	return b, nil
}
