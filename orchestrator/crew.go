package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"muntin/internal/proc"
	"muntin/internal/state"
	"muntin/orchestrator/board"
	"muntin/orchestrator/worktree"
)

// A Member is one agent of a Crew: where its state and its files are.
type Member struct {
	Dir      state.AgentDir
	WorkDir  string
	Worktree *worktree.Worktree // nil unless it has one of its own
	Env      []string           // of its checks, beside that of all
}

// maxKept is how much of a check's output is kept in the journal, in bytes.
const maxKept = 32 << 10

// CrewOptions are what a Crew works with.
type CrewOptions struct {
	Board    *BoardReader
	Plan     PlanFile
	Git      *worktree.Manager
	Members  map[string]Member
	Prompts  func(agent string) (string, error) // the recipe's first prompts
	Starter  Starter                            // may be nil: agents that end stay so
	Notifier Notifier                           // may be nil: nobody is told
	Points   *PointTaker                        // takes a fleet point of each landing; may be nil
	Run      string
	Branch   string // the integration branch
	Style    worktree.Style
	Env      []string
	Timeout  time.Duration // of a check
	Checks   int           // how many may run at once
	Now      func() time.Time
}

// A Crew carries out effects in the world: the board's file, the agents'
// supervisors, git, and the checks' processes.
type Crew struct {
	CrewOptions
	merging  sync.Mutex    // one merge at a time
	checking chan struct{} // bounds checks at work
	radar    radar
}

// NewCrew makes a crew.
func NewCrew(o CrewOptions) *Crew {
	return &Crew{CrewOptions: o, checking: make(chan struct{}, max(o.Checks, 1))}
}

// mostTries is how often an effect is carried out whose child process was
// killed. That says nothing about the work; but what is killed each time, for its
// memory for instance, is not for us to settle.
const mostTries = 3

// Do carries out one effect; see Doer.
func (c *Crew) Do(ctx context.Context, e Effect) Input {
	var in Input
	var res Result
	var err error
	for range mostTries {
		in, res, err = c.do(ctx, e)
		if !killed(err) || ctx.Err() != nil {
			break
		}
	}
	res.OK = err == nil && len(res.Conflicts) == 0
	if err != nil {
		res.Error = err.Error()
	}
	in.Result = &res
	return in
}

// killed tells whether err is the end of a child process by SIGKILL from outside.
func killed(err error) bool {
	var exit *proc.ExitError
	return errors.As(err, &exit) && exit.Result.Signal == syscall.SIGKILL && !exit.Result.TimedOut
}

func (c *Crew) do(ctx context.Context, e Effect) (in Input, res Result, err error) {
	switch e.Kind {
	case EffectClaim:
		in, err = c.Board.claim(ctx, e.Task, e.Agent)
	case EffectMark:
		in, err = c.Board.mark(ctx, e)
	case EffectPrepare:
		res.Output, err = c.prepare(ctx, e)
	case EffectCommit:
		res.Commit, err = c.commit(ctx, e)
	case EffectFirst:
		res, err = c.first(ctx, e)
	case EffectSend:
		res, err = c.send(ctx, e)
	case EffectRecall:
		err = c.recall(ctx, e)
	case EffectRestart:
		err = c.restart(ctx, e)
	case EffectCheck:
		res.Output, err = c.check(ctx, c.Members[e.Agent].WorkDir, e)
	case EffectMerge:
		res, err = c.merge(ctx, e)
	case EffectRunCheck:
		res, err = c.runCheck(ctx, e)
	case EffectNotice:
		res = c.notify(ctx, e)
	case EffectOverlap:
		res.Overlaps, err = c.overlap(ctx)
	case EffectApprove:
		err = c.Plan.SetStatus(ctx, board.PlanApproved)
	default:
		err = fmt.Errorf("unknown effect %q", e.Kind)
	}
	return in, res, err
}

// check runs a command that a person wrote, on the board or in the recipe, as
// the shell line that it is. Nothing else is put into it.
func (c *Crew) check(ctx context.Context, dir string, e Effect) (string, error) {
	select {
	case c.checking <- struct{}{}:
		defer func() { <-c.checking }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	env := append(append(append([]string{}, c.Env...), c.Members[e.Agent].Env...), "MUNTIN_RUN="+c.Run, "MUNTIN_TASK="+e.Task, "MUNTIN_AGENT="+e.Agent)
	// One byte more tells that something is cut.
	res, err := proc.Shell(ctx, e.Text, proc.Spec{Dir: dir, Env: env, Keep: maxKept + 1, Timeout: c.Timeout})
	var exit *proc.ExitError
	if errors.As(err, &exit) {
		err = &checkError{exit}
	}
	return tailOf(string(res.Stdout), maxKept), err
}

// A checkError is a check that says no, in the words that people and agents get.
type checkError struct{ exit *proc.ExitError }

func (e *checkError) Error() string { return e.exit.Result.Ending() }
func (e *checkError) Unwrap() error { return e.exit }

// runCheck runs the run's check on a fresh copy of the merged result.
func (c *Crew) runCheck(ctx context.Context, e Effect) (res Result, err error) {
	wt, err := c.Git.Checkout(ctx, c.Branch)
	if err != nil {
		return Result{}, err
	}
	defer func() {
		_, removeErr := c.Git.Remove(context.WithoutCancel(ctx), worktree.RemoveRequest{Path: wt.Path})
		err = errors.Join(err, removeErr)
	}()
	res.Commit = wt.Head
	res.Output, err = c.check(ctx, wt.Path, e)
	return res, err
}
