package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muntin/agent/pty"
	"muntin/orchestrator/worktree"
)

// maxClash bounds the text of a conflict's sides that goes to an agent and into
// the journal, in bytes.
const maxClash = 12 << 10

// prepare brings an idle agent's worktree to what has been merged so far, or with
// Fresh to just that or another commit, and tells what is to be read. When what is
// merged conflicts with what the worktree holds that is no error: the agent meets
// it when its own work is merged.
func (c *Crew) prepare(ctx context.Context, e Effect) (string, error) {
	m := c.Members[e.Agent]
	if m.Worktree != nil && e.Fresh {
		if _, err := c.Git.Place(ctx, *m.Worktree, cmp.Or(e.Commit, worktree.BranchRef(c.Branch))); err != nil {
			return "", err
		}
	}
	if m.Worktree != nil && !e.Fresh {
		if err := c.settle(ctx, m); err != nil {
			return "", err
		}
		if _, err := c.Git.Update(ctx, *m.Worktree, c.Branch); err != nil {
			return "", err
		}
	}
	return c.changes(ctx, e.Sides)
}

// maxRead bounds the changes that a reader's prompt shows, in bytes.
const maxRead = 48 << 10

// changes shows what each side changed since it parted from what is merged.
func (c *Crew) changes(ctx context.Context, sides []Candidate) (string, error) {
	var b strings.Builder
	for _, side := range sides {
		base, err := c.Git.Parted(ctx, worktree.BranchRef(c.Branch), side.Commit)
		if err != nil {
			return "", err
		}
		patch, err := c.Git.Patch(ctx, base, side.Commit)
		if err != nil {
			return "", err
		}
		if most := maxRead / len(sides); len(patch) > most {
			patch = strings.ToValidUTF8(patch[:most], "") + "\n[…]\n"
		}
		fmt.Fprintf(&b, "The changes of %s, commit %s (all of them: `git diff %s %s`):\n\n%s\n\n", side.Agent, side.Commit, base, side.Commit, indent(strings.TrimRight(patch, "\n")))
	}
	return b.String(), nil
}

// settle lets go of an agent's commits that landed in another form.
func (c *Crew) settle(ctx context.Context, m Member) error {
	if c.Style == "" || c.Style == worktree.StyleMerge {
		return nil
	}
	_, err := c.Git.Settle(ctx, *m.Worktree, c.Branch)
	return err
}

// merge commits the tree that was checked on the agent's branch and merges
// that into the run's.
func (c *Crew) merge(ctx context.Context, e Effect) (Result, error) {
	m := c.Members[e.Agent]
	if m.Worktree == nil {
		return Result{}, nil
	}
	c.merging.Lock()
	defer c.merging.Unlock()
	before, err := c.Git.Tip(ctx, c.Branch)
	if err != nil {
		return Result{}, err
	}
	tree, err := c.ownTree(ctx, *m.Worktree, e)
	if err != nil {
		return Result{}, err
	}
	message := c.message(e)
	req := worktree.CommitRequest{Tree: tree, Message: message}
	if e.Base == "" {
		req.On = e.Basis
	}
	from, err := c.Git.Commit(ctx, *m.Worktree, req)
	if err != nil {
		return Result{}, err
	}
	if c.Style == "" || c.Style == worktree.StyleMerge {
		message = "Merge " + message
	}
	merged, err := c.Git.Land(ctx, worktree.Landing{Into: c.Branch, From: from, Message: message, Style: c.Style})
	if err != nil {
		return Result{}, err
	}
	res := Result{Commit: merged.Commit, Clashes: boundClashes(merged.Conflicts)}
	for _, conflict := range merged.Conflicts {
		res.Conflicts = append(res.Conflicts, conflict.Path)
	}
	if len(res.Conflicts) > 0 {
		return res, nil
	}
	if c.Points != nil {
		if _, err := c.Points.Take(ctx, Point{Cause: PointMerge, Task: e.Task, Key: e.ID}); err != nil {
			res.Output = err.Error() // it has landed all the same
		}
	}
	if merged.UpToDate {
		return res, nil
	}
	if res.Also, err = c.alsoChanged(ctx, e.Agent, before, merged.Commit); err != nil {
		res.Output = "cannot tell who else changed the same files: " + err.Error() // it has landed all the same
	}
	return res, nil
}

func (c *Crew) message(e Effect) string {
	return fmt.Sprintf("%s\n\nMuntin-Run: %s\nMuntin-Agent: %s\nMuntin-Task: %s\n", e.Text, c.Run, e.Agent, e.Task)
}

// commit puts the checked tree on the agent's branch, and nowhere else.
func (c *Crew) commit(ctx context.Context, e Effect) (string, error) {
	m := c.Members[e.Agent]
	if m.Worktree == nil {
		return "", nil
	}
	return c.Git.Commit(ctx, *m.Worktree, worktree.CommitRequest{Tree: e.Tree, Message: c.message(e), On: e.Basis})
}

// ownTree is the tree to commit for a task: the checked one, or of that only
// what is the task's own.
func (c *Crew) ownTree(ctx context.Context, wt worktree.Worktree, e Effect) (string, error) {
	if e.Base == "" {
		return e.Tree, nil
	}
	return c.Git.Graft(ctx, worktree.Graft{
		Onto: worktree.BranchRef(wt.Branch), From: e.Base, To: e.Tree,
		Take: func(path string) bool { return inClaims(e.Paths, path) },
	})
}

// alsoChanged finds the agents whose work, merged or not, is in files that a
// landing changed.
func (c *Crew) alsoChanged(ctx context.Context, landed, before, after string) ([]Also, error) {
	files, err := c.Git.Changed(ctx, before, after)
	if err != nil {
		return nil, err
	}
	standings, err := c.Git.Standings(ctx, c.Run, checkpointRefs(c.Run))
	if err != nil {
		return nil, err
	}
	var also []Also
	for name, s := range standings {
		if name == landed || name == worktree.Merged || c.Members[name].Worktree == nil {
			continue
		}
		touched, err := c.radar.touched(ctx, c.Git, s, before)
		if err != nil {
			return nil, err
		}
		if both := worktree.Meet(touched, files); len(both) > 0 {
			also = append(also, Also{Agent: name, Files: both[:min(len(both), maxOverlapFiles)]})
		}
	}
	slices.SortFunc(also, func(a, b Also) int { return strings.Compare(a.Agent, b.Agent) })
	return also, nil
}

// An Also is an agent that changed files which somebody else's landing changed
// too, and those files.
type Also struct {
	Agent string   `json:"agent"`
	Files []string `json:"files"`
}

// boundClashes cuts what is said of conflicts down to maxClash.
func boundClashes(list []worktree.Conflict) []worktree.Conflict {
	left := maxClash
	list = slices.Clone(list)
	for i := range list {
		hunks := slices.Clone(list[i].Hunks)
		for k := range hunks {
			if left -= len(hunks[k].OursText) + len(hunks[k].TheirsText); left < 0 {
				hunks[k].OursText, hunks[k].TheirsText = "", ""
			}
		}
		list[i].Hunks = hunks
	}
	return list
}

// landed tells other agents at work of what has just landed, when their task
// depends on it or they changed the same files.
func (r *step) landed(w Work, res Result) {
	files := map[string][]string{}
	for _, a := range res.Also {
		files[a.Agent] = a.Files
	}
	for _, name := range r.state.Order {
		other, ok := r.state.Works[name]
		if !ok || name == w.Agent || other.Stage != StageWorking || other.Reads || !r.state.Agents[name].Isolated {
			continue
		}
		task, _ := r.state.Task(other.Task)
		depends := slices.Contains(task.After, w.Task)
		if !depends && len(files[name]) == 0 {
			continue
		}
		r.emit(Effect{
			Kind: EffectSend, Agent: name, Task: other.Task, Msg: pty.KindSteer,
			Text: landedText(w, r.state.Settings.Branch, files[name]),
		})
		r.tell(Fact{Agent: name, Text: fmt.Sprintf("told %s to bring in ^%s, which has landed", name, w.Task)})
		r.informed(name, files[name])
	}
}

func landedText(w Work, branch string, files []string) string {
	why := "Your task depends on it."
	if len(files) > 0 {
		why = "You changed the same files:\n\n" + indent(strings.Join(files, "\n"))
	}
	return fmt.Sprintf("Task ^%s of %s has just been merged to %s. %s\n\n"+
		"Bring it in before you finish: commit what you have (`git add -A && git commit -m wip`), run `git merge %s`, "+
		"settle conflicts so that both changes keep their meaning, and go on with your task.\n", w.Task, w.Agent, branch, why, branch)
}

// conflictText sends work back that cannot be merged, with both sides.
func conflictText(task, branch string, res Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Your work on ^%s cannot be merged to %s: others changed the same lines in\n\n", task, branch)
	for _, path := range res.Conflicts {
		b.WriteString(indent(path) + "\n")
	}
	b.WriteString(clashText(branch, res.Clashes))
	fmt.Fprintf(&b, "\nRun `git merge %s` here, settle the conflicts so that both changes keep their meaning, commit the merge, and end your turn.\n", branch)
	return b.String()
}

// clashText shows the places where two sides meet.
func clashText(branch string, list []worktree.Conflict) string {
	var b strings.Builder
	for _, c := range list {
		if len(c.Hunks) == 0 && c.Detail != "" {
			fmt.Fprintf(&b, "\n%s: %s\n", c.Path, c.Detail)
		}
		for _, h := range c.Hunks {
			fmt.Fprintf(&b, "\n%s, %s on %s:\n%s%s, %s of yours:\n%s", c.Path, h.Ours, branch, quoted(h.OursText), c.Path, h.Theirs, quoted(h.TheirsText))
		}
	}
	return b.String()
}

// quoted sets lines of a file off from the text around them.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return indent(strings.TrimSuffix(text, "\n")) + "\n"
}

// errOutside says why the radar sees nothing.
var errOutside = errors.New("the checkpoints of this repository are kept outside of it")
