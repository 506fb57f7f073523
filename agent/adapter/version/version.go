// Package version asks programs for their version, once for each file: a CLI
// that is a script for Node takes a second of the processor to say it.
package version

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"muntin/internal/durable"
	"muntin/internal/proc"
)

// limit is how long a program may take to answer: one that starts slowly does
// so for this too.
const limit = 30 * time.Second

// maxKept is how many answers are kept: old ones are of programs that are gone.
const maxKept = 200

// A Cache keeps what programs have answered, in one file. Several processes may
// use it at once. The zero value keeps nothing.
type Cache struct{ Path string }

// An answer is what the program in a file said of itself, when the file was of
// that time and size.
type answer struct {
	Modified time.Time `json:"modified"`
	Size     int64     `json:"size"`
	Says     string    `json:"says"` // the first line; may be empty
}

// Of gives the first line that a program prints for --version, foreign text;
// empty if it prints nothing. program is looked for in the PATH of env. The error
// matches exec.ErrNotFound if it is not there.
func (c Cache) Of(ctx context.Context, program string, env []string) (string, error) {
	path, err := look(program, env)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", program, err)
	}
	if a, ok := c.read()[path]; ok && a.Modified.Equal(info.ModTime()) && a.Size == info.Size() {
		return a.Says, nil
	}
	res, err := proc.Run(ctx, proc.Spec{Argv: []string{path, "--version"}, Env: env, Timeout: limit, Keep: 4 << 10})
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	says := ""
	if err == nil { // one that does not know the word is asked no more
		says, _, _ = strings.Cut(strings.TrimSpace(string(res.Stdout)), "\n")
	}
	return says, c.keep(ctx, path, answer{info.ModTime(), info.Size(), says})
}

// look gives the file of a program, behind all links: an update changes that.
func look(program string, env []string) (string, error) {
	dirs := ""
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = value
		}
	}
	if strings.Contains(program, "/") {
		return filepath.EvalSymlinks(program)
	}
	for _, dir := range filepath.SplitList(dirs) {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(path) {
			return filepath.EvalSymlinks(path)
		}
	}
	return "", fmt.Errorf("%s: %w", program, exec.ErrNotFound)
}

// read gives what is kept: nothing, if it cannot be read. It is only a cache.
func (c Cache) read() map[string]answer {
	kept := map[string]answer{}
	data, err := os.ReadFile(c.Path)
	if err != nil || json.Unmarshal(data, &kept) != nil {
		return map[string]answer{}
	}
	return kept
}

func (c Cache) keep(ctx context.Context, path string, a answer) error {
	if c.Path == "" {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(c.Path), 0o700)
	if err != nil {
		return fmt.Errorf("keeping the version of %s: %w", path, err)
	}
	held, err := durable.Lock(ctx, c.Path)
	if err != nil {
		return fmt.Errorf("keeping the version of %s: %w", path, err)
	}
	kept := c.read()
	if len(kept) >= maxKept {
		for old := range kept {
			if _, err := os.Stat(old); errors.Is(err, fs.ErrNotExist) || len(kept) >= maxKept {
				delete(kept, old)
			}
		}
	}
	kept[path] = a
	data, err := json.Marshal(kept)
	if err == nil {
		err = durable.WriteFile(c.Path, append(data, '\n'), 0o600)
	}
	if err = errors.Join(err, held.Unlock()); err != nil {
		return fmt.Errorf("keeping the version of %s: %w", path, err)
	}
	return nil
}
