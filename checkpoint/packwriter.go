package checkpoint

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // git's checksum
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"muntin/internal/durable"
)

// ownMark begins the hexadecimal name of every pack that we wrote ("munt"),
// so that they are known without a list. Git takes the digits for a name and nothing more.
const ownMark = "6d756e74"

// packHeaderSize is "PACK", the version and the number of objects.
const packHeaderSize = 12

// A packWriter writes a pack without deltas; git makes them when it folds.
type packWriter struct {
	f       *os.File
	w       *bufio.Writer
	end     int64
	offsets map[plumbing.Hash]int64
	index   idxfile.Writer
}

func newPackWriter(f *os.File) *packWriter {
	p := &packWriter{f: f, w: bufio.NewWriterSize(f, 64<<10), offsets: map[plumbing.Hash]int64{}}
	_, _ = p.w.Write(make([]byte, packHeaderSize)) // into the buffer; see finish
	p.end = packHeaderSize
	return p
}

// append adds an object as deflate made it.
func (p *packWriter) append(h plumbing.Hash, packed []byte) error {
	if _, err := p.w.Write(packed); err != nil {
		return fmt.Errorf("writing pack: %w", err)
	}
	p.index.Add(h, uint64(p.end), crc32.ChecksumIEEE(packed))
	p.offsets[h] = p.end
	p.end += int64(len(packed))
	return nil
}

func (p *packWriter) discard() {
	_ = p.f.Close() // of no use
	_ = os.Remove(p.f.Name())
}

// finish writes what is known at the end only. It returns the pack's checksum.
func (p *packWriter) finish() (plumbing.Hash, error) {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(p.offsets)))
	if err := p.w.Flush(); err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := p.f.WriteAt(head, 0); err != nil {
		return plumbing.ZeroHash, err
	}
	sum := sha1.New() //nolint:gosec // git's checksum
	if _, err := io.Copy(sum, io.NewSectionReader(p.f, 0, p.end)); err != nil {
		return plumbing.ZeroHash, err
	}
	h := plumbing.Hash(sum.Sum(nil))
	_, err := p.f.WriteAt(h[:], p.end)
	return h, err
}

// finishPack puts a pack in its place as git's receive-pack does: a .keep
// file first, then the pack, then the index that makes it seen. Until settle
// removes the .keep, no repack takes the pack away.
func (o *objects) finishPack(p *packWriter) error {
	if err := o.placePack(p); err != nil {
		p.discard()
		return fmt.Errorf("writing pack: %w", err)
	}
	return p.f.Close()
}

func (o *objects) placePack(p *packWriter) error {
	sum, err := p.finish()
	if err != nil {
		return err
	}
	base := filepath.Join(o.root, "pack", ownPackName(sum))
	idx, err := o.perm.temp(filepath.Dir(base), "tmp_idx_")
	if err != nil {
		return err
	}
	defer idx.Close() // synced below
	if err = p.writeIndex(idx, sum); err == nil {
		err = syncBoth(p.f, idx)
	}
	if err == nil {
		err = o.keep(base + ".keep")
	}
	if err == nil {
		err = o.place(p.f, base+".pack")
	}
	if err != nil {
		return errors.Join(err, os.Remove(idx.Name()))
	}
	if err := o.place(idx, base+".idx"); err != nil {
		if !exists(base + ".idx") { // else another process saved the very same
			err = errors.Join(err, os.Remove(base+".pack"))
		}
		return errors.Join(err, os.Remove(idx.Name()))
	}
	return durable.SyncDir(filepath.Dir(base))
}

func (p *packWriter) writeIndex(f *os.File, sum plumbing.Hash) error {
	if err := p.index.OnFooter(sum); err != nil {
		return err
	}
	x, err := p.index.Index()
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	_, err = idxfile.NewEncoder(w).Encode(x)
	return errors.Join(err, w.Flush())
}

// syncBoth syncs two files at once: the file system commits them together.
func syncBoth(a, b *os.File) error {
	var errA error
	var wg sync.WaitGroup
	wg.Go(func() { errA = a.Sync() })
	errB := b.Sync()
	wg.Wait()
	return errors.Join(errA, errB)
}

func ownPackName(sum plumbing.Hash) string { return "pack-" + ownMark + sum.String()[len(ownMark):] }

// isOwnPack tells by its name whether we wrote a pack.
func isOwnPack(name string) bool { return strings.HasPrefix(name, "pack-"+ownMark) }

// keepText is in the .keep files of ours; a person's may say something else.
const keepText = "muntin: a checkpoint is being saved\n"

// keep makes a .keep file that settle removes. One that is there is left alone.
func (o *objects) keep(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as git's
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o.keeps = append(o.keeps, path)
	_, err = f.WriteString(keepText)
	return errors.Join(err, f.Close())
}
