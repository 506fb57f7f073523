package sandbox

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muntin/internal/proc"
)

// TestMain lets the test binary be what muntin is to a Box: a program that confines
// itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == "confine" {
		s, err := ParseScope(os.Args[2])
		if err == nil {
			err = Become(s, os.Args[4:], os.Environ())
		}
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(126)
	}
	os.Exit(m.Run())
}

// outside is a place that no policy gives.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "muntin-outside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestWhatIsDeniedFails(t *testing.T) {
	t.Parallel()
	for _, by := range []string{ByBwrap, ByLandlock, BySeatbelt} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			b := New(Options{Self: os.Args[0], Getenv: os.Getenv, Only: by})
			if got := b.Report(t.Context()); got.By != by {
				t.Logf("not here, so not tried: %+v", got)
				return
			}
			escapes(t, b)
		})
	}
}

func escapes(t *testing.T, b *Box) {
	out, work, home, state := outside(t), t.TempDir(), t.TempDir(), t.TempDir()
	secret := filepath.Join(out, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "in"), []byte("in"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	policy := Policy{Dir: work, Home: home, Read: []string{"."}, Writable: []string{state}}
	writes, open := policy, policy
	writes.Write = []string{"."}
	open.Network = true
	for _, c := range []struct {
		name   string
		policy Policy
		script string
		works  bool
	}{
		{"read what is given", policy, `[ "$(cat "$1/in")" = in ]`, true},
		{"write into its state", policy, `echo x > "$3/file"`, true},
		{"write to null", policy, `echo x > /dev/null`, true},
		{"read outside", policy, `cat "$2/secret"`, false},
		{"write what can be read only", policy, `echo x > "$1/new"`, false},
		{"write outside", policy, `echo x > "$2/new"`, false},
		{"remove outside", policy, `rm "$2/secret"`, false},
		{"leave by a link", writes, `ln -s "$2" "$1/link" && cat "$1/link/secret"`, false},
		{"write what is given", writes, `echo x > "$1/new"`, true},
		{"connect", policy, `exec 3<>"/dev/tcp/127.0.0.1/$4"`, false},
		{"send a datagram", policy, `echo x > /dev/udp/192.0.2.1/9`, false}, // of RFC 5737: nobody is there
		{"connect when allowed", open, `exec 3<>"/dev/tcp/127.0.0.1/$4"`, true},
	} {
		p := c.policy
		p.Argv = []string{bash, "-c", c.script, "sh", work, out, state, port}
		argv, err := b.Argv(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		res, err := proc.Run(t.Context(), proc.Spec{Argv: argv})
		if (err == nil) != c.works {
			t.Errorf("%s: %v, %s", c.name, err, res.Stderr)
		}
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != "secret" {
		t.Errorf("the file outside: %q, %v", got, err)
	}
}

func TestNothingToEnforceWithRunsItAsItIs(t *testing.T) {
	t.Parallel()
	b := New(Options{Self: "muntin", Getenv: os.Getenv, Only: "nobody"})
	r := b.Report(t.Context())
	if r.By != ByNothing || r.Files != NotEnforced || r.Network != NotEnforced {
		t.Errorf("%+v", r)
	}
	argv, err := b.Argv(t.Context(), Policy{Argv: []string{"true"}})
	if err != nil || !slices.Equal(argv, []string{"true"}) {
		t.Errorf("%v, %v", argv, err)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	s := Scope{Home: "/h", Read: []string{"/r"}, Write: []string{`/w "x"`}}
	args := strings.Join(bwrapArgs("bwrap", s), " ")
	for _, want := range []string{"--ro-bind-try /r /r", `--bind-try /w "x" /w "x"`, "--unshare-net", "--chdir /h --"} {
		if !strings.Contains(args, want) {
			t.Errorf("%s: no %s", args, want)
		}
	}
	if text := profile(s); !strings.Contains(text, `(subpath "/w \"x\"")`) || strings.Contains(text, "network") {
		t.Error(text)
	}
	s.Read, s.Network = []string{"/", "/r"}, true
	if args := strings.Join(bwrapArgs("bwrap", s), " "); !strings.Contains(args, "--ro-bind / /") || strings.Contains(args, "unshare-net") {
		t.Error(args)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := ParseScope(string(text)); err != nil || back.Home != "/h" || !back.Network {
		t.Errorf("%+v, %v", back, err)
	}
	for name, c := range map[string][2]string{"home": {"~/x", "/home/me/x"}, "here": {".", "/work"}, "abs": {"/a/../b", "/b"}} {
		if got := full(c[0], "/work", "/home/me"); got != c[1] {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := installed("/home/me/bin/x", "/home/me"); slices.Contains(got, "/home/me") {
		t.Errorf("all of the home folder: %v", got)
	}
}
