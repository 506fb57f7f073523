package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// settings is the part of git's configuration that matters here, as git
// merges it from all its files, and the state of these files at that time.
type settings struct {
	values   map[string]string // by lower-case key, the last value
	files    []string
	stamp    string // "": not to be relied on later
	fileMode bool
	symlinks bool
	fold     bool // core.ignoreCase
	sparse   bool // files outside the sparse patterns count when they are on disk
}

// loadSettings asks git, unless the cache file knows the answer still.
func (g *git) loadSettings(ctx context.Context) (*settings, error) {
	if c := g.cachedSettings(); c != nil {
		return c, nil
	}
	start := time.Now()
	out, err := g.run(ctx, "", nil, "config", "--list", "-z", "--show-origin")
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	c := &settings{values: map[string]string{}, files: g.configFiles()}
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		file, isFile := strings.CutPrefix(fields[i], "file:")
		if isFile && !filepath.IsAbs(file) {
			file = filepath.Join(g.repo.Root, file)
		}
		key, value, has := strings.Cut(fields[i+1], "\n")
		if !has {
			value = "true" // a key without "=" is a true boolean
		}
		if isFile {
			c.watch(file)
			c.watch(g.included(file, key, value))
		}
		if key = strings.ToLower(key); isWanted(key) {
			c.values[key] = value
		}
	}
	if settled(c.files, start) {
		c.stamp = stampFiles(c.files)
		g.cacheSettings(c)
	}
	c.interpret()
	return c, nil
}

// isWanted tells whether a value matters here. Others are not kept: there may be secrets among them.
func isWanted(key string) bool {
	for _, section := range []string{"core.", "filter.", "extensions.", "sparse."} {
		if strings.HasPrefix(key, section) {
			return true
		}
	}
	return strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor")
}

// watch adds a file whose change is a change of the configuration.
func (c *settings) watch(file string) {
	if file != "" && !slices.Contains(c.files, file) {
		c.files = append(c.files, file)
	}
}

// included is the file that decides about an include that file asks for,
// there or not: the one to include, or HEAD for one that depends on the branch.
func (g *git) included(file, key, value string) string {
	lower := strings.ToLower(key)
	switch {
	case strings.HasPrefix(lower, "includeif.onbranch:"):
		return filepath.Join(g.repo.GitDir, "HEAD")
	case lower != "include.path" && !(strings.HasPrefix(lower, "includeif.") && strings.HasSuffix(lower, ".path")):
		return ""
	}
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	if filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(filepath.Dir(file), value)
}

// settled tells that no file was changed so late that git may have read it before.
func settled(files []string, start time.Time) bool {
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && !info.ModTime().Before(start.Add(-tick)) {
			return false
		}
	}
	return true
}

func (c *settings) interpret() {
	c.fileMode = c.bool("core.filemode", true)
	c.symlinks = c.bool("core.symlinks", true)
	c.fold = c.bool("core.ignorecase", false)
	c.sparse = c.bool("core.sparsecheckout", false) && !c.bool("sparse.expectfilesoutsideofpatterns", false)
}

// configFiles lists where git looks for configuration even if there is no
// file now, so that a new one is noticed.
func (g *git) configFiles() []string {
	files := []string{filepath.Join(g.repo.CommonDir, "config"), filepath.Join(g.repo.GitDir, "config.worktree"), "/etc/gitconfig"}
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
	if c != nil && c.stamp != "" && c.stamp == stampFiles(c.files) {
		return c, nil
	}
	return g.loadSettings(ctx)
}

// storedSettings are settings in their cache file.
type storedSettings struct {
	Version int               `json:"version"`
	Env     []string          `json:"env"`
	Values  map[string]string `json:"values"`
	Files   []string          `json:"files"`
	Stamp   string            `json:"stamp"`
}

const settingsVersion = 1

// configEnv is the part of git's environment that decides what its configuration is.
func (g *git) configEnv() []string {
	env := slices.DeleteFunc(slices.Clone(g.env), func(kv string) bool {
		return !strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "HOME=") && !strings.HasPrefix(kv, "XDG_CONFIG_HOME=")
	})
	slices.Sort(env)
	return env
}

// cachedSettings returns what the cache file has, nil if that is nothing or out of date.
func (g *git) cachedSettings() *settings {
	if g.cache == "" {
		return nil
	}
	data, err := os.ReadFile(g.cache)
	if err != nil {
		return nil
	}
	var in storedSettings
	if json.Unmarshal(data, &in) != nil || in.Version != settingsVersion || in.Values == nil || in.Stamp != stampFiles(in.Files) || !slices.Equal(in.Env, g.configEnv()) {
		return nil
	}
	c := &settings{values: in.Values, files: in.Files, stamp: in.Stamp}
	c.interpret()
	return c
}

// cacheSettings writes the cache file. Without it the next process asks git.
func (g *git) cacheSettings(c *settings) {
	if g.cache == "" {
		return
	}
	out := storedSettings{Version: settingsVersion, Env: g.configEnv(), Values: c.values, Files: c.files, Stamp: c.stamp}
	data, err := json.Marshal(out)
	if err != nil || !valid(out) {
		return
	}
	temp := g.cache + "." + strconv.Itoa(os.Getpid())
	if os.WriteFile(temp, data, 0o600) != nil || os.Rename(temp, g.cache) != nil {
		_ = os.Remove(temp) // it may not be there
	}
}

// valid tells that JSON can hold the settings as they are.
func valid(s storedSettings) bool {
	for key, value := range s.Values {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return false
		}
	}
	bad := func(s string) bool { return !utf8.ValidString(s) }
	return !slices.ContainsFunc(s.Env, bad) && !slices.ContainsFunc(s.Files, bad)
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
