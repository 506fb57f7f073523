package orchestrator

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
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

	mu sync.Mutex // one at a time: the first may have to make the session
}

// settleTime is how long a supervisor that is ending has for it: its agent's
// grace, and a checkpoint.
const settleTime = 20 * time.Second

// StartAgent implements Starter.
func (s *FleetStarter) StartAgent(ctx context.Context, agent string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.Run.Dir.Agent(agent)
	if answers(ctx, dir.Socket) {
		return nil
	}
	if err := awaitUnlocked(ctx, dir.Events(), settleTime); err != nil {
		return fmt.Errorf("waiting for the end of the supervisor of %s: %w", agent, err)
	}
	return s.Host.Restore(ctx, s.Fleet, []string{agent})
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
