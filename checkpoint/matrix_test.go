package checkpoint

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTreeIsGits saves odd worktrees; the tree must be the one git makes.
func TestTreeIsGits(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*repo){
		"empty repository": func(*repo) {},
		"unborn branch": func(r *repo) {
			r.write("a", "1")
			r.write("d/b", "2")
		},
		"changes of all kinds": func(r *repo) {
			r.write("same", "1")
			r.write("changed", "1")
			r.write("gone", "1")
			r.write("dir/file", "1")
			r.write("file", "1")
			r.commit()
			r.write("changed", "22")
			r.remove("gone")
			r.write("new/deep/file", "x")
			r.remove("dir")
			r.write("dir", "now a file")
			r.remove("file")
			r.write("file/under", "now a folder")
		},
		"detached HEAD": func(r *repo) {
			r.write("a", "1")
			r.commit()
			r.git("checkout", "-q", "--detach")
			r.write("a", "2")
		},
		"modes and symlinks": func(r *repo) {
			r.write("x", "1")
			r.commit()
			must(r, os.Chmod(r.path("x"), 0o755))
			must(r, os.Symlink("x", r.path("link")))
			must(r, os.Symlink("/nowhere", r.path("dangling")))
			must(r, os.Mkdir(r.path("d"), 0o755))
			must(r, os.Symlink("d", r.path("dirlink")))
			r.write("d/f", "1")
		},
		"core.fileMode=false": func(r *repo) {
			r.write("x", "1")
			r.write("y", "1")
			must(r, os.Chmod(r.path("x"), 0o755))
			r.commit()
			r.git("config", "core.fileMode", "false")
			must(r, os.Chmod(r.path("x"), 0o644))
			must(r, os.Chmod(r.path("y"), 0o755))
			r.write("z", "1")
			must(r, os.Chmod(r.path("z"), 0o755))
		},
		"ignored": func(r *repo) {
			r.write(".gitignore", "*.log\nbuild/\n!keep.log\n/only-root\n")
			r.write("sub/.gitignore", "!b.log\nlocal\n")
			for _, f := range []string{"a.log", "keep.log", "sub/b.log", "sub/local", "build/x", "sub/build/y", "only-root", "sub/only-root"} {
				r.write(f, f)
			}
			r.write(".git/info/exclude", "excluded\n")
			r.write("excluded", "1")
			r.write("../global", "global\n")
			r.git("config", "core.excludesFile", r.path("../global"))
			r.write("global", "1")
		},
		"ignored but tracked": func(r *repo) {
			r.write("build/x", "1")
			r.write("build/y", "1")
			r.write("a.log", "1")
			r.git("add", "build/x", "a.log")
			r.write(".gitignore", "build/\n*.log\n")
			r.write("build/x", "2")
			r.write("b.log", "1")
		},
		"untracked after rm --cached": func(r *repo) {
			r.write("a", "1")
			r.write(".gitignore", "a\n")
			r.git("add", "-f", "a")
			r.git("commit", "-qm", "c")
			r.git("rm", "-q", "--cached", "a")
		},
		"staged only, intent to add": func(r *repo) {
			r.write("staged", "1")
			r.write("ita", "1")
			r.git("add", "staged")
			r.git("add", "-N", "ita")
			r.write("staged", "2")
		},
		"merge in progress": func(r *repo) {
			r.write("f", "base\n")
			r.write("g", "base\n")
			r.commit()
			r.git("checkout", "-q", "-b", "side")
			r.write("f", "side\n")
			r.remove("g")
			r.commit()
			r.git("checkout", "-q", "main")
			r.write("f", "main\n")
			r.write("g", "main\n")
			r.commit()
			if _, err := r.try(nil, "merge", "side"); err == nil {
				r.t.Fatal("merge: want a conflict")
			}
		},
		"odd names": func(r *repo) {
			for _, f := range []string{"\xff\xfe", "new\nline", "tab\tq\"uote", "back\\slash", " lead", "trail ", "é", "-dash", "a.b", "a/b", "a-b", "a0"} {
				r.write(f, f)
			}
			r.commit()
			r.write("\xff\xfe", "2")
		},
		"nested repositories": func(r *repo) {
			r.write("a", "1")
			sub := &repo{t: r.t, dir: r.path("nested")}
			must(r, os.Mkdir(sub.dir, 0o755))
			sub.git("init", "-q")
			sub.write("inner", "1")
			sub.commit()
			sub.write("inner", "2")
			r.write("broken/.git/HEAD", "nonsense") // no repository: an ordinary folder
			r.write("broken/x", "1")
			r.write("ignored/.gitkeep", "")
			sub.git("worktree", "add", "-q", "../linked")
		},
		"tracked inside nested": func(r *repo) {
			r.write("n/a", "1")
			r.commit()
			sub := &repo{t: r.t, dir: r.path("n")}
			sub.git("init", "-q")
			sub.write("b", "1")
			sub.commit()
		},
		"submodules": func(r *repo) {
			other := newRepo(r.t)
			other.write("lib", "1")
			other.commit()
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "mod")
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "gone")
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "bare")
			r.commit()
			sub := &repo{t: r.t, dir: r.path("mod")}
			sub.write("lib", "2")
			sub.commit()
			r.remove("gone")
			r.git("submodule", "--quiet", "deinit", "-f", "bare")
		},
		"linked worktree": func(r *repo) {
			r.write("a", "1")
			r.write(".git/info/exclude", "no\n")
			r.commit()
			r.git("worktree", "add", "-q", "../wt")
			r.dir = filepath.Join(filepath.Dir(r.dir), "wt")
			r.write("a", "2")
			r.write("no", "1")
			r.write("b", "1")
		},
		"sparse checkout": func(r *repo) {
			r.write("in/a", "1")
			r.write("out/b", "1")
			r.write("out/.gitignore", "*.o\n")
			r.write("out/c", "1")
			r.commit()
			r.git("sparse-checkout", "set", "in")
			r.write("in/a", "2")
			r.write("out/b", "present again")
			r.write("out/x.o", "ignored by a file that is not there")
		},
		"sparse index": func(r *repo) {
			r.write("in/a", "1")
			r.write("out/deep/b", "1")
			r.commit()
			r.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
			r.write("in/new", "2")
		},
		"skip-worktree": func(r *repo) {
			r.write("a", "1")
			r.write("b", "1")
			r.commit()
			r.git("update-index", "--skip-worktree", "a", "b")
			r.write("a", "2")
			r.remove("b")
		},
		"index version 4": func(r *repo) {
			r.write("dir/aa", "1")
			r.write("dir/ab", "1")
			r.git("update-index", "--index-version", "4")
			r.commit()
			r.write("dir/ab", "2")
		},
		"split index": func(r *repo) {
			r.write("a", "1")
			r.write(".gitignore", "ign\n")
			r.write("ign", "1")
			r.git("add", "-f", "ign")
			r.commit()
			r.git("update-index", "--split-index")
			r.write("a", "2")
		},
		"ignored repository in a tracked file's place": func(r *repo) {
			r.write("a", "1")
			r.write("d/b", "1")
			r.commit()
			r.write(".gitignore", "a\nb\n")
			for _, p := range []string{"a", "d/b"} {
				r.remove(p)
				sub := &repo{t: r.t, dir: r.path(p)}
				must(r, os.Mkdir(sub.dir, 0o755))
				sub.git("init", "-q")
				sub.git("commit", "-q", "--allow-empty", "-m", "c")
			}
		},
		"ignored files in repositories' places": func(r *repo) {
			for _, p := range []string{"a", "b"} {
				sub := &repo{t: r.t, dir: r.path(p)}
				must(r, os.Mkdir(sub.dir, 0o755))
				sub.git("init", "-q")
				sub.git("commit", "-q", "--allow-empty", "-m", "c")
			}
			r.commit()
			r.write(".gitignore", "a\nb\n")
			must(r, errors.Join(os.RemoveAll(r.path("a")), os.RemoveAll(r.path("b")), os.Symlink("x", r.path("a"))))
			r.write("b", "1")
		},
		"fsmonitor and untracked cache": func(r *repo) {
			r.write("a", "1")
			r.write("d/b", "1")
			r.commit()
			r.write("../fsmonitor", "#!/bin/sh\nprintf 'token\\0'\n")
			must(r, os.Chmod(r.path("../fsmonitor"), 0o755))
			r.git("config", "core.fsmonitor", r.path("../fsmonitor"))
			r.git("update-index", "--fsmonitor", "--untracked-cache")
			r.git("status")
			r.write("a", "2") // which the monitor does not tell
			r.git("config", "core.fsmonitor", "false")
			r.write("d/c", "1")
		},
		"LFS": func(r *repo) {
			r.git("config", "filter.lfs.clean", "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:'; sha256sum | cut -c1-64")
			r.git("config", "filter.lfs.required", "true")
			r.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
			r.write("big.bin", strings.Repeat("\x00\r\n", 100))
			r.commit()
			r.write("new.bin", "\x01")
			r.write("d/big.bin", strings.Repeat("\x02", 100))
		},
		"modes and links off": func(r *repo) {
			must(r, os.Symlink("target", r.path("link")))
			r.write("x", "1")
			r.commit()
			r.git("config", "core.symlinks", "false")
			r.git("config", "core.fileMode", "false")
			r.remove("link")
			r.write("link", "other")
			must(r, os.Chmod(r.path("x"), 0o755))
		},
		"autocrlf": func(r *repo) {
			r.write("was-crlf", "1\r\n2\r\n")
			r.write("lf", "1\n")
			r.commit()
			r.git("config", "core.autocrlf", "true")
			r.write("was-crlf", "1\r\n2\r\n3\r\n")
			r.write("new-crlf", "1\r\n")
			r.write("binary", "\x00\r\n")
			r.write("lf", "1\r\n")
		},
		"attributes": func(r *repo) {
			r.git("config", "filter.up.clean", "tr a-z A-Z")
			r.write(".gitattributes", "*.txt text\n*.up filter=up\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n[attr]lf text eol=lf\n*.m lf\n")
			r.write("sub/.gitattributes", "raw.txt -text\n")
			for _, f := range []string{"a.txt", "sub/raw.txt", "sub/b.txt", "x.bin", "y.m"} {
				r.write(f, "one\r\ntwo\r\n")
			}
			r.write("f.up", "shout")
			r.write("odd\nname.up", "shout")
			r.write("v.id", "$Id: 1234 $\n")
			r.write("w.u16", "a\x00b\x00")
			r.commit()
			r.write("a.txt", "three\r\n")
			r.write("new.txt", "four\r\n")
		},
		"case folding": func(r *repo) {
			r.git("config", "core.ignoreCase", "true")
			r.write(".gitignore", "BUILD\n")
			r.write("build/x", "1")
			r.write("y", "1")
		},
		"special files": func(r *repo) {
			r.write("a", "1")
			must(r, syscall.Mkfifo(r.path("fifo"), 0o644))
			short, err := os.MkdirTemp("", "cp") // a socket's path must be short
			must(r, err)
			l, err := net.Listen("unix", filepath.Join(short, "s"))
			must(r, err)
			must(r, os.Rename(filepath.Join(short, "s"), r.path("sock")))
			r.t.Cleanup(func() {
				l.Close()
				os.RemoveAll(short)
			})
		},
		"empty folders": func(r *repo) {
			must(r, os.MkdirAll(r.path("a/b/c"), 0o755))
			r.write("d/.gitignore", "*\n")
			r.write("d/x", "1")
		},
		"worktreeConfig and partial clone extensions": func(r *repo) {
			r.write("a", "1")
			r.git("config", "core.repositoryFormatVersion", "1")
			r.git("config", "extensions.worktreeConfig", "true")
			r.git("config", "--worktree", "core.fileMode", "false")
			must(r, os.Chmod(r.path("a"), 0o755))
		},
		"alternates": func(r *repo) {
			r.write("a", "1")
			r.commit()
			r.git("clone", "-q", "--shared", r.dir, r.path("../shared"))
			r.dir = r.path("../shared")
			r.write("b", "1")
		},
		"a large file": func(r *repo) {
			r.write("x/f", "1")
			r.write("y", strings.Repeat("long\n", 5000))
			r.commit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			build(r)
			s := r.open(Options{CacheDir: t.TempDir()})
			first := r.check(s)
			r.check(s) // now from the stat cache
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := r.open(s.opts) // and from its file
			r.write("later", "1")
			last := r.check(again)
			if first.ID != 1 || last.ID != 3 || last.Files != 1 {
				t.Errorf("ids %d and %d, %d files changed at last; want 1, 3, 1", first.ID, last.ID, last.Files)
			}
			r.git("fsck", "--strict", "--no-dangling")
		})
	}
}

func must(r *repo, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
