package checkpoint

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// A batch holds the new objects of a save. The first ones stay in memory; when
// more come they all go into a pack that is written as they come.
type batch struct {
	mem   map[plumbing.Hash]memObject
	order []plumbing.Hash // of mem, as they came
	bytes int             // in mem
	pack  *packWriter     // nil while all are in memory
}

type memObject struct {
	kind    plumbing.ObjectType
	content []byte
}

const (
	// packFrom is from how many objects on a save makes a pack. A pack costs
	// as much as about this many loose objects: three files, of which two and
	// their folder are synced (BenchmarkSync).
	packFrom = 6
	// memBytes bounds what waits in memory.
	memBytes = 1 << 20
)

// add takes an object into the batch.
func (o *objects) add(h plumbing.Hash, kind plumbing.ObjectType, content []byte) error {
	o.mu.Lock()
	if o.known[h] || o.batch.has(h) {
		o.mu.Unlock()
		return nil
	}
	if o.batch.pack == nil && o.batch.bytes+len(content) <= memBytes {
		defer o.mu.Unlock()
		if o.batch.mem == nil {
			o.batch.mem = map[plumbing.Hash]memObject{}
		}
		o.batch.mem[h] = memObject{kind, bytes.Clone(content)}
		o.batch.order = append(o.batch.order, h)
		o.batch.bytes += len(content)
		return nil
	}
	err := o.startPack()
	o.mu.Unlock()
	if err != nil {
		return err
	}
	packed, err := o.deflate(kind, content) // by several workers at once
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch.has(h) {
		return nil
	}
	return o.batch.pack.append(h, packed)
}

func (b *batch) has(h plumbing.Hash) bool {
	if _, ok := b.mem[h]; ok {
		return true
	}
	if b.pack == nil {
		return false
	}
	_, ok := b.pack.offsets[h]
	return ok
}

// startPack moves what waits in memory to a new pack.
func (o *objects) startPack() error {
	if o.batch.pack != nil {
		return nil
	}
	dir := filepath.Join(o.root, "pack")
	if err := o.perm.mkdir(dir); err != nil {
		return err
	}
	f, err := o.perm.temp(dir, "tmp_pack_")
	if err != nil {
		return err
	}
	w := newPackWriter(f)
	for _, h := range o.batch.order {
		m := o.batch.mem[h]
		packed, err := o.deflate(m.kind, m.content)
		if err == nil {
			err = w.append(h, packed)
		}
		if err != nil {
			w.discard()
			return err
		}
	}
	o.batch = batch{pack: w}
	return nil
}

// deflate makes the bytes of an object in a pack.
func (o *objects) deflate(kind plumbing.ObjectType, content []byte) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, len(content)/2+64))
	b.Write(packHead(kind, int64(len(content))))
	if kind == plumbing.TreeObject {
		return storeZlib(b.Bytes(), content), nil // mostly hashes, which do not get smaller
	}
	z, err := o.zip(b)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(content)
	err = errors.Join(err, z.Close())
	o.zippers.Put(z)
	return b.Bytes(), err
}

// zip returns a compressor that writes to w. Making one costs as much as
// compressing a hundred small files, so they are kept.
func (o *objects) zip(w io.Writer) (*zlib.Writer, error) {
	if z, ok := o.zippers.Get().(*zlib.Writer); ok {
		z.Reset(w)
		return z, nil
	}
	return zlib.NewWriterLevel(w, zlib.BestSpeed)
}

// storeZlib appends content as a zlib stream that is not compressed (RFC 1950, RFC 1951 section 3.2.4).
func storeZlib(b, content []byte) []byte {
	const most = 1<<16 - 1 // of a block
	b = append(b, 0x78, 0x01)
	for rest, last := content, false; !last; {
		n := min(len(rest), most)
		last = n == len(rest)
		var final byte
		if last {
			final = 1
		}
		b = append(b, final)
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
		b = binary.LittleEndian.AppendUint16(b, ^uint16(n))
		b = append(b, rest[:n]...)
		rest = rest[n:]
	}
	return binary.BigEndian.AppendUint32(b, adler32.Checksum(content))
}

// flush puts the batch on disk, under a .keep file if it is a pack.
func (o *objects) flush() error {
	b, err := o.takeBatch()
	if err != nil {
		return err
	}
	if b.pack != nil {
		return o.finishPack(b.pack)
	}
	for i, h := range b.order {
		m := b.mem[h]
		if err := o.writeLoose(h, m.kind, m.content); err != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			b.order = b.order[i:]
			o.batch = b // for the next try, when there is room again
			return err
		}
		o.loose[h] = m
	}
	return nil
}

// takeBatch ends the batch, as a pack if there are enough objects for one.
func (o *objects) takeBatch() (batch, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.batch.order) >= packFrom {
		if err := o.startPack(); err != nil {
			return batch{}, err
		}
	}
	b := o.batch
	o.batch = batch{}
	return b, nil
}

// discard drops what was not synced.
func (o *objects) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch.pack != nil {
		o.batch.pack.discard()
	}
	o.batch = batch{}
}

// waiting tells whether an object is in the batch.
func (o *objects) waiting(h plumbing.Hash) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.batch.has(h)
}

// readWaiting reads an object of the batch; nil if it is not there.
func (o *objects) readWaiting(h plumbing.Hash) (*object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.batch.mem[h]; ok {
		return &object{kind: m.kind, size: int64(len(m.content)), content: m.content}, nil
	}
	w := o.batch.pack
	if w == nil {
		return nil, nil
	}
	offset, ok := w.offsets[h]
	if !ok {
		return nil, nil
	}
	if err := w.w.Flush(); err != nil {
		return nil, fmt.Errorf("writing pack: %w", err)
	}
	head, err := readPackHeader(w.f, offset)
	if err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(io.NewSectionReader(w.f, head.data, 1<<62))
	if err != nil {
		return nil, fmt.Errorf("reading new pack: %w", err)
	}
	content, err := readSized(z, head.size)
	if err != nil {
		return nil, fmt.Errorf("reading new pack: %w", err)
	}
	return &object{kind: head.kind, size: head.size, content: content}, nil
}

// place moves an open temporary file to its name. If a gc deleted it as a
// leftover, it is written again from the open file.
func (o *objects) place(f *os.File, to string) error {
	err := os.Rename(f.Name(), to)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, statErr := os.Lstat(f.Name()); statErr == nil {
		return err // it is the folder that is missing
	}
	again, err := o.perm.temp(filepath.Dir(filepath.Dir(to)), "tmp_obj_")
	if err != nil {
		return err
	}
	_, err = io.Copy(again, io.NewSectionReader(f, 0, 1<<62))
	if err = errors.Join(err, again.Sync(), again.Close()); err == nil {
		err = os.Rename(again.Name(), to)
	}
	if err != nil {
		_ = os.Remove(again.Name())
	}
	return err
}

// sortedHashes are the keys of a map in the order of their bytes.
func sortedHashes[V any](m map[plumbing.Hash]V) []plumbing.Hash {
	list := make([]plumbing.Hash, 0, len(m))
	for h := range m {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return list
}
