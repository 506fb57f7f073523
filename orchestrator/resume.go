package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"muntin/internal/durable"
	"muntin/recipes"
)

// ResumeOptions say which run to bring back and how.
type ResumeOptions struct {
	Run     Run
	Host    Host
	Self    string
	Environ []string // for agents, where that of the run's start is gone
	Cols    int
	Rows    int
}

// Resumed tells what Resume brought back, and what was alive and left alone.
type Resumed struct {
	Session bool     `json:"session"` // the host's session was made anew
	Board   bool     `json:"orchestrator"`
	Agents  []string `json:"agents"`
	Alive   []string `json:"alive"`

	since map[string]int64 // where the logs of Agents ended before
}

// Nothing tells whether all of the run was alive.
func (r Resumed) Nothing() bool { return !r.Board && len(r.Agents) == 0 }

// Resume brings back what is missing of a run, whatever has ended and however:
// its session, its agents' supervisors, its orchestrator. What lives is left
// alone, so that it can be called again. It returns when the programs were
// started; see WaitResumed. The rest follows from what is on disk: supervisors
// close turns that were cut off and go on with their conversations, and the
// orchestrator goes on from its journal.
func Resume(ctx context.Context, o ResumeOptions) (out Resumed, err error) {
	recipe, err := o.Run.Recipe()
	if err != nil {
		return Resumed{}, err
	}
	if err := o.places(recipe); err != nil {
		return Resumed{}, err
	}
	starter := &FleetStarter{
		Run: o.Run, Host: o.Host,
		Fleet: NewFleet(o.Run, recipe, FleetOptions{Self: o.Self, Environ: o.Environ, Cols: o.Cols, Rows: o.Rows}),
	}
	err = starter.alone(ctx, func() error {
		out, err = o.resume(ctx, recipe, starter)
		return err
	})
	return out, err
}

func (o ResumeOptions) resume(ctx context.Context, recipe *recipes.Recipe, starter *FleetStarter) (Resumed, error) {
	panes, err := o.Host.Panes(ctx, o.Run.Session)
	if err != nil {
		return Resumed{}, err
	}
	alive, err := o.alive(ctx, recipe, panes)
	if err != nil {
		return Resumed{}, err
	}
	out := Resumed{Session: len(panes) == 0, Agents: []string{}, Alive: []string{}, since: map[string]int64{}}
	names := []string{}
	for _, a := range recipe.Agents {
		if alive[a.Name] {
			out.Alive = append(out.Alive, a.Name)
			continue
		}
		out.Agents = append(out.Agents, a.Name)
		out.since[a.Name] = sizeOf(o.Run.Dir.Agent(a.Name).Events())
		names = append(names, a.Name)
	}
	if !alive[BoardPane] {
		out.Board, names = true, append(names, BoardPane)
	}
	if len(names) == 0 {
		out.Session = false
		return out, nil
	}
	return out, starter.start(ctx, names)
}

// places makes sure of what the run's processes need to start.
func (o ResumeOptions) places(recipe *recipes.Recipe) error {
	for _, a := range recipe.Agents {
		dir := WorkDir(o.Run.Dir, o.Run.Root, a)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("the folder of agent %s is gone: %s", a.Name, dir)
		}
	}
	if err := durable.PrivateDir(o.Run.Dir.Sockets()); err != nil {
		return fmt.Errorf("making the run's socket folder: %w", err)
	}
	if _, err := os.Stat(envPath(o.Run.Dir)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return writeEnv(o.Run.Dir, o.Environ)
}

// alive tells which of the run's processes are there to stay, by their panes'
// names.
func (o ResumeOptions) alive(ctx context.Context, recipe *recipes.Recipe, panes map[string]bool) (map[string]bool, error) {
	locks := map[string]string{BoardPane: o.Run.Dir.Lock()}
	for _, a := range recipe.Agents {
		locks[a.Name] = o.Run.Dir.Agent(a.Name).Events()
	}
	var mu sync.Mutex
	alive := map[string]bool{}
	group, ctx := errgroup.WithContext(ctx)
	for name, lock := range locks {
		group.Go(func() error {
			is, err := lives(ctx, lock, panes[name])
			mu.Lock()
			defer mu.Unlock()
			alive[name] = is
			return err
		})
	}
	return alive, group.Wait()
}

// dying is how long a process may still hold its lock that was killed just now.
const dying = 100 * time.Millisecond

// lives tells whether the process that holds a lock is there to stay. One whose
// pane is gone has lost its terminal and is ending; that is waited for. One that
// outlives it is another's business, as an orchestrator that a person has started.
func lives(ctx context.Context, lock string, pane bool) (bool, error) {
	limit := settleTime
	if pane {
		limit = dying
	}
	err := awaitUnlocked(ctx, lock, limit)
	if errors.Is(err, durable.ErrLocked) && ctx.Err() == nil {
		return true, nil
	}
	return false, err
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// WaitResumed waits until the agents that were brought back are ready and the
// run has an orchestrator. Errors are those of WaitReady.
func WaitResumed(ctx context.Context, run Run, r Resumed) error {
	if err := waitReady(ctx, run, r.since); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for r.Board && !run.Served() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("run %s has no orchestrator yet: %w", run.Name, context.Cause(ctx))
		}
	}
	return nil
}
