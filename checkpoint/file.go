package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

const (
	// O_NONBLOCK: opening a FIFO that took the place of a file must not hang.
	fileFlags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK

	readTries = 3 // for a file that changes while it is read
)

// A file is one name that belongs to the snapshot unless it cannot be read.
type file struct {
	task    *task
	dir     int // its open folder
	name    string
	old     *ent        // in the last snapshot, or nil
	tracked *indexEntry // in the index, or nil
}

func (f *file) path() string { return join(f.task.path, f.name) }

// A reader is a worker's buffers.
type reader struct {
	buf     []byte
	dirents []byte
	path    []byte
	listing listing
	start   time.Time // when the worker came to its folder
}

// read makes the entry of a file or symlink: from the last snapshot if it is
// clean there, else from the index, else by hashing its content.
func (s *scan) read(f *file, r *reader) (ent, bool) {
	st, err := lstatAt(f.dir, f.name)
	if err != nil {
		s.readError(f, err)
		return ent{}, false
	}
	key := statKeyOf(&st)
	if !key.isRegular() && !key.isSymlink() {
		s.skip(f.task, f.name, special(key))
		return ent{}, false
	}
	e := ent{name: f.name, mode: s.mode(key, f.tracked), stat: key}
	over := key.isRegular() && key.size > s.cap
	if !over && f.old != nil && f.old.mode != modeDir && f.old.stat == key && !f.old.racy && f.keepConverted() {
		e.hash, e.raw = f.old.hash, f.old.raw
		return e, true
	}
	e.racy = s.isRacy(key, r.start)
	clean := s.index.clean(f.tracked, key, s.conf.fileMode)
	switch {
	case over:
		return e, s.tooLarge(f, &e, clean)
	case clean && f.task.attrs.flags == 0 && s.seed():
		e.hash = f.tracked.hash
		return e, true
	}
	return e, s.hash(f, &e, r)
}

// tooLarge leaves a file out, unless git's index vouches for it: then the
// checkpoint has the index's version. A restore lets the file alone in both
// cases, since the bytes on disk may be others.
func (s *scan) tooLarge(f *file, e *ent, clean bool) bool {
	why := fmt.Sprintf("over the size cap (%d bytes)", e.stat.size)
	if clean {
		e.hash = f.tracked.hash
		why += "; the unchanged version in git's index stands for it"
	}
	s.skip(f.task, f.name, why)
	return clean
}

// keepConverted tells whether the old entry's conversion, if it had one, still
// stands: git's answer may depend on the index's blob.
func (f *file) keepConverted() bool {
	was, ok := f.task.old.converted[f.name]
	if !ok {
		return true
	}
	var now plumbing.Hash
	if f.tracked != nil {
		now = f.tracked.hash
	}
	if was != now {
		return false
	}
	if n := f.task.node; n.converted == nil {
		n.converted = map[string]plumbing.Hash{}
	}
	f.task.node.converted[f.name] = now
	return true
}

// mode is the mode in git's trees, by git's rules for systems without
// executable bits or symlinks.
func (s *scan) mode(key statKey, tracked *indexEntry) uint32 {
	if key.isSymlink() {
		return modeSymlink
	}
	if !s.conf.symlinks && tracked != nil && tracked.mode == modeSymlink {
		return modeSymlink
	}
	if !s.conf.fileMode {
		if tracked != nil && (tracked.mode == modeFile || tracked.mode == modeExec) {
			return tracked.mode
		}
		return modeFile
	}
	if key.mode&0o100 != 0 {
		return modeExec
	}
	return modeFile
}

// isRacy tells that the file may change after this look without a new stamp.
// at is a moment before the look: afterwards may be much later on a busy machine.
func (s *scan) isRacy(key statKey, at time.Time) bool {
	limit := at.Add(s.skew - tick).UnixNano()
	return max(key.mtime, key.ctime) >= limit
}

// clean tells that git's index vouches for the file: all stat data agree and
// the entry is older than the index, so that a later change would show.
func (x *index) clean(e *indexEntry, key statKey, fileMode bool) bool {
	if e == nil || x.mtime == 0 || e.stage != 0 || e.intentToAdd || e.mtime == 0 {
		return false
	}
	if e.size != uint32(key.size) || e.mtime != key.mtime || e.ctime != key.ctime || e.inode != uint32(key.inode) {
		return false
	}
	if max(e.mtime, e.ctime) >= x.mtime-int64(tick) {
		return false
	}
	switch e.mode {
	case modeSymlink:
		return key.isSymlink()
	case modeFile, modeExec:
		return key.isRegular() && (!fileMode || (e.mode == modeExec) == (key.mode&0o100 != 0))
	}
	return false
}

func special(key statKey) string {
	switch key.kind() {
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFDIR:
		return "changed into a folder while it was read"
	}
	return "device"
}

func (s *scan) readError(f *file, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.unstable(f.path(), "went away while it was read")
	case errors.Is(err, unix.ELOOP):
		s.skip(f.task, f.name, "changed while it was read")
	default:
		s.skip(f.task, f.name, reason(err))
	}
}

// hash reads the content, stores it if it is new, and fills e.
func (s *scan) hash(f *file, e *ent, r *reader) bool {
	if e.stat.isRegular() && e.stat.size > maxInMemory {
		return s.hashBig(f, e)
	}
	s.hashed.Add(1)
	content, stable, err := s.content(f, e, r)
	if err != nil {
		s.readError(f, err)
		return false
	}
	if !stable {
		e.racy = true
		s.unstable(f.path(), "changed while it was read")
	}
	e.hash = plumbing.ComputeHash(plumbing.BlobObject, content)
	if attrs := f.task.attrs; e.stat.isRegular() && attrs.flags != 0 {
		p := pending{task: f.task, name: f.name, path: f.path(), byContent: attrs.byContent(content)}
		if f.tracked != nil {
			p.tracked = f.tracked.hash
		}
		if p.byContent || attrs.flags&convFilter != 0 {
			s.mu.Lock()
			s.convert = append(s.convert, p)
			s.mu.Unlock()
		}
	}
	known := f.old != nil && (f.old.hash == e.hash || f.old.raw == e.hash) || f.tracked != nil && f.tracked.hash == e.hash
	if !known {
		if err := s.odb.writeAs(e.hash, plumbing.BlobObject, content); err != nil {
			s.fail(err)
			return false
		}
	}
	if len(r.buf) > maxInMemory+1 { // it grew while it was read
		r.buf = nil
	}
	return true
}

// content reads a file until it is the same before and after, a few times.
// The stat data of e become those of what was read.
func (s *scan) content(f *file, e *ent, r *reader) (content []byte, stable bool, err error) {
	if e.stat.isSymlink() {
		content, err = readlinkAt(f.dir, f.name)
		return content, true, err
	}
	for range readTries {
		var before, after statKey
		at := s.now()
		content, before, after, err = r.file(f.dir, f.name, s.cap)
		if err != nil {
			return nil, false, err
		}
		e.stat, e.racy = before, s.isRacy(before, at)
		if before == after && int64(len(content)) == after.size {
			return content, true, nil
		}
	}
	return content, false, nil
}

// file reads one regular file with its stat data before and after.
func (r *reader) file(dir int, name string, limit int64) (content []byte, before, after statKey, err error) {
	fd, err := retry(func() (int, error) { return unix.Openat(dir, name, fileFlags, 0) })
	if err != nil {
		return nil, before, after, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, before, after, err
	}
	before = statKeyOf(&st)
	if !before.isRegular() {
		return nil, before, after, errors.New("changed into something else while it was read")
	}
	if need := int(min(before.size, limit)) + 1; len(r.buf) < need {
		r.buf = make([]byte, max(need, 64<<10))
	}
	n := 0
	for {
		if n == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		m, err := unix.Read(fd, r.buf[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, before, after, err
		}
		if m == 0 {
			break
		}
		if n += m; int64(n) > limit {
			return nil, before, after, errors.New("grew over the size cap while it was read")
		}
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, before, after, err
	}
	return r.buf[:n], before, statKeyOf(&st), nil
}

// minSkew is how far the file system's clock lies behind ours, judged by a
// file that was written just now; 0 if it does not.
func minSkew(written, now time.Time) time.Duration {
	return min(written.Sub(now), 0)
}
