package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// packReader reads objects of a repository: loose ones, those in packs, and
// those of its alternates. It is built on go-git's formats and not on its
// storage, which brings a configuration parser that costs a millisecond at
// every start of the program. It sees the packs that were there when it was
// first asked for a packed object.
type packReader struct {
	folders []string // objects folders, the repository's own first
	packs   []*pack  // nil until wanted
	cache   cache.Object
}

// A pack is one packfile with its index.
type pack struct {
	*packfile.Packfile
	index *idxfile.MemoryIndex
}

// maxAlternates bounds the chain of objects/info/alternates, as git does.
const maxAlternates = 5

func newPackReader(objects string) *packReader {
	return &packReader{folders: alternates(objects, 0, nil), cache: cache.NewObjectLRU(4 * cache.MiByte)}
}

// alternates lists an objects folder and those it borrows from (gitrepository-layout(5)).
func alternates(folder string, depth int, seen []string) []string {
	if slices.Contains(seen, folder) || depth > maxAlternates {
		return seen
	}
	seen = append(seen, folder)
	b, err := os.ReadFile(filepath.Join(folder, "info", "alternates"))
	if err != nil {
		return seen
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(folder, line)
		}
		seen = alternates(filepath.Clean(line), depth+1, seen)
	}
	return seen
}

func (r *packReader) close() {
	for _, p := range r.packs {
		_ = p.Close() // it was only read
	}
	r.packs = nil
}

// has tells whether an object is there.
func (r *packReader) has(h plumbing.Hash) bool {
	for _, folder := range r.folders {
		if info, err := os.Lstat(loosePath(folder, h)); err == nil && info.Size() > 0 {
			return true
		}
	}
	if r.open() != nil {
		return false
	}
	return slices.ContainsFunc(r.packs, func(p *pack) bool {
		ok, err := p.index.Contains(h)
		return err == nil && ok
	})
}

// get reads an object of a kind. The error matches plumbing.ErrObjectNotFound
// when there is none.
func (r *packReader) get(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, folder := range r.folders {
		obj, err := readLoose(loosePath(folder, h))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("loose object %s: %w", h, err)
		}
		return ofKind(obj, kind)
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	for _, p := range r.packs {
		offset, err := p.index.FindOffset(h)
		if err != nil {
			continue
		}
		obj, err := p.GetByOffset(offset)
		if err != nil {
			return nil, fmt.Errorf("packed object %s: %w", h, err)
		}
		return ofKind(obj, kind)
	}
	return nil, plumbing.ErrObjectNotFound
}

func ofKind(obj plumbing.EncodedObject, kind plumbing.ObjectType) (plumbing.EncodedObject, error) {
	if kind != plumbing.AnyObject && obj.Type() != kind {
		return nil, plumbing.ErrObjectNotFound
	}
	return obj, nil
}

// open opens the packs, the youngest first: what is asked for is mostly new.
func (r *packReader) open() error {
	if r.packs != nil {
		return nil
	}
	packs := []*pack{}
	for _, folder := range r.folders {
		dir := filepath.Join(folder, "pack")
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing packs: %w", err)
		}
		slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return modTime(b).Compare(modTime(a)) })
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ".idx")
			if !ok || !strings.HasPrefix(name, "pack-") {
				continue
			}
			p, err := openPack(osfs.New(dir, osfs.WithBoundOS()), name, r.cache)
			if errors.Is(err, os.ErrNotExist) {
				continue // a gc took it away meanwhile
			}
			if err != nil {
				return fmt.Errorf("opening %s: %w", filepath.Join(dir, name), err)
			}
			packs = append(packs, p)
		}
	}
	r.packs = packs
	return nil
}

func openPack(dir billy.Filesystem, name string, objects cache.Object) (*pack, error) {
	f, err := dir.Open(name + ".idx")
	if err != nil {
		return nil, err
	}
	index := idxfile.NewMemoryIndex()
	err = idxfile.NewDecoder(bufio.NewReader(f)).Decode(index)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	file, err := dir.Open(name + ".pack")
	if err != nil {
		return nil, err
	}
	// Without a file system it gives objects that are whole, and in memory.
	return &pack{index: index, Packfile: packfile.NewPackfileWithCache(index, nil, file, objects, 0)}, nil
}

// readLoose reads a loose object whole.
func readLoose(path string) (plumbing.EncodedObject, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := objfile.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	kind, size, err := r.Header()
	if err != nil {
		return nil, err
	}
	obj := &plumbing.MemoryObject{}
	obj.SetType(kind)
	obj.SetSize(size)
	if _, err := io.Copy(obj, r); err != nil {
		return nil, err
	}
	return obj, nil
}

func modTime(e os.DirEntry) time.Time {
	info, err := e.Info()
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func loosePath(objects string, h plumbing.Hash) string {
	hex := h.String()
	return filepath.Join(objects, hex[:2], hex[2:])
}
