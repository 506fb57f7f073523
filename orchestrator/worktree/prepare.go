package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muntin/internal/proc"
)

// keptOutput is how much of a command's output is kept, its end, in bytes.
const keptOutput = 8 << 10

// Commands are shell lines that a person wrote, run one after another with a
// worktree as their working folder. The first that fails ends them.
type Commands struct {
	Lines   []string
	Env     []string      // nil: this process's environment
	Timeout time.Duration // of each line; 0: none
}

// A CommandError tells which line of Commands failed, how, and the end of its
// output.
type CommandError struct {
	Line   string
	Ending string // "exit status 3", "stopped after 5m0s"
	Output string
}

func (e *CommandError) Error() string {
	text := fmt.Sprintf("%q: %s", e.Line, e.Ending)
	if out := strings.TrimSpace(e.Output); out != "" {
		text += "\n" + out
	}
	return text
}

// run runs the lines in dir. The error is a *CommandError when one of them failed.
func (c Commands) run(ctx context.Context, dir string) error {
	for _, line := range c.Lines {
		res, err := proc.Shell(ctx, line, proc.Spec{Dir: dir, Env: c.Env, Timeout: c.Timeout, Keep: keptOutput})
		var exit *proc.ExitError
		if errors.As(err, &exit) {
			return &CommandError{Line: line, Ending: exit.Result.Ending(), Output: strings.ToValidUTF8(string(res.Stdout), "")}
		}
		if err != nil {
			return fmt.Errorf("running %q: %w", line, err)
		}
	}
	return nil
}

// A Preparation says what a new worktree gets beyond the files of its commit.
// The paths name files or folders that git ignores, relative to the top of the
// repository, with slashes, and may be patterns (path.Match); they are taken from the worktree muntin was called in.
type Preparation struct {
	Copy  []string // copied, sharing disk space where the file system can
	Link  []string // a symlink to the one there
	Setup Commands
}

// A Spawn asks for a new worktree that is ready to be worked in.
type Spawn struct {
	Path, Branch, At string // as for Add
	Preparation
}

// Spawned is what came of a Spawn.
type Spawned struct {
	Worktree
	Missing []string // paths of Copy and Link that there were none of
}

// Spawn is Add, and then the preparation. The worktree must be clean after all
// of it: what was copied, linked or made by the setup has to be ignored by git,
// or it would be taken for the agent's work. When anything fails nothing of
// the worktree and its branch is left. A failed setup is a *CommandError; for
// the other errors see Add.
func (m *Manager) Spawn(ctx context.Context, s Spawn) (Spawned, error) {
	for _, path := range append(append([]string{}, s.Copy...), s.Link...) {
		if err := CheckPath(path); err != nil {
			return Spawned{}, err
		}
	}
	wt, err := m.Add(ctx, s.Path, s.Branch, s.At)
	if err != nil {
		return Spawned{}, err
	}
	missing, err := m.prepare(ctx, wt.Path, s.Preparation)
	if err == nil {
		return Spawned{Worktree: wt, Missing: missing}, nil
	}
	// Nobody has worked in it yet, and all that is in it was just made.
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, m.unregister(ctx, wt.Path), m.deleteBranch(ctx, wt.Branch, wt.Head))
	return Spawned{}, fmt.Errorf("preparing worktree %s: %w", wt.Path, err)
}

func (m *Manager) prepare(ctx context.Context, path string, p Preparation) (missing []string, err error) {
	if len(p.Copy)+len(p.Link)+len(p.Setup.Lines) == 0 {
		return nil, nil
	}
	for _, part := range []struct {
		what  string
		paths []string
		bring func(ctx context.Context, b bringing) error
	}{{"copying", p.Copy, m.copyIgnored}, {"linking", p.Link, m.linkIgnored}} {
		notThere, err := m.bringAll(ctx, path, part.paths, part.bring)
		if err != nil {
			return nil, fmt.Errorf("%s %w", part.what, err)
		}
		missing = append(missing, notThere...)
	}
	if err := p.Setup.run(ctx, path); err != nil {
		return nil, fmt.Errorf("setup: %w", err)
	}
	return missing, m.verify(ctx, path)
}

// A bringing is one path on its way from the person's worktree into a new one.
type bringing struct {
	path     string // relative, with the system's separators
	from, to *os.Root
	info     fs.FileInfo // of the source, not followed
}

// bringAll brings paths into the worktree at dir, and returns those that there
// are none of. Nothing outside either worktree is read or written, whatever
// symlinks there are.
func (m *Manager) bringAll(ctx context.Context, dir string, paths []string, bring func(context.Context, bringing) error) (missing []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	from, err := os.OpenRoot(m.repo.Root)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	paths, missing, err = expand(from, paths)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		b := bringing{path: filepath.FromSlash(path), from: from, to: to}
		if b.info, err = from.Lstat(b.path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if _, err := to.Lstat(b.path); err == nil {
			return nil, fmt.Errorf("%s: it is in the commit already", path)
		}
		if err := to.MkdirAll(filepath.Dir(b.path), 0o755); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := bring(ctx, b); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return missing, nil
}

// expand replaces patterns by what there is of them, and tells of which there
// is nothing.
func expand(root *os.Root, patterns []string) (paths, missing []string, err error) {
	for _, pattern := range patterns {
		found := []string{pattern}
		if strings.ContainsAny(pattern, `*?[\`) {
			if found, err = fs.Glob(root.FS(), pattern); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", pattern, err)
			}
		} else if _, err := root.Lstat(filepath.FromSlash(pattern)); errors.Is(err, os.ErrNotExist) {
			found = nil
		}
		if len(found) == 0 {
			missing = append(missing, pattern)
		}
		for _, path := range found {
			if err := CheckPath(path); err != nil {
				return nil, nil, err
			}
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, missing, nil
}

// copyIgnored copies one path. A symlink that leads out of the repository is
// refused where it is named itself; inside a copied folder symlinks are copied
// as they are and never followed.
func (m *Manager) copyIgnored(ctx context.Context, b bringing) error {
	if b.info.Mode().Type() == fs.ModeSymlink {
		if _, err := b.from.Stat(b.path); err != nil {
			return fmt.Errorf("it is a symlink that leads out of the repository or nowhere: %w", err)
		}
	}
	if err := copyTree(ctx, b); err != nil {
		return err
	}
	return m.wantIgnored(ctx, b)
}

// linkIgnored makes a symlink to one path. A rule like `node_modules/` ignores
// folders only, and git would take the symlink for a new file: then a folder of
// links stands in for it, one to each thing inside.
func (m *Manager) linkIgnored(ctx context.Context, b bringing) error {
	target := filepath.Join(m.repo.Root, b.path)
	if err := b.to.Symlink(target, b.path); err != nil {
		return err
	}
	err := m.wantIgnored(ctx, b)
	if !errors.Is(err, errNotIgnored) || !b.info.IsDir() {
		return err
	}
	if err := b.to.Remove(b.path); err != nil {
		return err
	}
	if err := b.to.Mkdir(b.path, 0o755); err != nil {
		return err
	}
	entries, err := fs.ReadDir(b.from.FS(), filepath.ToSlash(b.path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := b.to.Symlink(filepath.Join(target, e.Name()), filepath.Join(b.path, e.Name())); err != nil {
			return err
		}
	}
	return m.wantIgnored(ctx, b)
}

var errNotIgnored = errors.New("git does not ignore it, so it would be merged with the agent's work (hint: put it in .gitignore)")

func (m *Manager) wantIgnored(ctx context.Context, b bringing) error {
	_, err := m.git.run(ctx, call{dir: b.to.Name(), args: []string{"check-ignore", "--quiet", "--", filepath.ToSlash(b.path)}})
	if exitCode(err) == 1 {
		return errNotIgnored
	}
	return err
}

// CheckPath returns an error unless path can name something to copy or link:
// relative, inside the repository, and not git's own.
func CheckPath(path string) error {
	if !fs.ValidPath(path) || path == "." || strings.ContainsRune(path, 0) {
		return fmt.Errorf("path %q: want a path inside the repository, relative to its top, without any . or .. in it", path)
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(part, ".git") {
			return fmt.Errorf("path %q: it is git's own", path)
		}
	}
	return nil
}
