// Package sandbox gives a program less than the user's rights, by the operating
// system: bubblewrap where it is installed, else Landlock and seccomp on Linux;
// sandbox-exec on macOS. Where there is none, the program runs as it is, and Report
// says so: nothing is claimed that is not enforced.
package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muntin/internal/proc"
)

// A Policy says what a program may do. Folders may begin with ~/ or be relative to Dir;
// those that do not exist are left out.
type Policy struct {
	Argv     []string `json:"-"`
	Dir      string   `json:"dir"`  // the working folder of the agent: what . means
	Home     string   `json:"home"` // the program's own folder: it can be read
	Read     []string `json:"read,omitempty"`
	Write    []string `json:"write,omitempty"`
	Writable []string `json:"writable,omitempty"` // folders that can always be written; absolute
	Network  bool     `json:"network,omitempty"`
	Env      []string `json:"-"` // of the program; it is set by whoever starts it
}

// Options are what a Box needs to know.
type Options struct {
	Self   string // this program: it confines itself before it becomes the other one
	Getenv func(string) string
	Only   string // bwrap, landlock or sandbox-exec; "": the best that works
}

// A Box confines programs. What this machine can do is found out once, when it is
// first needed.
type Box struct {
	opts Options

	mu   sync.Mutex // guards how, and is held while it is found out
	how  *Report
	path string // of bwrap
}

// New makes a box.
func New(o Options) *Box { return &Box{opts: o} }

// The ways to confine.
const (
	ByBwrap    = "bwrap"
	ByLandlock = "landlock"
	BySeatbelt = "sandbox-exec"
	ByNothing  = "none"
)

// NotEnforced is what a Report says of what nothing enforces.
const NotEnforced = "not enforced"

// A Report says what this machine enforces. Each of the texts is "enforced", "not
// enforced", or "enforced, but …".
type Report struct {
	By      string `json:"by"`
	Env     string `json:"env"` // the program is started with the named variables only
	Files   string `json:"files"`
	Network string `json:"network"`
	Why     string `json:"why,omitempty"` // why there is nothing better
}

// Report finds out what this machine enforces.
func (b *Box) Report(ctx context.Context) Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.how == nil {
		how := b.find(ctx)
		if ctx.Err() != nil {
			return how
		}
		b.how = &how
	}
	return *b.how
}

func (b *Box) find(ctx context.Context) Report {
	const yes = "enforced"
	r := Report{By: ByNothing, Env: yes, Files: NotEnforced, Network: NotEnforced}
	wanted := func(by string) bool { return b.opts.Only == "" || b.opts.Only == by }
	if wanted(ByBwrap) {
		path, err := exec.LookPath("bwrap")
		if err == nil {
			_, err = proc.Run(ctx, proc.Spec{
				Argv: []string{path, "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--proc", "/proc", "--dev", "/dev", "true"}, Timeout: 5 * time.Second,
			})
		}
		if err == nil {
			b.path = path
			return Report{By: ByBwrap, Env: yes, Files: yes, Network: yes}
		}
		r.Why = "bwrap: " + err.Error()
	}
	if wanted(ByLandlock) {
		files, network, err := kernel()
		if err == nil {
			return Report{By: ByLandlock, Env: yes, Files: files, Network: network, Why: r.Why}
		}
		r.Why += "; landlock: " + err.Error()
	}
	if wanted(BySeatbelt) {
		if _, err := os.Stat(seatbelt); err == nil {
			return Report{By: BySeatbelt, Env: yes, Files: yes, Network: yes}
		}
	}
	return r
}

// Argv is the command that runs the policy's program confined; where nothing can
// enforce the policy, the program's own.
func (b *Box) Argv(ctx context.Context, p Policy) ([]string, error) {
	how := b.Report(ctx)
	program, err := exec.LookPath(p.Argv[0])
	if err != nil {
		return nil, err
	}
	s := b.resolve(p, program)
	switch how.By {
	case ByBwrap:
		return append(bwrapArgs(b.path, s), p.Argv...), nil
	case BySeatbelt:
		return append([]string{seatbelt, "-p", profile(s)}, p.Argv...), nil
	case ByLandlock:
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		return append([]string{b.opts.Self, "confine", string(text), "--"}, p.Argv...), nil
	}
	return p.Argv, nil
}

// A Scope is a policy with all folders by their full paths.
type Scope struct {
	Home    string   `json:"home"` // where the program is started
	Read    []string `json:"read"`
	Write   []string `json:"write"`
	Network bool     `json:"network"`
}

func (b *Box) resolve(p Policy, program string) Scope {
	home := b.opts.Getenv("HOME")
	s := Scope{Home: p.Home, Read: append(systemFolders(), p.Home), Network: p.Network}
	s.Read = append(s.Read, installed(program, home)...)
	for _, dir := range p.Read {
		s.Read = append(s.Read, full(dir, p.Dir, home))
	}
	for _, dir := range p.Write {
		s.Write = append(s.Write, full(dir, p.Dir, home))
	}
	s.Write = append(s.Write, p.Writable...)
	s.Read, s.Write = existing(s.Read), existing(s.Write)
	return s
}

func full(dir, base, home string) string {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(base, dir)
}

// existing drops what is not there and what is there twice, follows links, and puts
// folders before what is in them.
func existing(paths []string) []string {
	var all []string
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			continue
		}
		all = append(all, p)
		if real, err := filepath.EvalSymlinks(p); err == nil {
			all = append(all, real)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// systemFolders are what programs of the system need.
func systemFolders() []string {
	return []string{
		"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/run/systemd/resolve", "/sys",
		"/System", "/Library", "/private/etc", "/private/var/select", // macOS
	}
}

// installed are the folders of a program that is not of the system: the one that its
// bin folder lies in, but never a home folder.
func installed(program, home string) []string {
	var all []string
	names := []string{program}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		names = append(names, real)
	}
	for _, name := range names {
		dir := filepath.Dir(name)
		all = append(all, dir)
		if up := filepath.Dir(dir); up != "/" && up != home && !strings.HasPrefix(home, up+"/") {
			all = append(all, up)
		}
	}
	return all
}

// ParseScope reads the scope that Argv wrote for Become.
func ParseScope(text string) (Scope, error) {
	var s Scope
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("reading what a program may do: %w", err)
	}
	return s, nil
}
