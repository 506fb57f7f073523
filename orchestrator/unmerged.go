package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"

	"muntin/orchestrator/worktree"
)

// An Unmerged is work of an agent that is not in the run's integration branch:
// of its branch, and of its latest checkpoint.
type Unmerged struct {
	Agent string   `json:"agent"`
	Files []string `json:"files"`
}

// FindUnmerged returns the work of a run that is not merged. What counts is
// whether it would change a file: work that landed in another form is merged.
func FindUnmerged(ctx context.Context, git *worktree.Manager, run Run) (found []Unmerged, err error) {
	standings, err := git.Standings(ctx, run.Name, checkpointRefs(run.Name))
	if err != nil {
		return nil, err
	}
	into, ok := standings[worktree.Merged]
	if !ok {
		return nil, nil
	}
	q, err := git.Quarantine()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	for name, s := range standings {
		if name == worktree.Merged {
			continue
		}
		adds, err := q.Adds(ctx, s, into.Tip)
		if err != nil {
			return nil, err
		}
		if !adds {
			continue
		}
		files, err := git.Touched(ctx, s, into.Tip)
		if err != nil {
			return nil, err
		}
		found = append(found, Unmerged{Agent: name, Files: files})
	}
	slices.SortFunc(found, func(a, b Unmerged) int { return strings.Compare(a.Agent, b.Agent) })
	return found, nil
}

// A Span is what an agent, or a whole run, changed: two commits or trees.
type Span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// ChangedLines counts the lines of an agent's work that is not merged.
func ChangedLines(ctx context.Context, git *worktree.Manager, run Run, agent string) (added, deleted int, err error) {
	span, err := AgentSpan(ctx, git, run, agent)
	if err != nil {
		return 0, 0, err
	}
	files, err := git.DiffStat(ctx, span.From, span.To)
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	return added, deleted, err
}

// AgentSpan is from where an agent's branch parted from the integration branch
// to the agent's latest checkpoint.
func AgentSpan(ctx context.Context, git *worktree.Manager, run Run, agent string) (Span, error) {
	standings, err := git.Standings(ctx, run.Name, checkpointRefs(run.Name))
	if err != nil {
		return Span{}, err
	}
	s, ok := standings[agent]
	if !ok {
		return Span{}, errNoBranch
	}
	span := Span{To: s.Tree}
	if s.Tree == "" {
		span.To = s.Tip
	}
	span.From, err = git.Parted(ctx, s.Tip, run.Branch)
	return span, err
}

var errNoBranch = errors.New("it has no branch of its own, so there is nothing to compare")
