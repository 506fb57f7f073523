package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// TestReadsGitsPacks reads every object of repositories as git packs them and
// compares it with what git says it is.
func TestReadsGitsPacks(t *testing.T) {
	t.Parallel()
	from := newRepo(t)
	text := noise(3000, 5)
	for i := range 20 {
		text = text[:100*i] + "changed" + text[100*i:]
		from.write("f", text)
		from.write("empty", "")
		from.commit()
	}
	from.git("tag", "-a", "-m", "m", "v1")
	for name, args := range map[string][]string{
		"offset deltas": {"repack", "-q", "-a", "-d", "-f", "--depth=50"},
		"ref deltas":    {"-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-a", "-d", "-f"},
		"no deltas":     {"-c", "pack.window=0", "repack", "-q", "-a", "-d", "-f"},
		"loose":         {"version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &repo{t: t, dir: filepath.Join(t.TempDir(), "repo")}
			must(r, os.CopyFS(r.dir, os.DirFS(from.dir)))
			r.git(args...)
			odb := openObjects(r.path(".git"))
			defer odb.read.close()
			n := 0
			for line := range strings.SplitSeq(r.git("cat-file", "--batch-all-objects", "--batch-check"), "\n") {
				f := strings.Fields(line)
				kind, err := plumbing.ParseObjectType(f[1])
				must(r, err)
				h := plumbing.NewHash(f[0])
				content, err := odb.content(kind, h)
				if err != nil || plumbing.ComputeHash(kind, content) != h || strconv.Itoa(len(content)) != f[2] {
					t.Errorf("%s: %v", line, err)
				}
				n++
			}
			if n < 60 {
				t.Errorf("only %d objects", n)
			}
		})
	}
}

// TestWritesPacks lets git check what we write.
func TestWritesPacks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, packFrom - 1, packFrom, 300} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			odb := openObjects(r.path(".git"))
			defer odb.read.close()
			made := map[plumbing.Hash]string{}
			for i := range n {
				text := noise(1+i*37, int64(i))
				h, err := odb.write(plumbing.BlobObject, []byte(text))
				must(r, err)
				made[h] = text
			}
			check := func(when string) {
				for _, h := range sortedHashes(made) {
					got, err := odb.content(plumbing.BlobObject, h)
					if err != nil || string(got) != made[h] || !odb.has(h) {
						t.Fatalf("%s: %s: %v", when, h, err)
					}
				}
			}
			check("before they are on disk")
			must(r, odb.sync())
			check("guarded")
			must(r, odb.settle())
			check("on disk")
			for _, h := range sortedHashes(made)[:min(n, 10)] { // fsck reads them all
				if got, err := r.try(nil, "cat-file", "blob", h.String()); err != nil || got != strings.TrimRight(made[h], "\n") {
					t.Fatalf("git reads %s otherwise: %v", h, err)
				}
			}
			r.git("fsck", "--strict", "--full", "--no-dangling")
			packs, err := filepath.Glob(r.path(".git/objects/pack/*.pack"))
			if err != nil || len(packs) != min(1, n/packFrom) {
				t.Errorf("%d packs for %d objects, %v", len(packs), n, err)
			}
			for _, p := range packs {
				r.git("verify-pack", p)
			}
		})
	}
}

func FuzzPackHeader(f *testing.F) {
	f.Add(packHead(plumbing.BlobObject, 1<<40))
	f.Add([]byte{0xe5, 0x01, 0x81, 0x02})
	f.Add(bytes.Repeat([]byte{0xff}, 30))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, used, ok := parsePackHeader(data)
		if !ok || h.kind == plumbing.OFSDeltaObject || h.kind == plumbing.REFDeltaObject {
			return
		}
		again, n, ok := parsePackHeader(packHead(h.kind, h.size))
		if !ok || again != h || n > used {
			t.Errorf("%+v became %+v", h, again)
		}
	})
}

func FuzzPackIndex(f *testing.F) {
	f.Add(append([]byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}, make([]byte, 256*4+28+40)...))
	f.Fuzz(func(_ *testing.T, data []byte) {
		x, err := newPackIndex(data)
		if err != nil {
			return
		}
		x.each(func(h plumbing.Hash) { _, _, _ = x.find(h) })
		_, _ = x.sizes(1 << 20)
	})
}

func FuzzLoose(f *testing.F) {
	f.Add([]byte("blob 3\x00abc"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _, _, _ = looseHead(bytes.NewReader(data)) })
}

// TestBrokenObjects never takes damage for content.
func TestBrokenObjects(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	r.write("a", "1\n")
	c, _ := r.save(s, Meta{})
	file := s.odb.file(hashOf(t, c.Tree))
	must(r, os.Chmod(file, 0o600))
	for name, damage := range map[string][]byte{"empty": {}, "nonsense": []byte("nonsense"), "cut": nil} {
		if damage == nil {
			whole, err := os.ReadFile(file)
			must(r, err)
			damage = whole[:len(whole)/2]
		}
		must(r, os.WriteFile(file, damage, 0o600))
		if _, err := s.odb.find(hashOf(t, c.Tree), false); err == nil {
			t.Errorf("%s: read", name)
		}
	}
	// Saving the same again mends it.
	must(r, os.WriteFile(file, nil, 0o600))
	again := r.open(Options{Ref: "refs/muntin/run/again"})
	r.save(again, Meta{})
	if _, err := again.odb.content(plumbing.TreeObject, hashOf(t, c.Tree)); err != nil {
		t.Error(err)
	}
	r.git("fsck", "--strict", "--no-dangling")
}

// TestBigFile streams: the heap must stay far below the file's size.
func TestBigFile(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	size := int64(soak(32<<20, 300<<20))
	r := newRepo(t)
	s := r.open(Options{SizeCap: 1 << 40})
	must(r, os.WriteFile(r.path("big"), []byte("start"), 0o600))
	must(r, os.Truncate(r.path("big"), size))
	peak := heapDuring(t, func() { r.save(s, Meta{}) })
	if peak > uint64(size)/2 {
		t.Errorf("saving %d bytes took %d of heap", size, peak)
	}
	t.Logf("saving %d bytes took %d of heap", size, peak)
	first, err := s.Find(t.Context(), "#1")
	must(r, err)
	if first.Tree != r.oracle() {
		t.Error("the tree is not git's")
	}
	must(r, os.WriteFile(r.path("big"), []byte("other"), 0o600))
	r.save(s, Meta{})
	peak = heapDuring(t, func() {
		if _, err := s.Restore(t.Context(), first); err != nil {
			t.Error(err)
		}
	})
	if peak > uint64(size)/2 {
		t.Errorf("restoring %d bytes took %d of heap", size, peak)
	}
	t.Logf("restoring %d bytes took %d of heap", size, peak)
	if info, err := os.Stat(r.path("big")); err != nil || info.Size() != size {
		t.Errorf("restored %v, %v", info, err)
	}
	r.git("repack", "-q", "-a", "-d") // now from a pack
	obj, err := s.odb.get(plumbing.BlobObject, blobOf(t, s, first, "big"))
	must(r, err)
	in, err := obj.Reader()
	must(r, err)
	n, err := io.Copy(io.Discard, in)
	if err = errors.Join(err, in.Close()); err != nil || n != size || obj.Size() != size {
		t.Errorf("from a pack: %d bytes of %d, %v", n, obj.Size(), err)
	}
}

// TestHugeFile takes a file of more than 4 GB.
func TestHugeFile(t *testing.T) { //nolint:paralleltest // it needs the disk for itself
	if os.Getenv("MUNTIN_SOAK") == "" {
		t.Skip("MUNTIN_SOAK is not set")
	}
	r := newRepo(t)
	s := r.open(Options{SizeCap: 1 << 40})
	must(r, os.WriteFile(r.path("huge"), []byte("start"), 0o600))
	must(r, os.Truncate(r.path("huge"), 4<<30+5))
	c, rep := r.save(s, Meta{})
	if len(rep.Skipped) > 0 || c.Tree != r.oracle() {
		t.Errorf("%+v, %+v", c, rep)
	}
	r.remove("huge")
	if _, err := s.Restore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.path("huge")); err != nil || info.Size() != 4<<30+5 {
		t.Errorf("%v, %v", info, err)
	}
}

func blobOf(t *testing.T, s *Store, c Checkpoint, path string) plumbing.Hash {
	t.Helper()
	e, err := s.odb.lookup(hashOf(t, c.Tree), path)
	if err != nil {
		t.Fatal(err)
	}
	return e.hash
}

// heapDuring is the largest growth of the heap seen while fn runs.
func heapDuring(t *testing.T, fn func()) uint64 {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	done, measured := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				measured <- peak
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
	}()
	fn()
	close(done)
	return max(<-measured, before) - before
}

func TestSharing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value string
		file  fs.FileMode // of 0444
		dir   fs.FileMode // of 0755
	}{
		{"", 0o444, 0o755},
		{"false", 0o444, 0o755},
		{"group", 0o444, 0o775 | fs.ModeSetgid},
		{"1", 0o444, 0o775 | fs.ModeSetgid},
		{"all", 0o444, 0o775 | fs.ModeSetgid},
		{"0640", 0o440, 0o750 | fs.ModeSetgid},
		{"0600", 0o400, 0o700},
		{"nonsense", 0o444, 0o755},
	} {
		p := parseSharing(tt.value)
		file, dir := p.mode(0o444, false), p.mode(0o755, true)
		if p == (sharing{}) {
			file, dir = 0o444, 0o755
		}
		if file != tt.file || dir != tt.dir {
			t.Errorf("%q: file %v, dir %v; want %v, %v", tt.value, file, dir, tt.file, tt.dir)
		}
	}
}

// TestPermissions compares with the modes that git gives in the same repository.
func TestPermissions(t *testing.T) {
	t.Parallel()
	for _, shared := range []string{"umask", "group", "all", "0640"} {
		t.Run(shared, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.git("init", "-q", "--shared="+shared)
			r.write("a", "1\n")
			r.git("add", "a")
			r.git("update-ref", "refs/muntin/by/git", r.git("commit-tree", "-m", "c", r.git("write-tree")))
			s := r.open(Options{})
			r.write("b", "2\n")
			r.save(s, Meta{})
			for i := range 2 * packFrom {
				r.write(fmt.Sprint("f", i), noise(100, int64(i+1)))
			}
			r.save(s, Meta{})
			mode := func(path string) fs.FileMode {
				info, err := os.Stat(path)
				must(r, err)
				return info.Mode() & (fs.ModePerm | fs.ModeSetgid)
			}
			blob := func(text string) string {
				return s.odb.file(plumbing.ComputeHash(plumbing.BlobObject, []byte(text)))
			}
			same := func(ours, gits string) {
				if a, b := mode(ours), mode(gits); a != b {
					t.Errorf("%s is %v, git's %s is %v", ours, a, gits, b)
				}
			}
			same(blob("2\n"), blob("1\n"))
			same(filepath.Dir(blob("2\n")), filepath.Dir(blob("1\n")))
			same(filepath.Join(s.where.Path, s.Ref()), r.path(".git/refs/muntin/by/git"))
			same(filepath.Dir(filepath.Join(s.where.Path, s.Ref())), r.path(".git/refs/muntin/by"))
			for _, p := range ownPacks(t, s) {
				same(filepath.Join(s.where.Path, "objects/pack", p.name+".pack"), blob("1\n"))
				same(filepath.Join(s.where.Path, "objects/pack", p.name+".idx"), blob("1\n"))
			}
		})
	}
}

// mounted mounts a file system in memory, or skips the test.
func mounted(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	mount, err := exec.LookPath("mount")
	if err != nil || os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	if out, err := exec.Command(mount, "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmounting: %v: %s", err, out)
		}
	})
	return dir
}

// TestReadOnlyRepository keeps the checkpoints of a worktree whose repository
// cannot be written in a sidecar.
func TestReadOnlyRepository(t *testing.T) {
	t.Parallel()
	disk := mounted(t, "size=8m")
	r := newRepo(t)
	r.git("clone", "-q", "--bare", ".", filepath.Join(disk, "repo.git"))
	r.dir = filepath.Join(filepath.Dir(r.dir), "worktree")
	must(r, os.Mkdir(r.dir, 0o755))
	r.write(".git", "gitdir: "+filepath.Join(disk, "repo.git")+"\n")
	r.git("config", "core.bare", "false")
	r.write(".gitattributes", "a text\n")
	r.write("a", "1\r\n")
	r.write("out/hidden", "in the index only\n")
	r.commit()
	r.git("update-index", "--skip-worktree", "out/hidden")
	r.remove("out")
	if out, err := exec.Command("mount", "-o", "remount,ro", disk).CombinedOutput(); err != nil {
		t.Skipf("remounting: %v: %s", err, out)
	}
	s := r.open(Options{})
	if w := s.Where(); !w.Sidecar || !strings.Contains(w.Reason, "cannot be written") {
		t.Fatalf("%+v", w)
	}
	cycle(r, s)
	c, _ := r.save(s, Meta{})
	if head := r.git("rev-parse", "HEAD"); c.Head != head {
		t.Errorf("head %q, want %q", c.Head, head)
	}
	if got, err := s.odb.content(plumbing.BlobObject, blobOf(t, s, c, "out/hidden")); err != nil || string(got) != "in the index only\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestDiskFull saves until there is no room: the save fails, the chain stays
// whole, and with room again the next save works.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	r := &repo{t: t, dir: filepath.Join(mounted(t, "size=3m"), "repo")}
	must(r, os.Mkdir(r.dir, 0o755))
	r.git("init", "-q", "-b", "main")
	s := r.open(Options{})
	r.write("a", "1\n")
	good, _ := r.save(s, Meta{})
	n := 1
	for i := 0; ; i++ {
		if i == 100 {
			t.Fatal("the disk does not get full")
		}
		for j := range 1 + i%2*8 {
			if err := os.WriteFile(r.path(fmt.Sprint("n", j)), []byte(noise(30_000, int64(100*i+j))), 0o600); err != nil {
				t.Logf("full for the test, too: %v", err)
			}
		}
		_, _, err := s.Save(t.Context(), Meta{})
		if err != nil {
			if !errors.Is(err, unix.ENOSPC) {
				t.Errorf("want a full disk: %v", err)
			}
			break
		}
		n++
	}
	whole(r, s, n)
	r.git("fsck", "--strict", "--full", "--no-dangling")
	for j := range 9 {
		r.remove(fmt.Sprint("n", j))
	}
	r.write("a", "2\n")
	r.remove(".git/hooks")
	c, _ := r.save(s, Meta{})
	if c.ID != n+1 || c.Tree != r.oracle() {
		t.Errorf("after there is room again: %+v, want id %d", c, n+1)
	}
	if _, err := s.Restore(t.Context(), good); err != nil {
		t.Error(err)
	}
	tmp, err := filepath.Glob(r.path(".git/objects/pack/tmp_*"))
	if err != nil || len(tmp) != 0 {
		t.Errorf("left %v, %v", tmp, err)
	}
}

// TestClockGoesBack saves while the clock jumps.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	now := time.Unix(2_000_000_000, 0)
	s := r.open(Options{Now: func() time.Time { return now }})
	for i, at := range []int64{2_000_000_000, 1_000_000_000, 5, -1000, 1_500_000_000} {
		now = time.Unix(at, 0)
		r.write("f", fmt.Sprint(i))
		c, _ := r.save(s, Meta{Cause: CauseTurn, Turn: i + 1})
		if c.ID != i+1 || c.Time.Unix() != max(at, 0) {
			t.Errorf("%+v", c)
		}
	}
	if got := ids(t, s); !same(got, 5, 4, 3, 2, 1) {
		t.Errorf("ids %v", got)
	}
	if c, err := s.Find(t.Context(), "turn:2"); err != nil || c.ID != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	r.git("fsck", "--strict", "--no-dangling")
}
