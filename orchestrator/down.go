package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"muntin/agent/pty"
	"muntin/checkpoint"
)

// A DownStep is how far an agent is on its way down.
type DownStep string

// The steps.
const (
	DownWaits   DownStep = "ends its turn"
	DownLate    DownStep = "did not end its turn in time, and is stopped in it"
	DownStopped DownStep = "has ended"
	DownSaved   DownStep = "has ended; its last changes are in a checkpoint"
)

// DownOptions say which run to end and how.
type DownOptions struct {
	Run    Run
	Host   Host
	Within time.Duration                     // how long an agent may go on with its turn; 0: not at all
	OnStep func(agent string, step DownStep) // called from several goroutines; may be nil
	Now    func() time.Time
}

// stopTime is how long an agent has to end when it is told to.
const stopTime = 15 * time.Second

// Down ends a run's processes: the orchestrator first, so that nobody gets a
// prompt any more, then each agent at the end of its turn, and the host's
// session. What was changed after an agent's last checkpoint is in another one.
// Nothing is removed but the sockets. It returns when all are gone.
func Down(ctx context.Context, o DownOptions) error {
	names, err := o.Run.AgentNames()
	if err != nil {
		return err
	}
	if o.OnStep == nil {
		o.OnStep = func(string, DownStep) {}
	}
	// It must not take the agents' end for a crash.
	StopServing(ctx, o.Run)
	var group errgroup.Group
	for _, name := range names {
		group.Go(func() error {
			if err := o.agent(ctx, name); err != nil {
				return fmt.Errorf("ending agent %s: %w", name, err)
			}
			return nil
		})
	}
	err = group.Wait()
	err = errors.Join(err, o.Host.Stop(ctx, o.Run.Session))
	if err == nil {
		err = os.RemoveAll(o.Run.Dir.Sockets()) // the sockets, and the environment kept beside them
	}
	return err
}

// agent ends one agent and keeps what it changed last.
func (o DownOptions) agent(ctx context.Context, name string) error {
	dir := o.Run.Dir.Agent(name)
	client, err := pty.Dial(ctx, dir.Socket)
	if errors.Is(err, pty.ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	defer client.Close()
	if err := o.boundary(ctx, client, name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := client.Stop(ctx); err != nil && !errors.Is(err, pty.ErrNotRunning) && !errors.Is(err, pty.ErrLost) {
		return err
	}
	if err := awaitUnlocked(ctx, dir.Events(), stopTime); err != nil {
		return err
	}
	saved, err := o.save(ctx, name)
	if saved {
		o.OnStep(name, DownSaved)
	} else {
		o.OnStep(name, DownStopped)
	}
	return err
}

// boundary waits for the end of an agent's turn, if it is in one.
func (o DownOptions) boundary(ctx context.Context, client *pty.Client, name string) error {
	status, err := client.Status(ctx)
	switch {
	case errors.Is(err, pty.ErrNotRunning) || errors.Is(err, pty.ErrLost):
		return nil // it is just ending
	case err != nil:
		return err
	case o.Within <= 0 || status.State != pty.AgentWorking:
		return nil
	}
	o.OnStep(name, DownWaits)
	wait, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	err = client.Subscribe(wait, status.Seq+1, func(e pty.Event) error {
		if e.Kind == pty.EventTurnEnd {
			return errEnough
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wait.Err() != nil:
		o.OnStep(name, DownLate)
	case err != nil && !errors.Is(err, errEnough) && !errors.Is(err, pty.ErrLost):
		return err
	}
	return nil
}

// save takes a checkpoint of an agent that has ended, if its files are not as
// they were at the last one.
func (o DownOptions) save(ctx context.Context, name string) (bool, error) {
	recipe, err := o.Run.Recipe()
	if err != nil {
		return false, err
	}
	for _, a := range recipe.Agents {
		if a.Name != name {
			continue
		}
		last, err := lastCheckpoint(o.Run, name)
		if err != nil || last == nil {
			return false, err // it had no turn: what is there was there before
		}
		store, err := checkpoint.Open(ctx, checkpoint.Options{
			Worktree: WorkDir(o.Run.Dir, o.Run.Root, a), Ref: CheckpointRef(o.Run.Name, name),
			CacheDir: o.Run.Dir.Agent(name).Path, Now: o.Now,
		})
		if err != nil {
			return false, err
		}
		saved, err := saveChanges(ctx, store, last.Tree, checkpoint.Meta{
			Run: o.Run.Name, Agent: name, Cause: checkpoint.CauseManual, Note: "when it was ended",
		})
		return saved, errors.Join(err, store.Close())
	}
	return false, nil
}

// saveChanges takes a checkpoint unless the files are those of tree.
func saveChanges(ctx context.Context, store *checkpoint.Store, tree string, meta checkpoint.Meta) (bool, error) {
	now, err := store.Worktree(ctx)
	if err != nil || now.Tree == tree {
		return false, err
	}
	_, _, err = store.Save(ctx, meta)
	return err == nil, err
}

// lastCheckpoint is the newest one that an agent's log tells of.
func lastCheckpoint(run Run, agent string) (last *pty.CheckpointInfo, err error) {
	_, err = pty.ReadEvents(run.Dir.Agent(agent), 0, func(e pty.Event, _ int64) error {
		if e.Checkpoint != nil {
			last = e.Checkpoint
		}
		return nil
	})
	return last, err
}
