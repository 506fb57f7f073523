package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
)

// objects is an object store in git's formats. New objects wait in a batch,
// where this store already finds them; sync puts them on disk, few as loose
// files and many as one pack, and settle ends the time in which they need a
// guard against gc. write may be called from several goroutines, the others may not.
type objects struct {
	root string // the objects folder
	perm sharing
	read *packReader

	// fetch gets an object that a partial clone has not got yet; nil: there is nowhere to get it.
	fetch func(plumbing.ObjectType, plumbing.Hash) ([]byte, error)

	mu    sync.Mutex // guards fresh and batch
	fresh []string   // loose files written since the last sync
	batch batch

	loose map[plumbing.Hash]memObject // objects of the last sync that are loose, until settle
	keeps []string                    // .keep files of new packs, until settle

	trees map[plumbing.Hash][]treeEntry // parsed trees, see tree.go
	known map[plumbing.Hash]bool        // objects that are here and that a ref holds: not written again

	zippers sync.Pool // of *zlib.Writer, see zip
}

// openObjects opens the objects folder of a git folder.
func openObjects(common string) *objects {
	root := filepath.Join(common, "objects")
	return &objects{root: root, read: newPackReader(root), trees: map[plumbing.Hash][]treeEntry{}, loose: map[plumbing.Hash]memObject{}}
}

func (o *objects) file(h plumbing.Hash) string { return loosePath(o.root, h) }

// write takes an object in and returns its hash. The object is on disk and
// durable after the next sync.
func (o *objects) write(kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	h := plumbing.ComputeHash(kind, content)
	return h, o.writeAs(h, kind, content)
}

// writeAs is write for a content whose hash is known. It keeps no reference to content.
func (o *objects) writeAs(h plumbing.Hash, kind plumbing.ObjectType, content []byte) error {
	if err := o.add(h, kind, content); err != nil {
		return fmt.Errorf("writing object %s: %w", h, err)
	}
	return nil
}

// written tells of a loose file that the next sync must make durable.
func (o *objects) written(file string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fresh = append(o.fresh, file)
}

// manyFiles is from how many files on one sync of the whole file system is
// cheaper than one a file.
const manyFiles = 32

// sync puts all objects written so far on disk, so that they survive a power
// loss. A ref must not point to them before: a ref to a missing object breaks the user's fetch and gc.
func (o *objects) sync() error {
	if err := o.flush(); err != nil {
		return fmt.Errorf("writing objects: %w", err)
	}
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
	} else {
		err = o.syncEach()
	}
	if err != nil {
		return fmt.Errorf("syncing objects: %w", err)
	}
	o.fresh = o.fresh[:0]
	return nil
}

// settle ends a save: a ref holds the new objects now, or none ever will. A
// `git prune --expire=now` that looked at the refs before may have deleted loose ones: these are written again.
func (o *objects) settle() error {
	var errs []error
	for h, m := range o.loose {
		if _, err := os.Lstat(o.file(h)); errors.Is(err, fs.ErrNotExist) && !o.has(h) {
			errs = append(errs, o.writeLoose(h, m.kind, m.content))
		}
	}
	clear(o.loose)
	for _, keep := range o.keeps {
		if err := os.Remove(keep); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	o.keeps = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("settling objects: %w", err)
	}
	return nil
}

func (o *objects) syncEach() error {
	const workers = 8 // the file system commits syncs that wait together as one
	next := make(chan string)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range min(workers, len(o.fresh)) {
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
	// The names were in place before the files' syncs, whose journal holds
	// them; this is for file systems that need to be told. Git does not sync them at all.
	err := durable.SyncDir(o.root)
	wg.Wait()
	return errors.Join(append(errs, err)...)
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
	if o.waiting(h) || o.read.has(h) {
		return true
	}
	if !o.read.changed() {
		return false
	}
	o.reopen()
	return o.read.has(h)
}

// get reads an object, looking at the packs again if a gc moved it. Big blobs
// are not in memory: their Reader streams.
func (o *objects) get(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	obj, err := o.load(kind, h, true)
	if err != nil {
		return nil, err
	}
	return obj.encoded(), nil
}

// content reads a whole object.
func (o *objects) content(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	obj, err := o.load(kind, h, false)
	if err != nil {
		return nil, err
	}
	return obj.content, nil
}

func (o *objects) load(kind plumbing.ObjectType, h plumbing.Hash, big bool) (*object, error) {
	obj, err := o.find(h, big)
	if errors.Is(err, plumbing.ErrObjectNotFound) && o.fetch != nil {
		content, fetchErr := o.fetch(kind, h)
		if fetchErr != nil {
			return nil, fmt.Errorf("reading %s %s, which this partial clone has not got: %w", kind, h, fetchErr)
		}
		return &object{kind: kind, size: int64(len(content)), content: content}, nil
	}
	if err == nil && kind != plumbing.AnyObject && obj.kind != kind {
		err = fmt.Errorf("it is a %s", obj.kind)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	return obj, nil
}

func (o *objects) find(h plumbing.Hash, big bool) (*object, error) {
	if obj, err := o.readWaiting(h); obj != nil || err != nil {
		return obj, err
	}
	obj, err := o.read.get(h, big)
	if err != nil && (o.read.changed() || !errors.Is(err, plumbing.ErrObjectNotFound)) {
		o.reopen()
		obj, err = o.read.get(h, big)
	}
	return obj, err
}

// reopen looks for packs that came and went.
func (o *objects) reopen() {
	// A folder that cannot be listed now cannot be at the next look-up, which says so.
	_ = o.read.list()
}

// size is the room that an object takes on disk, 0 if it is not found.
func (o *objects) size(h plumbing.Hash, packed map[*pack]map[plumbing.Hash]int64) int64 {
	if info, err := os.Lstat(o.file(h)); err == nil {
		return info.Size()
	}
	p, _, err := o.read.find(h)
	if err != nil || p == nil {
		return 0
	}
	if packed[p] == nil {
		info, err := p.file.Stat()
		if err != nil {
			return 0
		}
		// An index with bad offsets has no sizes; verify is there to find it.
		packed[p], _ = p.index.sizes(info.Size())
	}
	return packed[p][h]
}

// readSized reads size bytes. It believes a large size only as far as there
// are bytes: it may come from a broken file.
func readSized(r io.Reader, size int64) ([]byte, error) {
	if size > maxInMemory {
		var b bytes.Buffer
		if n, err := io.CopyN(&b, r, size); err != nil {
			return nil, fmt.Errorf("%d of %d bytes: %w", n, size, err)
		}
		return b.Bytes(), nil
	}
	b := make([]byte, size)
	_, err := io.ReadFull(r, b)
	return b, err
}
