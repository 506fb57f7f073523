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
	"strconv"
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

// settings is the part of git's configuration that matters here, as git
// merges it from all its files, and the state of these files at that time.
type settings struct {
	values   map[string]string // by lower-case key, the last value
	files    []string
	stamp    string
	fileMode bool
	symlinks bool
	fold     bool // core.ignoreCase
	sparse   bool // files outside the sparse patterns count when they are on disk
}

func (g *git) loadSettings(ctx context.Context) (*settings, error) {
	out, err := g.run(ctx, "", nil, "config", "--list", "-z", "--show-origin")
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	c := &settings{values: map[string]string{}, files: g.configFiles()}
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if file, ok := strings.CutPrefix(fields[i], "file:"); ok {
			if !filepath.IsAbs(file) {
				file = filepath.Join(g.repo.Root, file)
			}
			if !slices.Contains(c.files, file) {
				c.files = append(c.files, file)
			}
		}
		key, value, has := strings.Cut(fields[i+1], "\n")
		if !has {
			value = "true" // a key without "=" is a true boolean
		}
		c.values[strings.ToLower(key)] = value
	}
	c.stamp = stampFiles(c.files)
	c.fileMode = c.bool("core.filemode", true)
	c.symlinks = c.bool("core.symlinks", true)
	c.fold = c.bool("core.ignorecase", false)
	c.sparse = c.bool("core.sparsecheckout", false) && !c.bool("sparse.expectfilesoutsideofpatterns", false)
	return c, nil
}

// configFiles lists where git looks for configuration even if there is no
// file now, so that a new one is noticed.
func (g *git) configFiles() []string {
	files := []string{filepath.Join(g.repo.CommonDir, "config"), filepath.Join(g.repo.GitDir, "config.worktree")}
	if f := os.Getenv("GIT_CONFIG_GLOBAL"); f != "" {
		return append(files, f)
	}
	if home := os.Getenv("HOME"); home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	return append(files, xdgFile("config"))
}

// fresh returns c, or the configuration read again if one of its files changed.
func (g *git) fresh(ctx context.Context, c *settings) (*settings, error) {
	if c != nil && c.stamp == stampFiles(c.files) {
		return c, nil
	}
	return g.loadSettings(ctx)
}

func (c *settings) bool(key string, unset bool) bool {
	v, ok := c.values[key]
	if !ok {
		return unset
	}
	switch strings.ToLower(v) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off", "":
		return false
	}
	n, err := strconv.Atoi(v)
	return err != nil || n != 0
}

// path returns a configured file name with git's "~/" made absolute, or unset.
func (c *settings) path(key, unset string) string {
	v, ok := c.values[key]
	if !ok {
		return unset
	}
	if rest, ok := strings.CutPrefix(v, "~/"); ok {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	return v
}

// partial tells whether git can fetch objects that are not here
// (gitrepository-layout(5), partial clone).
func (c *settings) partial() bool {
	if c.values["extensions.partialclone"] != "" {
		return true
	}
	for key := range c.values {
		if strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor") {
			return true
		}
	}
	return false
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
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return b, err
}
