package worktree

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"muntin/internal/state"
)

// A git that was killed leaves its lock files behind, and every later git then
// refuses. Nobody but a person may take away a lock in the person's own
// worktree (an editor may be open under it). In the worktrees of agents, and for
// branches and refs of muntin's own, we look whether it can still be in use.

// The times a lock is watched before it counts as left behind: it must not
// change for as long. Git holds those of refs for moments.
const (
	quietLock = 300 * time.Millisecond // and no git works there
	staleLock = 5 * time.Second        // where that cannot be seen
)

// lockComplaint finds the lock in git's words (lockfile.c, unable_to_lock_message).
var lockComplaint = regexp.MustCompile(`Unable to create '([^']+\.lock)': File exists`)

// heldLock is the lock file that git complained about, "" if it did not.
func heldLock(err error) string {
	if found := lockComplaint.FindStringSubmatch(stderr(err)); found != nil {
		return found[1]
	}
	return ""
}

// freed waits until a lock is gone, or takes it away when it was left behind, and
// tells whether git can be called again. It looks now and then, for there is no
// event for it.
func (g git) freed(ctx context.Context, dir, lock string) bool {
	if !filepath.IsAbs(lock) {
		lock = filepath.Join(dir, lock)
	}
	wait, ours := g.mayTake(dir, lock)
	first, err := os.Lstat(lock)
	if err != nil {
		return os.IsNotExist(err)
	}
	since := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		info, err := os.Lstat(lock)
		switch {
		case err != nil:
			return os.IsNotExist(err)
		case !os.SameFile(info, first) || !info.ModTime().Equal(first.ModTime()) || info.Size() != first.Size():
			return true // it is taken and given back
		case time.Since(since) < wait:
		case ours:
			return os.Remove(lock) == nil
		default:
			return false
		}
	}
}

// mayTake tells how long a lock must rest before something is done, and whether
// it may be taken away then.
func (g git) mayTake(dir, lock string) (wait time.Duration, ours bool) {
	repo, err := state.FindRepo(dir)
	if err != nil {
		return quietLock, false
	}
	rel, err := filepath.Rel(repo.CommonDir, lock)
	if err != nil {
		return quietLock, false
	}
	rel = filepath.ToSlash(rel)
	for _, prefix := range []string{headsPrefix + branchPrefix, "refs/muntin/", "packed-refs.lock"} {
		if strings.HasPrefix(rel, prefix) {
			return staleLock, true
		}
	}
	if strings.Count(rel, "/") != 2 || !strings.HasPrefix(rel, "worktrees/") {
		return quietLock, false
	}
	place := workFolder(filepath.Dir(lock))
	if place == "" || g.root == "" || !inside(g.root, place) {
		return quietLock, false
	}
	if working, known := gitWorks(place); known && !working {
		return quietLock, true
	}
	return staleLock, true
}

// workFolder is the folder of the linked worktree whose git folder is dir
// (gitrepository-layout(5), worktrees/<id>/gitdir).
func workFolder(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "gitdir"))
	if err != nil {
		return ""
	}
	return filepath.Dir(strings.TrimSpace(string(b)))
}
