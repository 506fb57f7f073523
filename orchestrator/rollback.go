package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muntin/checkpoint"
	"muntin/orchestrator/board"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// Conversations moves what agents remember.
type Conversations interface {
	// Move takes the conversation of an agent that is not running to an entry, "" to its beginning.
	// It reports false where there is no conversation that can be moved. Moving it to where it
	// is does nothing.
	Move(agent, entry string) (moved bool, err error)
}

// A RollbackRequest says where a run is to go back to.
type RollbackRequest struct {
	Point        int      `json:"point"`
	Agents       []string `json:"agents"` // none: all
	Files        bool     `json:"files"`
	Conversation bool     `json:"conversation"`
}

// RollbackOptions are what a rollback of a run works with.
type RollbackOptions struct {
	PointTaker
	Todo  board.File // the board
	Host  Host       // may be nil: then nothing is started again
	Talks Conversations
	Self  string
	Env   []string
	Wait  time.Duration // how long an agent may take to end its turn; 0: it is ended in it
	Busy  bool          // agents in a turn are no reason to refuse
	Say   func(text string)
}

// A RollbackPlan is what a rollback changes.
type RollbackPlan struct {
	Request RollbackRequest `json:"request"`
	Target  Point           `json:"target"`
	Agents  []AgentBack     `json:"agents"`
	Branch  BranchBack      `json:"branch"`
	Tasks   []TaskBack      `json:"tasks"`
	Built   []string        `json:"built"`   // agents that stay as they are, and whose branch has what is taken out
	Depends []string        `json:"depends"` // tasks that come after one that is opened again
	Notes   []string        `json:"notes"`
}

// An AgentBack is what becomes of one agent.
type AgentBack struct {
	Name  string              `json:"name"`
	From  PointAgent          `json:"from"`
	To    PointAgent          `json:"to"`
	Stat  []worktree.FileStat `json:"stat"` // of its files
	Files bool                `json:"files"`
	Talk  bool                `json:"conversation"`
}

// A BranchBack is what becomes of the integration branch.
type BranchBack struct {
	From  string              `json:"from"`
	To    string              `json:"to"`
	Moves bool                `json:"moves"`
	Stat  []worktree.FileStat `json:"stat"`
	Stays []string            `json:"stays"` // tasks that stay merged, since others than those that go back landed too
}

// A TaskBack is what becomes of a task on the board.
type TaskBack struct {
	ID   string      `json:"id"`
	From board.State `json:"from"`
	To   board.State `json:"to"`
}

// ErrBusy says that an agent is in a turn.
var ErrBusy = errors.New("an agent is at work")

// PlanRollback tells what a rollback would change, and changes nothing. The error
// matches ErrNoPoint.
func (o RollbackOptions) PlanRollback(ctx context.Context, req RollbackRequest) (RollbackPlan, error) {
	p := RollbackPlan{Request: req, Agents: []AgentBack{}, Tasks: []TaskBack{}, Built: []string{}, Depends: []string{}, Notes: []string{}}
	var err error
	if p.Target, err = FindPoint(o.Run.Dir, req.Point); err != nil {
		return p, err
	}
	now := Point{}
	if err := o.look(ctx, &now, &worktree.Keep{Files: map[string]string{}}); err != nil {
		return p, fmt.Errorf("planning the rollback: %w", err)
	}
	all := true
	for _, a := range o.Recipe.Agents {
		if len(req.Agents) > 0 && !slices.Contains(req.Agents, a.Name) {
			all = false
			continue
		}
		if err := o.planAgent(ctx, &p, a, now); err != nil {
			return p, fmt.Errorf("planning the rollback of %s: %w", a.Name, err)
		}
	}
	if !req.Files {
		return p, nil // what was merged, and so the board, is files too
	}
	gone, err := o.planBranch(ctx, &p, now, all)
	if err != nil {
		return p, fmt.Errorf("planning the rollback of %s: %w", o.Run.Branch, err)
	}
	o.planTasks(&p, now, gone, all)
	return p, o.planBuilt(ctx, &p, now)
}

// going tells whether an agent goes back.
func (p RollbackPlan) going(name string) bool {
	return slices.ContainsFunc(p.Agents, func(a AgentBack) bool { return a.Name == name })
}

func (o RollbackOptions) planAgent(ctx context.Context, p *RollbackPlan, a recipes.Agent, now Point) error {
	back := AgentBack{Name: a.Name, Stat: []worktree.FileStat{}, Talk: p.Request.Conversation, Files: p.Request.Files}
	back.From, _ = now.Agent(a.Name)
	var had bool
	if back.To, had = p.Target.Agent(a.Name); !had || back.To.Checkpoint == 0 {
		p.Notes = append(p.Notes, a.Name+" had no checkpoint at that point: it stays as it is")
		return nil
	}
	switch {
	case !back.Files:
	case a.Isolation == recipes.IsolationNone:
		p.Notes = append(p.Notes, a.Name+" works in your own folder: its files stay, `muntin rollback "+a.Name+" '#"+fmt.Sprint(back.To.Checkpoint)+"'` takes them back")
		back.Files = false
	case a.Isolation == recipes.IsolationShared && o.sharers(p.Request.Agents) > 0:
		p.Notes = append(p.Notes, a.Name+" shares its folder with agents that do not go back: its files stay")
		back.Files = false
	case back.From.Tree != back.To.Tree && o.Git.Has(ctx, back.From.Commit) && o.Git.Has(ctx, back.To.Commit):
		var err error
		if back.Stat, err = o.Git.DiffStat(ctx, back.From.Tree, back.To.Tree); err != nil {
			return err
		}
	}
	p.Agents = append(p.Agents, back)
	return nil
}

// sharers counts the agents in the shared worktree that are not among names.
func (o RollbackOptions) sharers(names []string) int {
	n := 0
	for _, a := range o.Recipe.Agents {
		if a.Isolation == recipes.IsolationShared && len(names) > 0 && !slices.Contains(names, a.Name) {
			n++
		}
	}
	return n
}

// planBranch tells whether the integration branch goes back: with all agents, or
// when nothing landed since but of those that do. It returns the tasks whose work goes, or
// comes back, with the branch.
func (o RollbackOptions) planBranch(ctx context.Context, p *RollbackPlan, now Point, all bool) (map[string]string, error) {
	b := &p.Branch
	*b = BranchBack{From: now.Commit, To: p.Target.Commit, Stat: []worktree.FileStat{}, Stays: []string{}}
	if b.From == b.To || b.To == "" {
		return nil, nil
	}
	landed, err := o.Git.Landings(ctx, b.To, b.From)
	if err != nil {
		return nil, err
	}
	for task, agent := range landed {
		if !all && !p.going(agent) {
			b.Stays = append(b.Stays, task)
		}
	}
	if len(b.Stays) > 0 {
		b.Stays = nil
		for task, agent := range landed {
			if p.going(agent) {
				b.Stays = append(b.Stays, task)
			}
		}
		slices.Sort(b.Stays)
		p.Notes = append(p.Notes, "work of others has landed since: what is merged stays merged")
		return nil, nil
	}
	b.Moves = true
	b.Stat, err = o.Git.DiffStat(ctx, b.From, b.To)
	return landed, err
}

// planTasks gives each task the state that it had, as far as it is of those that go
// back. A task that was at work then is open: nobody is at it any more. A task that landed with the point
// itself is done.
func (o RollbackOptions) planTasks(p *RollbackPlan, now Point, landed map[string]string, all bool) {
	then := map[string]PointTask{}
	for _, t := range p.Target.Tasks {
		then[t.ID] = t
	}
	opened := map[string]bool{}
	for _, t := range now.Tasks {
		was, known := then[t.ID]
		_, gone := landed[t.ID]
		state := t.State
		switch {
		case p.Target.Cause == PointMerge && p.Target.Task == t.ID && p.Branch.Moves:
			state = board.Done
		case known && (p.Branch.Moves || p.going(t.Claim) && t.State == board.Claimed):
			state = was.State
		case gone || p.going(t.Claim) && t.State == board.Claimed:
			state = board.Open
		}
		if state == board.Claimed && (all || p.going(was.Claim) || p.going(t.Claim)) {
			state = board.Open
		}
		if slices.Contains(p.Branch.Stays, t.ID) || state == t.State {
			continue
		}
		p.Tasks = append(p.Tasks, TaskBack{ID: t.ID, From: t.State, To: state})
		opened[t.ID] = state == board.Open
	}
	brd, err := o.Todo.Read()
	if err != nil {
		return // told when it is written
	}
	for _, t := range brd.Tasks() {
		if !opened[t.ID] && slices.ContainsFunc(t.After, func(id string) bool { return opened[id] }) {
			p.Depends = append(p.Depends, t.ID)
		}
	}
}

// planBuilt finds the agents that stay and have in their branch what goes.
func (o RollbackOptions) planBuilt(ctx context.Context, p *RollbackPlan, now Point) error {
	if !p.Branch.Moves {
		return nil
	}
	for _, a := range now.Agents {
		if a.Branch == "" || p.going(a.Name) {
			continue
		}
		base, err := o.Git.MergeBase(ctx, a.Branch, now.Commit)
		if err != nil {
			return err
		}
		in, err := o.Git.Descends(ctx, p.Branch.To, base)
		if err != nil {
			return err
		}
		if !in {
			p.Built = append(p.Built, a.Name)
		}
	}
	return nil
}

// store opens an agent's checkpoints.
func (o RollbackOptions) store(ctx context.Context, a recipes.Agent) (*checkpoint.Store, error) {
	return checkpoint.Open(ctx, checkpoint.Options{
		Worktree: WorkDir(o.Run.Dir, o.Run.Root, a), Ref: CheckpointRef(o.Run.Name, a.Name),
		CacheDir: o.Run.Dir.Agent(a.Name).Path, Now: o.Now,
	})
}

func (o RollbackOptions) agent(name string) recipes.Agent {
	i := slices.IndexFunc(o.Recipe.Agents, func(a recipes.Agent) bool { return a.Name == name })
	return o.Recipe.Agents[i]
}

// worktreeOf is the worktree of an agent that has one.
func (o RollbackOptions) worktreeOf(a recipes.Agent) worktree.Worktree {
	dir := WorkDir(o.Run.Dir, o.Run.Root, a)
	return worktree.Worktree{Path: dir, Branch: worktree.AgentBranch(o.Run.Name, filepath.Base(dir))}
}

// goneText tells an agent that what it built on was taken out.
func goneText(p RollbackPlan, branch string) string {
	var tasks []string
	for _, t := range p.Tasks {
		if t.To == board.Open {
			tasks = append(tasks, "^"+t.ID)
		}
	}
	return fmt.Sprintf("The run went back to an earlier point. What was merged to %s since has been taken out of it: %s.\n\n"+
		"You have brought that in, and your work would bring it back. Take it out of your branch before you finish, keep what is yours, and go on with your task.\n",
		branch, strings.Join(tasks, ", "))
}
