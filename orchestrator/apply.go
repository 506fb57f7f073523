package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"muntin/agent/pty"
	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator/ports"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// A Closer is a Host that can take single panes away.
type Closer interface {
	// Close ends the named panes of a session. Those that are not there are no
	// error.
	Close(ctx context.Context, session string, names []string) error
}

// ApplyOptions say which run is to become what.
type ApplyOptions struct {
	Run     Run
	Repo    state.Repo
	Dir     state.RepoDir
	Recipe  *recipes.Recipe // with its parameters and models filled in
	Origin  Origin          // of Recipe
	Host    Host
	Self    string
	Environ []string
	Cols    int
	Rows    int
	Within  time.Duration                     // how long agents that are ended may go on with their turns
	OnStep  func(agent string, step DownStep) // called from several goroutines; may be nil
	Now     func() time.Time
}

// Applied tells what Apply did.
type Applied struct {
	Change
	Resumed Resumed  `json:"resumed"`
	Notes   []string `json:"notes,omitempty"`
}

// Apply makes a run what a recipe says: it adds agents, takes agents away, starts
// those again that changed, and has the orchestrator know it, and then brings
// back whatever else is missing. Agents are ended at the end of their turns; a
// worktree goes through the guarded removal; checkpoints, logs and conversations
// stay. Where nothing differs and nothing is missing it does nothing.
//
// It writes the run's recipe down when all is made that it needs, so that after a
// crash at any moment another Apply goes on from there. It returns when the
// programs were started; see WaitResumed. When it fails the run goes on as far
// as it can.
func Apply(ctx context.Context, o ApplyOptions) (out Applied, err error) {
	lock, err := durable.Lock(ctx, filepath.Join(o.Run.Dir.Path, "apply.lock"))
	if err != nil {
		return out, fmt.Errorf("applying to run %s: %w", o.Run.Name, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if o.OnStep == nil {
		o.OnStep = func(string, DownStep) {}
	}
	change, err := Compare(o.Run, o.Recipe)
	out.Change = change
	if err != nil {
		return out, err
	}
	a := &application{ApplyOptions: o, Change: change}
	if err := a.check(ctx); err != nil {
		return out, err
	}
	err = a.converge(ctx)
	out.Notes = a.notes
	if err != nil {
		ctx = context.WithoutCancel(ctx)
	}
	resumed, resumeErr := Resume(ctx, ResumeOptions{Run: o.Run, Host: o.Host, Self: o.Self, Environ: o.Environ, Cols: o.Cols, Rows: o.Rows})
	out.Resumed = resumed
	return out, errors.Join(err, resumeErr)
}

// An application is an Apply under way.
type application struct {
	ApplyOptions
	Change
	git   *worktree.Manager
	notes []string
}

// check makes sure of what can be known before anything is changed.
func (a *application) check(ctx context.Context) error {
	if err := CheckMode(a.want); err != nil {
		return err
	}
	if err := checkPlaces(a.Run.Name, a.Run.Dir, a.want.Agents); err != nil {
		return err
	}
	var fresh []recipes.Agent
	for _, agent := range a.want.Agents {
		if slices.Contains(a.Added, agent.Name) || slices.Contains(a.Restart, agent.Name) {
			fresh = append(fresh, agent)
		}
	}
	if err := checkAgents(fresh, a.Environ); err != nil {
		return err
	}
	git, err := OpenGit(ctx, a.Repo, a.Dir, a.Now)
	if err != nil {
		return err
	}
	a.git = git
	_, err = git.Resume(ctx)
	return err
}

// converge does all that changes something. Each step can be done again.
func (a *application) converge(ctx context.Context) error {
	if err := a.calm(ctx); err != nil {
		return err
	}
	if a.Empty() {
		return nil
	}
	StopServing(ctx, a.Run)
	for _, step := range []func(context.Context) error{a.stop, a.keepStart, a.clearAway, a.makeNew, a.writeDown} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// calm has the agents that are to be ended come to the ends of their turns, with
// nothing new given to them, and tasks of those that go to their ends.
func (a *application) calm(ctx context.Context) (err error) {
	leave := a.leave()
	names := append(slices.Clone(leave.Remove), leave.Restart...)
	if !a.Run.Served() || len(names) == 0 && !a.anyLeaves() {
		return nil
	}
	if _, err := Ask(ctx, a.Run, Request{Leave: &leave}, a.Now()); err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	defer func() {
		if err != nil { // they go on as before
			_, askErr := Ask(context.WithoutCancel(ctx), a.Run, Request{Leave: &Leave{}}, a.Now())
			err = errors.Join(err, askErr)
		}
	}()
	wait, cancel := context.WithTimeout(ctx, max(a.Within, graceTime))
	defer cancel()
	err = Observe(wait, a.Run, func(st State) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return st.busy(name) })
	})
	if ctx.Err() == nil && wait.Err() != nil {
		for _, name := range names {
			a.OnStep(name, DownLate)
		}
		return nil
	}
	return err
}

// graceTime is how long the orchestrator has at least to take a request.
const graceTime = 2 * time.Second

// busy tells whether an agent that leaves has something to end.
func (s State) busy(name string) bool {
	a, ok := s.Agents[name]
	switch {
	case !ok:
		return false
	case a.Leaves == LeavesNot:
		return true // the request was not taken yet
	case a.Leaves == LeavesForGood && a.Task != "":
		return true
	}
	return a.State == pty.AgentWorking
}

func (a *application) anyLeaves() bool {
	st, err := Now(a.Run)
	if err != nil {
		return false
	}
	for _, agent := range st.Agents {
		if agent.Leaves != LeavesNot {
			return true
		}
	}
	return false
}

// stop ends the agents that leave, and closes the panes of those that go.
func (a *application) stop(ctx context.Context) error {
	down := DownOptions{Run: a.Run, Host: a.Host, OnStep: a.OnStep, Now: a.Now}
	group, inner := errgroup.WithContext(ctx)
	for _, name := range append(slices.Clone(a.Removed), a.Restart...) {
		group.Go(func() error {
			if err := down.agent(inner, name); err != nil {
				return fmt.Errorf("ending agent %s: %w", name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if closer, ok := a.Host.(Closer); ok && len(a.Removed) > 0 {
		return closer.Close(ctx, a.Run.Session, a.Removed)
	}
	return nil
}

// keepStart keeps the recipe that the journal begins from.
func (a *application) keepStart(context.Context) error {
	if _, err := os.Stat(a.Run.startPath()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := os.ReadFile(a.Run.Dir.Manifest())
	if err != nil {
		return fmt.Errorf("keeping the recipe that the run began with: %w", err)
	}
	return durable.WriteFile(a.Run.startPath(), text, 0o600)
}

// of is what a recipe has in git.
func (a *application) of(r *recipes.Recipe) made {
	return made{git: a.git, repo: a.Repo, dir: a.Dir, info: a.Run.Info, recipe: r, environ: a.Environ}
}

// clearAway removes the worktrees that nobody has any more.
func (a *application) clearAway(ctx context.Context) error {
	old, stays := a.of(a.have), a.of(a.want).worktrees()
	for _, path := range old.worktrees() {
		if slices.Contains(stays, path) {
			continue
		}
		teardown, err := old.commands(path, a.have.Worktree.Teardown)
		if err != nil {
			return err
		}
		rep, err := a.git.Remove(ctx, worktree.RemoveRequest{Path: path, Branch: old.branch(path), Teardown: teardown})
		if err != nil && !errors.Is(err, worktree.ErrMissing) {
			return err
		}
		a.notes = append(a.notes, rep.Notes...)
	}
	for _, name := range a.Removed {
		if err := (ports.Book{Path: a.Run.Dir.Ports()}).Release(ctx, portOwner(a.Run.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// makeNew makes what new agents need: ports, worktrees, folders, first prompts.
func (a *application) makeNew(ctx context.Context) error {
	next, there := a.of(a.want), a.of(a.have).worktrees()
	if err := next.lendPorts(ctx); err != nil {
		return err
	}
	tip, err := a.git.Tip(ctx, a.Run.Branch)
	if err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, path := range next.worktrees() {
		if !slices.Contains(there, path) {
			group.Go(func() error { return a.spawn(inner, next, path, tip) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, agent := range a.want.Agents {
		if slices.Contains(a.Added, agent.Name) {
			if err := a.welcome(agent); err != nil {
				return err
			}
		}
	}
	return nil
}

// spawn makes a worktree. What an Apply that was cut off has left there is taken
// away first: nobody has worked in it.
func (a *application) spawn(ctx context.Context, m made, path, at string) error {
	_, err := a.git.Remove(ctx, worktree.RemoveRequest{Path: path, Branch: m.branch(path), Unused: true, Fresh: true})
	if err != nil && !errors.Is(err, worktree.ErrMissing) {
		return err
	}
	if tip, err := a.git.Tip(ctx, m.branch(path)); err != nil || tip != "" {
		if err = errors.Join(err, a.git.DeleteBranch(ctx, m.branch(path), tip)); err != nil {
			return err
		}
	}
	setup, err := m.commands(path, a.want.Worktree.Setup)
	if err != nil {
		return err
	}
	w := a.want.Worktree
	_, err = a.git.Spawn(ctx, worktree.Spawn{
		Path: path, Branch: m.branch(path), At: at, Preparation: worktree.Preparation{Copy: w.Copy, Link: w.Link, Setup: setup},
	})
	return err
}

// welcome makes a new agent's folder, with its first prompt, unless it had one.
func (a *application) welcome(agent recipes.Agent) error {
	dir := a.Run.Dir.Agent(agent.Name)
	if err := os.MkdirAll(dir.Path, 0o700); err != nil {
		return fmt.Errorf("making the folder of agent %s: %w", agent.Name, err)
	}
	had, err := pty.Messages(dir)
	if err != nil || len(had) > 0 {
		return err
	}
	return firstPrompt(dir, agent, a.Repo.Root, a.Now())
}

// firstPrompt puts an agent's first prompt, if it has one, into its inbox.
func firstPrompt(dir state.AgentDir, agent recipes.Agent, root string, now time.Time) error {
	text, err := agent.FirstPrompt(root)
	if err != nil || text == "" || promptedLater(agent) {
		return err
	}
	return pty.Enqueue(dir, pty.Message{ID: id.New(now), Kind: pty.KindPrompt, Text: text, From: "recipe", Time: now})
}

// writeDown makes the recipe the run's own. It is the last step: before it the
// run is still what it was, and an orchestrator that is started has it so.
func (a *application) writeDown(context.Context) error {
	text, err := a.want.Marshal()
	if err != nil {
		return fmt.Errorf("writing the run's recipe: %w", err)
	}
	if err := a.lendEnv(); err != nil {
		return err
	}
	info := a.Run.Info
	info.Origin = a.Origin
	return errors.Join(durable.WriteFile(a.Run.Dir.Manifest(), text, 0o600), writeInfo(a.Run.Dir, info))
}

// lendEnv adds variables that agents want now, and did not at the run's start.
func (a *application) lendEnv() error {
	env, err := ReadEnv(a.Run.Dir, a.Environ)
	if err != nil {
		return err
	}
	named := func(name string) func(string) bool {
		return func(kv string) bool { return strings.HasPrefix(kv, name+"=") }
	}
	n := len(env)
	for _, agent := range a.want.Agents {
		for _, name := range agent.Env {
			i := slices.IndexFunc(a.Environ, named(name))
			if i >= 0 && !slices.ContainsFunc(env, named(name)) {
				env = append(env, a.Environ[i])
			}
		}
	}
	if len(env) == n {
		return nil
	}
	if err := durable.PrivateDir(a.Run.Dir.Sockets()); err != nil {
		return fmt.Errorf("making the run's socket folder: %w", err)
	}
	return writeEnv(a.Run.Dir, env)
}
