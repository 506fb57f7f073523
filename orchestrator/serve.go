package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"muntin/agent/pty"
	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/orchestrator/board"
	"muntin/orchestrator/watch"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// ErrServed says that a run has an orchestrator already.
var ErrServed = errors.New("the run has an orchestrator already")

// errUnfinished keeps an orchestrator from working on what is half taken back.
var errUnfinished = errors.New("a rollback of the run was cut off: `muntin resume` finishes it")

// lockTimeout is how long an orchestrator waits for the run's lock: longer than
// those hold it who only ask whether the run is alive.
const lockTimeout = time.Second

// Panes tells of the ends of the programs in a run's panes.
type Panes interface {
	// Watch calls ended with an agent's name when its pane's program has
	// ended or its pane is gone, from one goroutine, at once for those that
	// ended before, maybe twice. It blocks until ctx ends or it can tell no
	// more, and returns the error of ended.
	Watch(ctx context.Context, session string, ended func(agent string) error) error
}

// ServeOptions say which run to orchestrate.
type ServeOptions struct {
	Run      Run
	Repo     state.Repo
	Dir      state.RepoDir
	Environ  []string                     // of checks
	Panes    Panes                        // may be nil
	Starter  Starter                      // may be nil: agents that end stay so
	Notifier Notifier                     // of the recipe\'s hooks and notifications; may be nil
	OnState  func(State, []board.Problem) // called after every step, from one goroutine; may be nil
	Now      func() time.Time
}

// Serve is a run's orchestrator: it holds the run's lock and works until ctx
// ends. It goes on where an earlier one stopped. The error matches ErrServed
// when another one is at work.
func Serve(ctx context.Context, o ServeOptions) error {
	wait, cancel := context.WithTimeout(ctx, lockTimeout)
	lock, err := durable.Lock(wait, o.Run.Dir.Lock())
	cancel()
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, durable.ErrLocked):
		return fmt.Errorf("%w: process %d", ErrServed, durable.Holder(o.Run.Dir.Lock()))
	case err != nil:
		return err
	}
	if unfinished, failed := Unfinished(o.Run.Dir); failed != nil || unfinished != nil {
		return errors.Join(failed, errUnfinished, lock.Unlock())
	}
	err = serve(ctx, o)
	return errors.Join(err, lock.Unlock())
}

func serve(ctx context.Context, o ServeOptions) error {
	recipe, err := o.Run.Recipe()
	if err != nil {
		return err
	}
	git, err := OpenGit(ctx, o.Repo, o.Dir, o.Now)
	if err != nil {
		return err
	}
	if _, err := git.Resume(ctx); err != nil {
		return err
	}
	journal, st, pending, err := o.Run.recall(o.Now)
	if err != nil {
		return err
	}
	file := board.File{
		Path: o.Run.Todo, LockPath: o.Dir.BoardLock(o.Run.Todo), Versions: o.Dir.BoardVersions(o.Run.Todo),
		Log: o.Dir.BoardLog(o.Run.Todo), By: board.Agent,
	}
	s := &server{
		ServeOptions: o, board: NewBoardReader(file, st.Rev), inputs: make(chan Input),
		plan: NewPlanFile(o.Dir, o.Run.Plan, filepath.Join(o.Run.Dir.Path, "plan.md")),
	}
	team, err := members(o.Run, recipe)
	if err != nil {
		return errors.Join(err, journal.Close())
	}
	for name := range st.Left {
		team[name] = Member{Dir: o.Run.Dir.Agent(name)} // what was said to it can be taken back
	}
	crew := NewCrew(CrewOptions{
		Starter: o.Starter, Notifier: o.Notifier, Board: s.board, Plan: s.plan, Git: git, Members: team, Run: o.Run.Name, Branch: o.Run.Branch,
		Style:   worktree.Style(recipe.Merge.Style),
		Points:  &PointTaker{Run: o.Run, Git: git, Recipe: recipe, Now: o.Now},
		Prompts: firstPrompts(o.Run, recipe),
		Env:     o.Environ, Timeout: recipe.CheckTimeout, Checks: runtime.NumCPU(), Now: o.Now,
	})
	loop := &Loop{Journal: journal, State: st, Pending: pending, Doer: crew, Inputs: s.inputs, Now: o.Now, OnState: s.show}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.watchBoard(ctx) })
	group.Go(func() error { return s.watchPlan(ctx) })
	group.Go(func() error { return s.followRequests(ctx, st) })
	lookouts := map[string]*lookout{}
	for _, name := range st.Order {
		l := newLookout(o.Run.Dir.Agent(name))
		lookouts[name] = l
		group.Go(func() error {
			return l.watch(ctx, func() error { return s.send(ctx, Input{Kind: InputLost, Agent: name}) })
		})
	}
	group.Go(func() error { return s.followAgents(ctx, st, lookouts) })
	group.Go(func() error { return s.watchPanes(ctx, lookouts) })
	group.Go(func() error { return loop.Run(ctx) })
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, journal.Close())
}

// firstPrompts reads the first prompts of a run's agents.
func firstPrompts(run Run, recipe *recipes.Recipe) func(string) (string, error) {
	return func(name string) (string, error) {
		i := slices.IndexFunc(recipe.Agents, func(a recipes.Agent) bool { return a.Name == name })
		if i < 0 {
			return "", nil
		}
		return recipe.Agents[i].FirstPrompt(run.Root)
	}
}

// recall opens a run's journal, and takes what was applied to the run since.
func (r Run) recall(now func() time.Time) (*Journal, State, []Effect, error) {
	first, err := r.first()
	if err != nil {
		return nil, first, nil, err
	}
	journal, st, pending, err := OpenJournal(r.Dir.Journal(), first, now)
	if err != nil {
		return nil, st, nil, err
	}
	if st, pending, err = journal.adopt(r, st, pending); err != nil {
		return nil, st, nil, errors.Join(err, journal.Close())
	}
	return journal, st, pending, nil
}

// members tells where each agent works.
func members(run Run, recipe *recipes.Recipe) (map[string]Member, error) {
	list := map[string]Member{}
	for _, a := range recipe.Agents {
		m := Member{Dir: run.Dir.Agent(a.Name), WorkDir: WorkDir(run.Dir, run.Root, a)}
		var err error
		if m.Env, err = PortsEnv(run.Dir, a.Name); err != nil {
			return nil, err
		}
		if a.Isolation != recipes.IsolationNone {
			m.Worktree = &worktree.Worktree{Path: m.WorkDir, Branch: worktree.AgentBranch(run.Name, filepath.Base(m.WorkDir))}
		}
		list[a.Name] = m
	}
	return list, nil
}

// A server feeds the loop of a run.
type server struct {
	ServeOptions
	board    *BoardReader
	plan     PlanFile
	inputs   chan Input
	problems problems
}

func (s *server) send(ctx context.Context, in Input) error {
	select {
	case s.inputs <- in:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) show(st State) {
	if s.OnState != nil {
		s.OnState(st, s.problems.get())
	}
}

// watchBoard reads the board at once and whenever it changes.
func (s *server) watchBoard(ctx context.Context) error {
	return watchFile(ctx, s.Run.Todo, func() error {
		in, problems, err := s.board.Read(ctx)
		if err != nil {
			// A board that cannot be read now is left alone; the next save, or
			// the watcher's slow re-read, brings us back.
			problems = []board.Problem{{Line: 1, Col: 1, Text: err.Error()}}
		}
		s.problems.set(problems)
		if err != nil {
			return nil
		}
		return s.send(ctx, in)
	})
}

// watchPlan reads the plan at once and whenever it changes.
func (s *server) watchPlan(ctx context.Context) error {
	told, last := false, Plan{}
	return watchFile(ctx, s.Run.Plan, func() error {
		p, err := s.plan.Read()
		if err != nil {
			s.problems.setPlan(err)
			return nil // as with the board
		}
		s.problems.setPlan(nil)
		if told && p == last && p.Diff == "" {
			return nil
		}
		told, last = true, p
		return s.send(ctx, Input{Kind: InputPlan, Plan: &p})
	})
}

// watchFile calls read at once and whenever the file may have changed.
func watchFile(ctx context.Context, path string, read func() error) error {
	w, err := watch.New(ctx, watch.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Add(path); err != nil {
		return err
	}
	for {
		if err := read(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, ok := <-w.Events():
			if !ok {
				return ctx.Err()
			}
		}
	}
}

// followAgents tells of the agents' event logs from where the journal stopped.
func (s *server) followAgents(ctx context.Context, st State, lookouts map[string]*lookout) error {
	agents := map[string]string{}
	tail, err := watch.Follow(ctx, watch.Options{}, func(line watch.Line) error {
		name := agents[line.Path]
		if line.Err != nil {
			return fmt.Errorf("following agent %s: %w", name, line.Err)
		}
		var e pty.Event
		if err := json.Unmarshal(line.Data, &e); err != nil {
			return nil // a foreign line costs that line only
		}
		if e.Kind == pty.EventReady {
			lookouts[name].up()
		}
		if e.Seq <= st.Agents[name].Seq {
			return nil
		}
		return s.send(ctx, Input{Kind: InputAgent, Time: e.Time, Agent: name, Event: &e})
	})
	if err != nil {
		return err
	}
	defer tail.Close()
	for _, name := range st.Order {
		path := s.Run.Dir.Agent(name).Events()
		agents[path] = name
	}
	for path := range agents {
		if err := tail.Add(path, 0); err != nil {
			return err
		}
	}
	return tail.Wait()
}

// watchPanes tells of supervisors that ended before they could be looked out
// for, or were never there: their panes have ended.
func (s *server) watchPanes(ctx context.Context, lookouts map[string]*lookout) error {
	if s.Panes == nil {
		return nil
	}
	var failed error
	_ = s.Panes.Watch(ctx, s.Run.Session, func(name string) error {
		l, ok := lookouts[name]
		if !ok {
			return nil
		}
		gone, err := l.gone(ctx)
		if err == nil && gone {
			err = s.send(ctx, Input{Kind: InputLost, Agent: name})
		}
		failed = err
		return err
	}) // without it the lookouts still tell of all that were ready once
	return failed
}

// StopServing ends the orchestrator of a run, if one is at work, and waits
// until it is gone or ctx ends.
func StopServing(ctx context.Context, run Run) {
	path := run.Dir.Lock()
	if !durable.Locked(path) {
		return
	}
	if pid := durable.Holder(path); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if lock, err := durable.Lock(ctx, path); err == nil {
		_ = lock.Unlock()
	}
}
