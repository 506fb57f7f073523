// Package app is what every command of muntin is given: the streams, the
// environment, where state lives, and the run that is meant. Commands get it
// by value of a pointer that root built; nothing here is global.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/tmux"
)

// An App is the program as its commands see it.
type App struct {
	Streams term.Streams
	Theme   term.Theme
	Layout  state.Layout
	Environ []string
	Now     func() time.Time
	Version string
	Self    string // this executable
	Dir     string // --repo, else the present folder

	// Background is work that goes on when its command has ended; main waits for it.
	Background sync.WaitGroup

	// Signals makes a context that ends with the first SIGINT, SIGTERM or SIGHUP.
	Signals func(context.Context) (context.Context, context.CancelFunc)
}

// Interruptible makes a cobra RunE of a function that ends when its context
// does, which the first Ctrl-C brings about.
func (a *App) Interruptible(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := a.Signals(cmd.Context())
		defer stop()
		return run(ctx, args)
	}
}

// Crashed reports a panic as an internal error: a line for the person, the
// stack in a file. It returns the exit code.
func (a *App) Crashed(p any, stack []byte) int {
	path := filepath.Join(a.Layout.State, "crash.log")
	where := path
	text := fmt.Sprintf("%s muntin %s: panic: %v\n%s\n", a.Now().Format(time.RFC3339), a.Version, p, stack)
	err := os.MkdirAll(a.Layout.State, 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		where = err.Error()
	}
	fmt.Fprintf(a.Streams.Err, "muntin: internal error: %v (details: %s)\n", p, where)
	return ExitFailed
}

// Getenv looks a variable up in the App's environment.
func (a *App) Getenv(key string) string {
	for _, kv := range slices.Backward(a.Environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// Command is how a person calls this program: by its name where that finds it,
// else by its path.
func (a *App) Command() string {
	found, err := exec.LookPath("muntin")
	if err != nil {
		return a.Self
	}
	here, err := os.Stat(a.Self)
	if err != nil {
		return a.Self
	}
	if there, err := os.Stat(found); err != nil || !os.SameFile(here, there) {
		return a.Self
	}
	return "muntin"
}

// Repo finds the repository the command is about. The error tells how to make
// one; muntin never makes one unasked.
func (a *App) Repo() (state.Repo, error) {
	repo, err := state.FindRepo(a.Dir)
	if errors.Is(err, state.ErrNoRepo) {
		dir := a.Dir
		if abs, absErr := filepath.Abs(dir); absErr == nil {
			dir = abs
		}
		return repo, Hint(err, "checkpoints and worktrees need one: run `git init %s` there and commit once, or name another with --repo", dir)
	}
	return repo, err
}

// TmuxSocket is the private server's name or path.
func (a *App) TmuxSocket() string {
	if s := a.Getenv("MUNTIN_TMUX_SOCKET"); s != "" {
		return s
	}
	return "muntin"
}

// Tmux opens the private tmux server that panes live on; socket is the one a
// run was started on, or empty for the present one.
func (a *App) Tmux(ctx context.Context, socket string) (*tmux.Server, error) {
	if socket == "" {
		socket = a.TmuxSocket()
	}
	server, err := tmux.Open(ctx, tmux.Options{
		Socket:    socket,
		ConfigDir: filepath.Join(a.Layout.State, "tmux"),
		Env:       a.Environ,
		Dir:       "/",
	})
	if errors.Is(err, tmux.ErrNoTmux) {
		return nil, Hint(err, "install it: %s", InstallHint("tmux", OSRelease()))
	}
	return server, err
}

// InstallHint names the command that installs a package on this system.
// osRelease is the text of /etc/os-release.
func InstallHint(pkg, osRelease string) string {
	id := ""
	for line := range strings.Lines(osRelease) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "ID" || key == "ID_LIKE" {
			id += " " + strings.Trim(value, `"'`)
		}
	}
	for _, known := range []struct{ word, command string }{
		{"debian", "sudo apt-get install " + pkg},
		{"ubuntu", "sudo apt-get install " + pkg},
		{"fedora", "sudo dnf install " + pkg},
		{"rhel", "sudo dnf install " + pkg},
		{"suse", "sudo zypper install " + pkg},
		{"arch", "sudo pacman -S " + pkg},
		{"alpine", "sudo apk add " + pkg},
		{"nixos", "nix-env -iA nixos." + pkg},
		{"darwin", "brew install " + pkg},
	} {
		if strings.Contains(id, known.word) {
			return known.command
		}
	}
	return "with your system's package manager, as package " + pkg
}

// OSRelease is the text that tells which system this is; see InstallHint.
func OSRelease() string {
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "ID=" + goos()
	}
	return string(b)
}

// Confirmed makes sure that a path a person gave exists and is a folder.
func Confirmed(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", abs)
	}
	return abs, nil
}
