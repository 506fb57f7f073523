package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"muntin/internal/proc"
)

// MinGit is the oldest git that has `merge-tree --write-tree`, as major and minor.
const MinGit = "2.38"

const headsPrefix = "refs/heads/"

// git runs the git program. The zero value has an empty environment.
type git struct {
	env  []string
	root string // where our worktrees are; empty: nowhere
}

// A call is one run of git.
type call struct {
	dir   string
	args  []string
	stdin string
	env   []string // added to the cleaned environment
}

// config is what every call sets, whatever the user's configuration says: no
// hooks (a hook of the user's is for the user's commits), no background gc
// that competes with the agents, no daemon left behind in a worktree, no
// signing, and no walk into submodules.
func config() []string {
	return []string{
		"-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "core.fsmonitor=false", "-c", "submodule.recurse=false", "-c", "commit.gpgSign=false",
	}
}

// mostCalls bounds how often a call is made whose lock somebody has.
const mostCalls = 20

// run runs git to its end and returns all of its output. The error is a
// *proc.ExitError when git said no. A lock that a killed git left behind is no
// reason to say no.
func (g git) run(ctx context.Context, c call) (out string, err error) {
	for range mostCalls {
		out, err = g.once(ctx, c)
		lock := heldLock(err)
		if lock == "" || !g.freed(ctx, c.dir, lock) {
			break
		}
	}
	return out, err
}

func (g git) once(ctx context.Context, c call) (string, error) {
	var out bytes.Buffer
	spec := proc.Spec{
		Argv:   append(append([]string{"git"}, config()...), c.args...),
		Dir:    c.dir,
		Env:    append(g.env[:len(g.env):len(g.env)], c.env...),
		Stdout: &out,
	}
	if c.stdin != "" {
		spec.Stdin = strings.NewReader(c.stdin)
	}
	_, err := proc.Run(ctx, spec)
	return out.String(), err
}

// check makes sure that git runs and is new enough.
func (g git) check(ctx context.Context) error {
	out, err := g.run(ctx, call{args: []string{"version"}})
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: muntin needs git %s or later", ErrNoGit, MinGit)
	}
	if err != nil {
		return fmt.Errorf("asking git for its version: %w", err)
	}
	have, ok := parseVersion(out)
	if !ok {
		return fmt.Errorf("asking git for its version: cannot read %q", strings.TrimSpace(out))
	}
	if want, _ := parseVersion("git version " + MinGit); have.less(want) {
		return fmt.Errorf("%w: this is %d.%d, muntin needs %s or later", ErrTooOld, have.major, have.minor, MinGit)
	}
	return nil
}

type version struct{ major, minor int }

func (v version) less(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// parseVersion reads `git version 2.39.5 (Apple Git-154)` and its like.
func parseVersion(out string) (version, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(out), "git version ")
	if !ok {
		return version{}, false
	}
	major, rest, ok := strings.Cut(rest, ".")
	if !ok {
		return version{}, false
	}
	minor := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		minor = rest[:i]
	}
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return version{a, b}, errA == nil && errB == nil
}

// cleanEnv returns environ without the variables that choose git's
// repository, index, work tree or configuration of one call. What chooses
// programs, identity and configuration files stays.
func cleanEnv(environ []string) []string {
	keep := func(name string) bool {
		switch name {
		case "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH",
			"GIT_SSH", "GIT_SSH_COMMAND", "GIT_LFS_SKIP_SMUDGE":
			return true
		case "LC_ALL", "LANGUAGE":
			return false
		}
		return !strings.HasPrefix(name, "GIT_")
	}
	var env []string
	for _, kv := range environ {
		if name, _, ok := strings.Cut(kv, "="); ok && keep(name) {
			env = append(env, kv)
		}
	}
	// Optional locks would make the agents' own git calls fail now and then.
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
}

// exitCode is the exit status in err, or -1 when git did not end by itself.
func exitCode(err error) int {
	var exit *proc.ExitError
	if errors.As(err, &exit) {
		return exit.Result.Code
	}
	return -1
}

// stderr is what git said in err.
func stderr(err error) string {
	var exit *proc.ExitError
	if errors.As(err, &exit) {
		return string(exit.Result.Stderr)
	}
	return ""
}

// headBranch returns the short name of the branch dir is on, "" when detached.
func headBranch(ctx context.Context, g git, dir string) (string, error) {
	out, err := g.run(ctx, call{dir: dir, args: []string{"symbolic-ref", "--quiet", "HEAD"}})
	if exitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading HEAD of %s: %w", dir, err)
	}
	return strings.TrimPrefix(strings.TrimSpace(out), headsPrefix), nil
}

// splitNul splits output of a -z option; the last NUL ends the last item.
func splitNul(out string) []string {
	out = strings.TrimSuffix(out, "\x00")
	if out == "" {
		return nil
	}
	return strings.Split(out, "\x00")
}
