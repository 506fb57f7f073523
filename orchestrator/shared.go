package orchestrator

import (
	"io/fs"
	"slices"
	"strings"

	"muntin/orchestrator/worktree"
)

// Several agents may share one worktree. Their turns would mix in it, so a task
// is given to one of them only while no other has one, unless both tasks claim
// paths that do not meet. Either way the task's commit holds what changed from
// the beginning of its first turn on, and of that only what it claims.

// Files are the paths, files or folders, that a task claims: those in the lines
// of its details that begin with "files:".
func (t Task) Files() []string {
	var paths []string
	for line := range strings.Lines(t.Body) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "files:")
		if !ok {
			continue
		}
		for path := range strings.FieldsSeq(strings.ReplaceAll(rest, ",", " ")) {
			path = strings.TrimSuffix(strings.TrimPrefix(path, "./"), "/")
			if fs.ValidPath(path) && path != "." {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// pathsTaken tells whether a task must wait for another that is at work: in the
// shared worktree if their claims meet or one has none, and where the recipe
// reserves paths if their claims meet.
func (r *step) pathsTaken(task Task, a Agent) bool {
	reserve := r.state.Settings.Flow.Reserve
	if !a.Shared && !reserve {
		return false
	}
	mine := task.Files()
	for _, w := range r.state.Works {
		if w.Task == task.ID || w.Reads {
			continue
		}
		other, _ := r.state.Task(w.Task)
		theirs := other.Files()
		both := a.Shared && r.state.Agents[w.Agent].Shared
		if both && (len(mine) == 0 || len(theirs) == 0) || (both || reserve) && len(worktree.Meet(mine, theirs)) > 0 {
			return true
		}
	}
	return false
}

// began notes what the shared worktree held when a task's first turn began.
func (r *step) began(a Agent) {
	w, ok := r.state.Works[a.Name]
	if !ok || !a.Shared || w.Start != "" || a.Checkpoint == nil || w.Stage != StagePrompting && w.Stage != StageWorking {
		return
	}
	w.Start = a.Checkpoint.Tree
	r.state.Works[w.Agent] = w
}

// inClaims tells whether a path is one of the claims, or lies in one.
func inClaims(claims []string, path string) bool {
	return len(claims) == 0 || slices.ContainsFunc(claims, func(c string) bool { return path == c || strings.HasPrefix(path, c+"/") })
}
