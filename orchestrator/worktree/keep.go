package worktree

import (
	"context"
	"fmt"
	"strings"
)

// A Keep is a commit on a ref of muntin's own that keeps other commits alive, and
// texts beside them.
type Keep struct {
	Ref     string // below refs/muntin/; its commit becomes the first parent
	Commits []string
	Files   map[string]string // by name, without slashes
	Message string
}

// Keep makes the commit, durably, and returns its id. Whatever it reaches stays
// until the ref is deleted. It is one process, whatever is kept. Calls for one ref must
// come one after the other.
func (m *Manager) Keep(ctx context.Context, k Keep) (string, error) {
	tip, err := m.run(ctx, "rev-parse", "--verify", "--quiet", k.Ref+"^{commit}")
	if err != nil && exitCode(err) != 1 {
		return "", fmt.Errorf("keeping commits on %s: %w", k.Ref, err)
	}
	parents := strings.Fields(tip)
	for _, c := range k.Commits {
		if isOID(c) {
			parents = append(parents, c)
		}
	}
	// One commit has at most 16 parents in git-fast-import(1).
	for first := true; first || len(parents) > mostParents; first = false {
		var rest []string
		if len(parents) > mostParents {
			parents, rest = parents[:mostParents], parents[mostParents:]
		}
		if _, err := m.git.run(ctx, call{dir: m.repo.Root, args: []string{"fast-import", "--quiet", "--force", "--done"}, stdin: k.stream(parents, m.now().Unix())}); err != nil {
			return "", fmt.Errorf("keeping commits on %s: %w", k.Ref, err)
		}
		out, err := m.run(ctx, "rev-parse", "--verify", k.Ref)
		if err != nil {
			return "", fmt.Errorf("keeping commits on %s: %w", k.Ref, err)
		}
		tip = strings.TrimSpace(out)
		if len(rest) == 0 {
			break
		}
		parents = append([]string{tip}, rest...)
	}
	return tip, nil
}

const mostParents = 15

// stream is the input of git-fast-import(1).
func (k Keep) stream(parents []string, when int64) string {
	var b strings.Builder
	data := func(text string) { fmt.Fprintf(&b, "data %d\n%s\n", len(text), text) }
	fmt.Fprintf(&b, "feature done\nreset %s\n", k.Ref)
	fmt.Fprintf(&b, "commit %s\ncommitter muntin <muntin@localhost> %d +0000\n", k.Ref, when)
	data(k.Message)
	for i, p := range parents {
		word := "merge"
		if i == 0 {
			word = "from"
		}
		fmt.Fprintf(&b, "%s %s\n", word, p)
	}
	b.WriteString("deleteall\n")
	for name, text := range k.Files {
		fmt.Fprintf(&b, "M 100644 inline %s\n", name)
		data(text)
	}
	b.WriteString("done\n")
	return b.String()
}

// Kept reads a text that Keep has kept. ok is false where there is none.
func (m *Manager) Kept(ctx context.Context, commit, name string) (text string, ok bool, err error) {
	text, err = m.run(ctx, "cat-file", "blob", commit+":"+name)
	if exitCode(err) > 0 {
		return "", false, nil
	}
	return text, err == nil, err
}

// Has tells whether a commit is in the repository.
func (m *Manager) Has(ctx context.Context, commit string) bool {
	if !isOID(commit) {
		return false
	}
	_, err := m.run(ctx, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// MoveBranch moves a branch of muntin's own that is checked out nowhere from one
// commit to another, which may be no descendant. The error matches ErrMoved if it
// does not stand at from, and ErrRefused if it is somebody else's, or checked out.
func (m *Manager) MoveBranch(ctx context.Context, branch, from, to string) error {
	if !strings.HasPrefix(branch, branchPrefix) {
		return fmt.Errorf("moving branch %s: %w: it is not one of muntin's", branch, ErrRefused)
	}
	list, err := m.List(ctx)
	if err != nil {
		return err
	}
	for _, wt := range list {
		if wt.Branch == branch && !wt.Gone {
			return fmt.Errorf("moving branch %s: %w: it is checked out in %s", branch, ErrRefused, wt.Path)
		}
	}
	return m.move(ctx, moveRequest{branch: branch, from: from, to: to, note: "muntin: rollback"})
}

// MoveHead moves the branch that an agent's worktree is on to another commit and
// brings the index in line; the files stay as they are, as a restore has left them. A
// merge, rebase or the like that is open in the worktree is ended. Calling it again does
// nothing. The error matches ErrOffBranch if the worktree is on another branch. The agent must be at rest.
func (m *Manager) MoveHead(ctx context.Context, wt Worktree, to string) error {
	b, err := m.stateOf(ctx, wt)
	if err != nil {
		return fmt.Errorf("moving %s: %w", wt.Branch, err)
	}
	if !b.on {
		return fmt.Errorf("moving %s: %w", wt.Branch, ErrOffBranch)
	}
	if b.tip != to {
		if err := m.move(ctx, moveRequest{branch: wt.Branch, from: b.tip, to: to, note: "muntin: rollback"}); err != nil {
			return err
		}
	}
	return m.resetIndex(ctx, wt, to)
}

// Tips returns where the branches of a run stand, by their names' last part, and the
// commits of the refs below checkpoints, by theirs.
func (m *Manager) Tips(ctx context.Context, run, checkpoints string) (branches, commits map[string]string, err error) {
	heads := headsPrefix + branchPrefix + run + "/"
	out, err := m.run(ctx, "for-each-ref", "--format=%(refname) %(objectname)", heads, checkpoints+"/")
	if err != nil {
		return nil, nil, fmt.Errorf("reading where the agents are: %w", err)
	}
	branches, commits = map[string]string{}, map[string]string{}
	for line := range strings.Lines(out) {
		ref, oid, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, ok := strings.CutPrefix(ref, heads); ok {
			branches[name] = oid
		} else if name, ok := strings.CutPrefix(ref, checkpoints+"/"); ok {
			commits[name] = oid
		}
	}
	return branches, commits, nil
}

// Descends tells whether a commit has another in its history.
func (m *Manager) Descends(ctx context.Context, commit, from string) (bool, error) {
	_, err := m.run(ctx, "merge-base", "--is-ancestor", from, commit)
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// Landings returns the tasks, and the agents that did them, whose commits are in to
// and not in from: what landed between the two.
func (m *Manager) Landings(ctx context.Context, from, to string) (map[string]string, error) {
	out, err := m.run(ctx, "log", "--format=%(trailers:key=Muntin-Task,valueonly,separator=%x2c) %(trailers:key=Muntin-Agent,valueonly,separator=%x2c)", from+".."+to)
	if err != nil {
		return nil, fmt.Errorf("reading what landed: %w", err)
	}
	tasks := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 {
			tasks[f[0]] = f[1]
		}
	}
	return tasks, nil
}

// MergeBase is where the histories of two commits parted, "" if they have nothing in common.
func (m *Manager) MergeBase(ctx context.Context, a, b string) (string, error) {
	out, err := m.run(ctx, "merge-base", a, b)
	if err != nil && exitCode(err) != 1 {
		return "", fmt.Errorf("comparing %s with %s: %w", a, b, err)
	}
	return strings.TrimSpace(out), nil
}
