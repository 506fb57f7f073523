package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"muntin/internal/proc"
	"muntin/internal/state"
)

// A git runs the git binary on one worktree for the few things that only git
// can answer as git does: its merged configuration, its content conversion,
// and formats that we do not read.
type git struct {
	repo     state.Repo
	env      []string
	includes []string // configuration files to read beside those of repo
	longHash bool     // the repository names objects by another hash than SHA-1
	cache    string   // file for the settings between processes; "" for none
	blind    bool     // git cannot open the repository: repo is a sidecar that stands for it
}

func newGit(repo state.Repo) *git {
	var env []string
	for _, kv := range os.Environ() {
		// What points git at another repository, index or object store must not reach it.
		// Where it finds its configuration is the user's business.
		if !strings.HasPrefix(kv, "GIT_") || strings.HasPrefix(kv, "GIT_CONFIG") || strings.HasPrefix(kv, "GIT_ATTR_") {
			env = append(env, kv)
		}
	}
	env = append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
		"GIT_DIR="+repo.GitDir, "GIT_WORK_TREE="+repo.Root)
	return &git{repo: repo, env: env}
}

// run returns what git prints. With index, git uses that file as its index.
func (g *git) run(ctx context.Context, index string, stdin io.Reader, args ...string) ([]byte, error) {
	var out bytes.Buffer
	for _, file := range g.includes {
		args = append([]string{"-c", "include.path=" + file}, args...)
	}
	spec := proc.Spec{
		// Hooks never run, and nothing of the user's may refuse or watch: fsmonitor, safecrlf.
		Argv: append([]string{"git", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.safecrlf=false",
			"-c", "core.fsmonitor=false"}, args...),
		Dir: g.repo.Root, Env: g.env, Stdin: stdin, Stdout: &out,
	}
	if index != "" {
		spec.Env = append(slices.Clone(g.env), "GIT_INDEX_FILE="+index)
	}
	if _, err := proc.Run(ctx, spec); err != nil {
		return nil, fmt.Errorf("git %s: %w", args[2*len(g.includes)], err)
	}
	return out.Bytes(), nil
}

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// xdgFile is a file of git's in the user's configuration folder, "" if none is known.
func xdgFile(name string) string {
	if d := os.Getenv("XDG_CONFIG_HOME"); d != "" {
		return filepath.Join(d, "git", name)
	}
	if home := os.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "git", name)
	}
	return ""
}

// stampFiles tells one state of some files from another.
func stampFiles(files []string) string {
	var b strings.Builder
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			fmt.Fprintf(&b, "%s %d %d %v\n", f, info.Size(), info.ModTime().UnixNano(), inode(info))
		}
	}
	return b.String()
}

// readOptional reads a file that need not be there.
func readOptional(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := readNow(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return b, err
}
