package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"muntin/internal/durable"
	"muntin/internal/state"
)

// objects is the repository's object store, through go-git's storage layer.
// write may be called from several goroutines, the others may not.
type objects struct {
	root string // the objects folder
	dir  *dotgit.DotGit
	read *filesystem.ObjectStorage

	mu      sync.Mutex // guards dir and fresh
	fresh   []string   // files written since the last sync
	folders map[string]bool

	trees map[plumbing.Hash][]treeEntry // parsed trees, see tree.go
}

func openObjects(repo state.Repo) *objects {
	fs := osfs.New(repo.CommonDir)
	dir := dotgit.NewWithOptions(fs, dotgit.Options{AlternatesFS: osfs.New("/")})
	return &objects{
		root: filepath.Join(repo.CommonDir, "objects"),
		dir:  dir,
		read: filesystem.NewObjectStorageWithOptions(dotgit.NewWithOptions(fs, dotgit.Options{AlternatesFS: osfs.New("/")}),
			cache.NewObjectLRU(4*cache.MiByte), filesystem.Options{}),
		folders: map[string]bool{},
		trees:   map[plumbing.Hash][]treeEntry{},
	}
}

func (o *objects) file(h plumbing.Hash) string {
	hex := h.String()
	return filepath.Join(o.root, hex[:2], hex[2:])
}

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
	o.mu.Lock()
	w, err := o.dir.NewObject()
	o.mu.Unlock()
	if err != nil {
		return fmt.Errorf("writing object %s: %w", h, err)
	}
	err = w.WriteHeader(kind, int64(len(content)))
	if err == nil {
		_, err = w.Write(content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("writing object %s: %w", h, err)
	}
	o.written(file)
	return nil
}

func (o *objects) written(file string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fresh = append(o.fresh, file)
	o.folders[filepath.Dir(file)] = true
}

// sync makes all objects written so far survive a power loss. A ref must not
// point to them before: a ref to a missing object breaks the user's fetch and gc.
func (o *objects) sync() error {
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
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for dir := range o.folders {
		if err := durable.SyncDir(dir); err != nil {
			return err
		}
	}
	if len(o.folders) > 0 {
		if err := durable.SyncDir(o.root); err != nil {
			return err
		}
	}
	o.fresh = o.fresh[:0]
	clear(o.folders)
	return nil
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
	if info, err := os.Lstat(o.file(h)); err == nil && info.Size() > 0 {
		return true
	}
	if o.read.HasEncodedObject(h) == nil {
		return true
	}
	o.reopen()
	return o.read.HasEncodedObject(h) == nil
}

// get reads an object, looking at the packs again if a gc moved it.
func (o *objects) get(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	obj, err := o.read.EncodedObject(kind, h)
	if err != nil {
		o.reopen()
		obj, err = o.read.EncodedObject(kind, h)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	return obj, nil
}

func (o *objects) reopen() {
	fs := osfs.New(filepath.Dir(o.root))
	o.read = filesystem.NewObjectStorageWithOptions(dotgit.NewWithOptions(fs, dotgit.Options{AlternatesFS: osfs.New("/")}),
		cache.NewObjectLRU(4*cache.MiByte), filesystem.Options{})
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
