package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// A packIndex finds objects in a pack by the pack's .idx file, version 2
// (gitformat-pack(5)). The file is mapped, not read: a repository's index can
// have hundreds of megabytes of which a look-up needs a few pages.
type packIndex struct {
	data  []byte
	count int
	unmap runtime.Cleanup // for stores that nobody closes
}

const (
	idxHeader = 8 + 256*4
	idxFooter = 2 * 20
)

func openPackIndex(path string) (*packIndex, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < idxHeader+idxFooter || info.Size() != int64(int(info.Size())) {
		return nil, errors.New("pack index is cut short")
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping pack index: %w", err)
	}
	x, err := newPackIndex(data)
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(data))
	}
	x.unmap = runtime.AddCleanup(x, func(data []byte) { _ = unix.Munmap(data) }, data)
	return x, nil
}

// newPackIndex checks the sizes, so that look-ups stay within the data.
func newPackIndex(data []byte) (*packIndex, error) {
	if len(data) < idxHeader+idxFooter {
		return nil, errors.New("pack index is cut short")
	}
	if !bytes.Equal(data[:8], []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}) {
		return nil, errors.New("pack index is not of version 2")
	}
	x := &packIndex{data: data}
	last := uint32(0)
	for b := range 256 {
		n := binary.BigEndian.Uint32(data[8+b*4:])
		if n < last {
			return nil, errors.New("pack index is not sorted")
		}
		last = n
	}
	x.count = int(last)
	if x.count > (len(data)-idxHeader-idxFooter)/28 {
		return nil, errors.New("pack index is cut short")
	}
	return x, nil
}

func (x *packIndex) close() {
	x.unmap.Stop()
	_ = unix.Munmap(x.data) // it was only read
	x.data, x.count = nil, 0
}

func (x *packIndex) hash(i int) []byte { return x.data[idxHeader+i*20:][:20] }

// at is the offset in the pack of object i.
func (x *packIndex) at(i int) (int64, error) {
	v := binary.BigEndian.Uint32(x.data[idxHeader+x.count*24+i*4:])
	if v&(1<<31) == 0 {
		return int64(v), nil
	}
	pos := idxHeader + x.count*28 + int(v&^(1<<31))*8
	if pos+8 > len(x.data)-idxFooter {
		return 0, errors.New("pack index has a bad offset")
	}
	return int64(binary.BigEndian.Uint64(x.data[pos:]) &^ (1 << 63)), nil
}

// find returns the offset of an object.
func (x *packIndex) find(h plumbing.Hash) (int64, bool, error) {
	low, high := 0, int(binary.BigEndian.Uint32(x.data[8+int(h[0])*4:]))
	if h[0] > 0 {
		low = int(binary.BigEndian.Uint32(x.data[8+int(h[0]-1)*4:]))
	}
	i := low + sort.Search(high-low, func(i int) bool { return bytes.Compare(x.hash(low+i), h[:]) >= 0 })
	if i == high || !bytes.Equal(x.hash(i), h[:]) {
		return 0, false, nil
	}
	offset, err := x.at(i)
	return offset, err == nil, err
}

// each calls fn for the hash of every object.
func (x *packIndex) each(fn func(plumbing.Hash)) {
	for i := range x.count {
		fn(plumbing.Hash(x.hash(i)))
	}
}

// sizes maps every object to the bytes it takes in a pack of that size.
func (x *packIndex) sizes(packSize int64) (map[plumbing.Hash]int64, error) {
	type place struct {
		offset int64
		i      int
	}
	places := make([]place, x.count)
	for i := range places {
		offset, err := x.at(i)
		if err != nil {
			return nil, err
		}
		places[i] = place{offset, i}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.offset, b.offset) })
	sizes := make(map[plumbing.Hash]int64, x.count)
	end := packSize - 20
	for _, p := range slices.Backward(places) {
		sizes[plumbing.Hash(x.hash(p.i))] = end - p.offset
		end = p.offset
	}
	return sizes, nil
}
