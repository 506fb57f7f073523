package checkpoint

import (
	"bufio"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// packReader reads objects of a repository: loose ones, those in packs, and
// those of its alternates. go-git's storage would read every pack's index
// whole, and a configuration parser costs it a millisecond at every start. It
// may be used by one goroutine at a time.
type packReader struct {
	folders []string         // objects folders, the repository's own first
	packs   []*pack          // the youngest first; nil until wanted
	listed  map[string]stamp // the pack folders as they were listed
	inPacks bool             // the last object was in a pack
	in      *bufio.Reader    // of what is inflated
	z       io.ReadCloser    // the inflater; both are used again and again
	bases   map[baseKey]*object
	kept    int // bytes in bases
}

// A stamp is a folder's time of change, and when it was looked at.
type stamp struct{ changed, seen time.Time }

// A baseKey names an object by where it lies.
type baseKey struct {
	pack   *pack
	offset int64
}

// A pack is one packfile, opened when something is looked up in it.
type pack struct {
	path  string // without ".pack"
	mtime time.Time
	index *packIndex
	file  *os.File
	gone  bool // deleted by a gc before it was opened, or not readable
}

const (
	maxAlternates = 5        // bounds the chain of objects/info/alternates, as git does
	maxBases      = 16 << 20 // bytes of delta bases kept
	maxDeltas     = 5000     // length of a chain of deltas; git's own limit is 4095
)

func newPackReader(objects string) *packReader {
	return &packReader{folders: alternates(objects, 0, nil), bases: map[baseKey]*object{}}
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
		p.close()
	}
	r.packs, r.listed = nil, nil
	clear(r.bases)
	r.kept = 0
}

func (p *pack) close() {
	if p.index != nil {
		p.index.close()
	}
	if p.file != nil {
		_ = p.file.Close() // it was only read
	}
	p.index, p.file = nil, nil
}

// has tells whether an object is there.
func (r *packReader) has(h plumbing.Hash) bool {
	for _, folder := range r.folders {
		if info, err := os.Lstat(loosePath(folder, h)); err == nil && info.Size() > 0 {
			return true
		}
	}
	p, _, err := r.find(h)
	return err == nil && p != nil
}

// get reads an object. The error matches plumbing.ErrObjectNotFound when
// there is none. big: blobs over maxInMemory are not read but can be streamed.
func (r *packReader) get(h plumbing.Hash, big bool) (*object, error) {
	// What is read one after the other mostly lies together.
	if r.inPacks && r.packs != nil {
		if obj, err := r.getPacked(h, big); obj != nil {
			return obj, err
		}
	}
	for _, folder := range r.folders {
		obj, err := r.readLoose(loosePath(folder, h), big)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("loose object %s: %w", h, err)
		}
		r.inPacks = false
		return obj, nil
	}
	obj, err := r.getPacked(h, big)
	r.inPacks = err == nil
	return obj, err
}

func (r *packReader) getPacked(h plumbing.Hash, big bool) (*object, error) {
	p, offset, err := r.find(h)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, plumbing.ErrObjectNotFound
	}
	obj, err := r.read(p, offset, readOptions{big: big})
	if err != nil {
		return nil, fmt.Errorf("packed object %s in %s: %w", h, p.path, err)
	}
	return obj, nil
}

// find looks an object up in the packs; without one, the pack is nil.
func (r *packReader) find(h plumbing.Hash) (*pack, int64, error) {
	if r.packs == nil {
		if err := r.list(); err != nil {
			return nil, 0, err
		}
	}
	for i, p := range r.packs {
		if !p.open() {
			continue
		}
		offset, ok, err := p.index.find(h)
		if err != nil {
			return nil, 0, fmt.Errorf("looking into %s: %w", p.path, err)
		}
		if ok {
			r.packs[0], r.packs[i] = p, r.packs[0] // the next one is likely to be there, too
			return p, offset, nil
		}
	}
	return nil, 0, nil
}

// list lists the packs, the youngest first: what is asked for is mostly new.
func (r *packReader) list() error {
	known := map[string]*pack{}
	for _, p := range r.packs {
		known[p.path] = p
	}
	packs := []*pack{}
	r.listed = map[string]stamp{}
	for _, folder := range r.folders {
		dir := filepath.Join(folder, "pack")
		info, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing packs: %w", err)
		}
		r.listed[dir] = stamp{changed: info.ModTime(), seen: time.Now()}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("listing packs: %w", err)
		}
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ".idx")
			if !ok || !strings.HasPrefix(name, "pack-") {
				continue
			}
			path := filepath.Join(dir, name)
			if p := known[path]; p != nil {
				delete(known, path)
				packs = append(packs, p)
			} else if info, err := e.Info(); err == nil { // else a gc took it away meanwhile
				packs = append(packs, &pack{path: path, mtime: info.ModTime()})
			}
		}
	}
	for _, p := range known {
		p.close()
	}
	slices.SortStableFunc(packs, func(a, b *pack) int { return b.mtime.Compare(a.mtime) })
	r.packs = packs
	return nil
}

// changed tells that packs may have come or gone since they were listed.
func (r *packReader) changed() bool {
	for dir, was := range r.listed {
		info, err := os.Stat(dir)
		if err != nil || !info.ModTime().Equal(was.changed) || was.seen.Sub(was.changed) < tick {
			return true
		}
	}
	return r.packs == nil || len(r.listed) == 0
}

// open makes the index ready. A pack that cannot be opened is as good as not
// there: its objects may be found elsewhere, as git has it.
func (p *pack) open() bool {
	if p.index != nil || p.gone {
		return !p.gone
	}
	index, err := openPackIndex(p.path + ".idx")
	if err != nil {
		p.gone = true
		return false
	}
	file, err := os.Open(p.path + ".pack")
	if err != nil {
		index.close()
		p.gone = true
		return false
	}
	p.index, p.file = index, file
	return true
}

// inflate gives a reader of compressed bytes that is good until the next call.
func (r *packReader) inflate(in io.Reader) (io.Reader, error) {
	var err error
	if r.z == nil {
		r.in = bufio.NewReader(in)
		r.z, err = zlib.NewReader(r.in)
		if err != nil {
			r.z = nil
			return nil, fmt.Errorf("inflating: %w", err)
		}
		return r.z, nil
	}
	r.in.Reset(in)
	if err = r.z.(zlib.Resetter).Reset(r.in, nil); err != nil {
		return nil, fmt.Errorf("inflating: %w", err)
	}
	return r.z, nil
}

type readOptions struct {
	big   bool
	depth int // of the chain of deltas so far
}

// read reads the object at an offset, through its chain of deltas.
func (r *packReader) read(p *pack, offset int64, o readOptions) (*object, error) {
	key := baseKey{p, offset}
	if obj := r.bases[key]; obj != nil {
		return obj, nil
	}
	h, err := readPackHeader(p.file, offset)
	if err != nil {
		return nil, err
	}
	if o.big && h.kind == plumbing.BlobObject && h.size > maxInMemory {
		return &object{kind: h.kind, size: h.size, open: func() (io.ReadCloser, error) { return p.stream(h) }}, nil
	}
	z, err := r.inflate(io.NewSectionReader(p.file, h.data, 1<<62))
	if err != nil {
		return nil, err
	}
	content, err := readSized(z, h.size)
	if err != nil {
		return nil, fmt.Errorf("inflating: %w", err)
	}
	obj := &object{kind: h.kind, size: h.size, content: content}
	if h.kind == plumbing.OFSDeltaObject || h.kind == plumbing.REFDeltaObject {
		if obj, err = r.undelta(p, h, content, o.depth); err != nil {
			return nil, err
		}
	}
	if o.depth > 0 || obj.kind != plumbing.BlobObject {
		r.keep(key, obj)
	}
	return obj, nil
}

// undelta applies a delta to its base.
func (r *packReader) undelta(p *pack, h packHeader, delta []byte, depth int) (*object, error) {
	base := h.base
	if h.kind == plumbing.REFDeltaObject {
		offset, ok, err := p.index.find(h.ref)
		if err != nil || !ok {
			return nil, errors.Join(fmt.Errorf("its delta's base %s is not in the pack", h.ref), err)
		}
		base = offset
	}
	if depth > maxDeltas {
		return nil, errors.New("its chain of deltas does not end")
	}
	from, err := r.read(p, base, readOptions{depth: depth + 1})
	if err != nil {
		return nil, err
	}
	content, err := packfile.PatchDelta(from.content, delta)
	if err != nil {
		return nil, fmt.Errorf("applying delta: %w", err)
	}
	return &object{kind: from.kind, size: int64(len(content)), content: content}, nil
}

// keep remembers an object that others are probably deltas of. All are
// forgotten at once when they get too many.
func (r *packReader) keep(key baseKey, obj *object) {
	if len(obj.content) > maxBases/4 {
		return
	}
	if r.kept += len(obj.content) + 64; r.kept > maxBases {
		clear(r.bases)
		r.kept = len(obj.content)
	}
	r.bases[key] = obj
}
