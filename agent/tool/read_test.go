package tool

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100) + "\n"
	huge := strings.Repeat("y", MaxBytes+1)
	for _, c := range []struct {
		name, content string
		args          args
		want          string
	}{
		{"whole", "a\nb\n", nil, "a\nb"},
		{"no newline at the end", "a\nb", nil, "a\nb"},
		{"empty", "", nil, "(empty file)"},
		{"one newline", "\n", nil, ""},
		{"carriage returns stay", "a\r\nb\r\n", nil, "a\r\nb\r"},
		{"bad utf-8", "a\xffb\n", nil, "a\uFFFDb"},
		{"offset", numbered(1, 5), args{"offset": 4}, "line 4\nline 5"},
		{"offset as text", numbered(1, 5), args{"offset": "4"}, "line 4\nline 5"},
		{"limit", numbered(1, 5), args{"limit": 2}, "line 1\nline 2\n\n[3 more lines in file. Use offset=3 to continue.]"},
		{"offset and limit", numbered(1, 5), args{"offset": 2, "limit": 2}, "line 2\nline 3\n\n[2 more lines in file. Use offset=4 to continue.]"},
		{"limit to the last line", numbered(1, 3), args{"offset": 2, "limit": 2}, "line 2\nline 3"},
		{
			"too many lines", numbered(1, 2001), nil,
			strings.TrimSuffix(numbered(1, 2000), "\n") + "\n\n[Showing lines 1-2000 of 2001. Use offset=2001 to continue.]",
		},
		{"just enough lines", numbered(1, 2000), nil, strings.TrimSuffix(numbered(1, 2000), "\n")},
		{
			"too many bytes", strings.Repeat(long, 600), nil,
			strings.TrimSuffix(strings.Repeat(long, 506), "\n") + "\n\n[Showing lines 1-506 of 600 (50.0KB limit). Use offset=507 to continue.]",
		},
		{"just enough bytes", huge[1:] + "\n", nil, huge[1:]},
		{
			"first line too long", "a\n" + huge + "\nb\n", args{"offset": 2},
			"[Line 2 is 50.0KB, exceeds 50.0KB limit. Use bash: sed -n '2p' 'f' | head -c 51200]",
		},
		{"second line too long", "a\n" + huge + "\nb\n", nil, "a\n\n[Showing lines 1-1 of 3 (50.0KB limit). Use offset=2 to continue.]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.file("f", c.content)
			a := args{"path": "f"}
			for k, v := range c.args {
				a[k] = v
			}
			if got := e.must("read", a); got != c.want {
				t.Errorf("got %q\nwant %q", clip(got), clip(c.want))
			}
		})
	}
}

func clip(s string) string {
	if len(s) > 400 {
		return s[:200] + " … " + s[len(s)-200:]
	}
	return s
}

func TestReadPaths(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.file("a b.txt", "spaces")
	if err := os.WriteFile(filepath.Join(filepath.Dir(e.dir), "home.txt"), []byte("home"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a b.txt": "spaces", "@a b.txt": "spaces", "a\u00a0b.txt": "spaces", "./x/../a b.txt": "spaces",
		"~/home.txt": "home", filepath.Join(e.dir, "a b.txt"): "spaces",
	} {
		if got := e.must("read", args{"path": path}); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// None of these may hang or read anything: each is a clear error.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if err := syscall.Mkfifo(filepath.Join(e.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(e.dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if sock, err := net.Listen("unix", filepath.Join(e.dir, "sock")); err == nil { // the path may be too long on this system
		defer sock.Close()
		e.fails("read", args{"path": "sock"}, "socket")
	}
	e.file("bin", "a\x00b")
	e.file("pic", "\x89PNG\r\n\x1a\n")
	e.file("short", "one\n")
	e.fails("read", args{"path": "fifo"}, "reading fifo", "named pipe")
	e.fails("read", args{"path": "."}, "folder")
	e.fails("read", args{"path": "/dev/zero"}, "device")
	e.fails("read", args{"path": "loop"}, "loop")
	e.fails("read", args{"path": "bin"}, "binary")
	e.fails("read", args{"path": "pic"}, "image/png")
	e.fails("read", args{"path": "nothing"}, "reading nothing: no such file")
	e.fails("read", args{"path": ""}, "path is empty")
	e.fails("read", args{"path": "short", "offset": 3}, "offset 3 is beyond end of file (1 lines total)")
	e.fails("read", args{"path": "short", "limit": 0}, "limit")
	if os.Getuid() != 0 {
		if err := os.Chmod(e.file("secret", "x"), 0); err != nil {
			t.Fatal(err)
		}
		e.fails("read", args{"path": "secret"}, "permission denied")
	}
}

func TestToolsByName(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	all, err := e.set.Tools(Defaults()...)
	if err != nil || len(all) != 4 {
		t.Fatalf("got %d tools, %v", len(all), err)
	}
	if all, err = e.set.Tools(Names()...); err != nil || len(all) != 7 {
		t.Fatalf("got %d tools, %v", len(all), err)
	}
	if _, err := e.set.Tools("read", "frob"); err == nil || !strings.Contains(err.Error(), `"frob"`) {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{Dir: filepath.Join(e.dir, "gone")}); err == nil {
		t.Error("a missing folder was taken")
	}
}
