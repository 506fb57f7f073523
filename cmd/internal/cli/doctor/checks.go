package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
	"muntin/tmux"
)

func checkTmux(ctx context.Context, a *app.App) []Finding {
	server, err := a.Tmux(ctx, "")
	if err != nil {
		do := app.HintOf(err)
		if errors.Is(err, tmux.ErrTooOld) {
			do = "install tmux 3.2 or newer; 3.4 and later have fewer bugs that muntin works around"
		}
		return []Finding{{Name: "tmux", Grade: Bad, Found: err.Error(), Do: do}}
	}
	f := Finding{Name: "tmux", Grade: Good, Found: fmt.Sprintf("%s, private server %s", server.Version(), server.Socket())}
	if server.Epoch().PID == 0 {
		f.Found += " (not running)"
	}
	return []Finding{f}
}

func checkGit(ctx context.Context, a *app.App) []Finding {
	version, err := worktree.GitVersion(ctx)
	switch {
	case errors.Is(err, worktree.ErrNoGit):
		return []Finding{{Name: "git", Grade: Bad, Found: err.Error(), Do: "install it: " + app.InstallHint("git", app.OSRelease())}}
	case errors.Is(err, worktree.ErrTooOld):
		return []Finding{{Name: "git", Grade: Bad, Found: err.Error(), Do: "install git " + worktree.MinGit + " or newer: merges are made with `git merge-tree --write-tree`"}}
	case err != nil:
		return []Finding{{Name: "git", Grade: Bad, Found: err.Error()}}
	}
	return []Finding{{Name: "git", Grade: Good, Found: version}}
}

func checkRepo(ctx context.Context, a *app.App) []Finding {
	repo, err := a.Repo()
	if err != nil {
		return []Finding{{Name: "repository", Grade: Warn, Found: err.Error(), Do: app.HintOf(err)}}
	}
	git, err := orchestrator.OpenGit(ctx, repo, a.Layout.Repo(repo), a.Now)
	if err != nil {
		return nil // said in the line about git
	}
	head, unborn, err := git.Head(ctx)
	switch {
	case err != nil:
		return []Finding{{Name: "repository", Grade: Bad, Found: err.Error()}}
	case unborn:
		return []Finding{{Name: "repository", Grade: Warn, Found: repo.Root + " has no commit yet", Do: "make one with `git commit`: worktrees start from it"}}
	}
	return []Finding{{Name: "repository", Grade: Good, Found: repo.Root + " at " + head[:8]}}
}

func checkTerminal(_ context.Context, a *app.App) []Finding {
	if !a.Streams.OutTTY {
		return []Finding{{Name: "terminal", Grade: Good, Found: "none: output goes to a file or pipe"}}
	}
	cols, rows := a.Streams.Size()
	f := Finding{Name: "terminal", Grade: Good, Found: fmt.Sprintf("%s, %d x %d", a.Getenv("TERM"), cols, rows)}
	if c := a.Getenv("COLORTERM"); c != "" {
		f.Found += ", " + c
	}
	if cols < 80 || rows < 24 {
		f.Grade, f.Do = Warn, "make it at least 80 x 24; the board and three agents together want 120 x 36"
	}
	return []Finding{f}
}

func checkLocale(_ context.Context, a *app.App) []Finding {
	locale := a.Getenv("LANG")
	for _, key := range []string{"LC_CTYPE", "LC_ALL"} {
		if v := a.Getenv(key); v != "" {
			locale = v
		}
	}
	upper := strings.ToUpper(locale)
	if strings.Contains(upper, "UTF-8") || strings.Contains(upper, "UTF8") {
		return []Finding{{Name: "locale", Grade: Good, Found: locale}}
	}
	return []Finding{{Name: "locale", Grade: Warn, Found: fmt.Sprintf("%q is not UTF-8", locale), Do: "set LANG to a UTF-8 locale, such as C.UTF-8, or programs in panes may show ? for other letters"}}
}

// checkDisk looks at the file systems of the state folder and of the
// repository: worktrees and checkpoints are written there.
func checkDisk(_ context.Context, a *app.App) []Finding {
	places := []struct{ name, path string }{{"disk (state)", a.Layout.State}}
	if repo, err := state.FindRepo(a.Dir); err == nil {
		places = append(places, struct{ name, path string }{"disk (repository)", repo.CommonDir})
	}
	var list []Finding
	for _, p := range places {
		free, err := freeBytes(existing(p.path))
		if err != nil {
			list = append(list, Finding{Name: p.name, Grade: Warn, Found: err.Error()})
			continue
		}
		f := Finding{Name: p.name, Grade: Good, Found: fmt.Sprintf("%.1f GB free at %s", float64(free)/1e9, p.path)}
		switch {
		case free < 100<<20:
			f.Grade, f.Do = Bad, "free some space: checkpoints could not be written"
		case free < 2<<30:
			f.Grade, f.Do = Warn, "each agent's worktree is a copy of the repository's files; free some space before you start many"
		}
		list = append(list, f)
	}
	return list
}

func freeBytes(path string) (uint64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return 0, fmt.Errorf("asking for free space at %s: %w", path, err)
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}

// existing is the path, or the nearest folder above it that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// checkWatches reads inotify's limits, which Linux alone has.
func checkWatches(context.Context, *app.App) []Finding {
	var list []Finding
	for _, limit := range []struct {
		name string
		low  int
	}{{"max_user_watches", 8192}, {"max_user_instances", 128}} {
		path := "/proc/sys/fs/inotify/" + limit.name
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			continue
		}
		f := Finding{Name: "inotify", Grade: Good, Found: fmt.Sprintf("%s %d", limit.name, n)}
		if n < limit.low {
			f.Grade = Warn
			f.Do = fmt.Sprintf("raise it: sudo sysctl fs.inotify.%s=%d", limit.name, max(limit.low, 4*n))
		}
		list = append(list, f)
	}
	return list
}

// checkPaths looks at the folders of our own: can they be written, are they
// private, and do socket paths fit.
func checkPaths(_ context.Context, a *app.App) []Finding {
	var list []Finding
	stateDir := existing(a.Layout.State)
	if err := syscall.Access(stateDir, 2 /* W_OK */); err != nil {
		list = append(list, Finding{Name: "state folder", Grade: Bad, Found: stateDir + " cannot be written", Do: "set XDG_STATE_HOME to a folder of yours"})
	} else {
		list = append(list, Finding{Name: "state folder", Grade: Good, Found: a.Layout.State})
	}
	repo := state.Repo{Main: "/example", CommonDir: "/example/.git"}
	longest := a.Layout.Repo(repo).Run("r").Agent(strings.Repeat("a", 32)).Socket
	f := Finding{Name: "socket paths", Grade: Good, Found: fmt.Sprintf("at most %d bytes of %d in %s", len(longest), state.MaxSocketPath, a.Layout.Runtime)}
	if len(longest) > state.MaxSocketPath {
		f.Grade, f.Do = Warn, "agents with long names could not be started: set XDG_RUNTIME_DIR to a shorter folder"
	}
	list = append(list, f)
	if info, err := os.Stat(a.Layout.Runtime); err == nil && info.Mode().Perm()&0o077 != 0 {
		list = append(list, Finding{
			Name: "runtime folder", Grade: Warn, Found: fmt.Sprintf("%s has mode %o", a.Layout.Runtime, info.Mode().Perm()),
			Do: "chmod 700 " + a.Layout.Runtime,
		})
	}
	return list
}
