package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/recipes"
)

// FleetOptions say how a run's panes are made.
type FleetOptions struct {
	Self    string // the muntin program
	Environ []string
	Cols    int // of the windows; 0: the host's default
	Rows    int
}

// NewFleet is what a run has on the screen.
func NewFleet(run Run, recipe *recipes.Recipe, o FleetOptions) Fleet {
	f := Fleet{
		Session: run.Session, Label: state.Repo{Main: run.Repo}.Name() + " · " + run.Name,
		Layout: recipe.Layout, Cols: o.Cols, Rows: o.Rows, Env: placeEnv(o.Environ),
		Board: Pane{Name: BoardPane, Argv: []string{o.Self, "orchestrate", run.Name, "--repo", run.Root}, Dir: run.Root},
	}
	for _, a := range recipe.Resolve() {
		f.Agents = append(f.Agents, Pane{
			Name: a.Name,
			Argv: []string{o.Self, "pane", run.Name, a.Name, "--repo", run.Root},
			Dir:  filepath.Join(WorkDir(run.Dir, run.Root, a), a.Dir),
		})
	}
	return f
}

// BoardPane is the name of the orchestrator's own pane. No agent can have it.
const BoardPane = "board"

// Only is the fleet with only the named panes in it; a fleet without the board
// has an empty Board.
func (f Fleet) Only(names []string) Fleet {
	if !slices.Contains(names, f.Board.Name) {
		f.Board = Pane{}
	}
	f.Agents = slices.DeleteFunc(slices.Clone(f.Agents), func(p Pane) bool { return !slices.Contains(names, p.Name) })
	return f
}

// A FleetStarter starts agents of a run again: it is the Starter of its Serve.
type FleetStarter struct {
	Run   Run
	Fleet Fleet
	Host  Host
}

// settleTime is how long a supervisor that is ending has for it: its agent's
// grace, and a checkpoint.
const settleTime = 20 * time.Second

// StartAgent implements Starter.
func (s *FleetStarter) StartAgent(ctx context.Context, agent string) error {
	return s.alone(ctx, func() error {
		dir := s.Run.Dir.Agent(agent)
		if answers(ctx, dir.Socket) {
			return nil
		}
		if err := awaitUnlocked(ctx, dir.Events(), settleTime); err != nil {
			return fmt.Errorf("waiting for the end of the supervisor of %s: %w", agent, err)
		}
		return s.start(ctx, []string{agent})
	})
}

// startTime is how long a program may take from its start until it shows.
const startTime = 5 * time.Second

// alone keeps others from starting processes of the run, here and in other
// programs: whoever comes second must find what the first has started.
func (s *FleetStarter) alone(ctx context.Context, fn func() error) error {
	wait, cancel := context.WithTimeout(ctx, settleTime+startTime)
	defer cancel()
	lock, err := durable.Lock(wait, filepath.Join(s.Run.Dir.Path, "start.lock"))
	if err != nil {
		return fmt.Errorf("starting processes of run %s: %w", s.Run.Name, err)
	}
	return errors.Join(fn(), lock.Unlock())
}

// start runs the programs of panes, and returns when all of them show, or could
// not. It looks now and then, for there is no event for it.
func (s *FleetStarter) start(ctx context.Context, names []string) error {
	if err := s.Host.Restore(ctx, s.Fleet, names); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, name := range names {
		for !s.shows(wait, name) {
			select {
			case <-tick.C:
			case <-wait.Done():
				return context.Cause(ctx) // what became of it shows in its pane
			}
		}
	}
	return nil
}

// shows tells whether the program of a pane can be found by others.
func (s *FleetStarter) shows(ctx context.Context, name string) bool {
	if name == BoardPane {
		return s.Run.Served()
	}
	return answers(ctx, s.Run.Dir.Agent(name).Socket)
}

// awaitUnlocked waits until nobody holds the lock on path, at most for limit. There is no event
// for it: it looks, and only while a process is ending.
func awaitUnlocked(ctx context.Context, path string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for durable.Locked(path) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", path, durable.ErrLocked)
		}
	}
	return nil
}
