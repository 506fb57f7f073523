package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"muntin/agent/pty"
	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/orchestrator/watch"
)

// errEnough ends a tail whose reader has seen what it wanted.
var errEnough = errors.New("seen enough")

// Observe folds a run's journal as it grows and calls fn with the state after
// each input, until fn returns true or ctx ends. It sees what the orchestrator
// decided on, without asking it.
func Observe(ctx context.Context, run Run, fn func(State) (done bool)) error {
	st, err := run.first()
	if err != nil {
		return err
	}
	tail, err := watch.Follow(ctx, watch.Options{}, func(line watch.Line) error {
		if line.Err != nil {
			return line.Err
		}
		next, changed, err := fold(st, line.Data)
		if err != nil {
			return fmt.Errorf("reading the journal of run %s: %w", run.Name, err)
		}
		st = next
		if changed && fn(st) {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer tail.Close()
	if err := tail.Add(run.Dir.Journal(), 0); err != nil {
		return err
	}
	if err := tail.Wait(); !errors.Is(err, errEnough) {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// Follow calls fn with the state that a run's journal makes as it is, and again
// after each input that is added, until ctx ends.
func Follow(ctx context.Context, run Run, fn func(State)) error {
	recipe, err := run.Recipe()
	if err != nil {
		return err
	}
	st := InitialState(run, recipe)
	take := func(line []byte) (changed bool, err error) {
		if st, changed, err = fold(st, line); err != nil {
			err = fmt.Errorf("reading the journal of run %s: %w", run.Name, err)
		}
		return changed, err
	}
	next, err := durable.Lines(run.Dir.Journal(), 0, func(line []byte, _ int64) error {
		_, err := take(line)
		return err
	})
	if err != nil {
		return err
	}
	fn(st)
	tail, err := watch.Follow(ctx, watch.Options{}, func(line watch.Line) error {
		if line.Err != nil {
			return line.Err
		}
		changed, err := take(line.Data)
		if err == nil && changed {
			fn(st)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer tail.Close()
	if err := tail.Add(run.Dir.Journal(), next); err != nil {
		return err
	}
	return errors.Join(tail.Wait(), context.Cause(ctx))
}

// Now folds a run's journal as it is and returns the state.
func Now(run Run) (State, error) {
	st, err := run.first()
	if err != nil {
		return State{}, err
	}
	_, err = durable.Lines(run.Dir.Journal(), 0, func(line []byte, _ int64) error {
		var err error
		if st, _, err = fold(st, line); err != nil {
			return fmt.Errorf("reading the journal of run %s: %w", run.Name, err)
		}
		return nil
	})
	return st, err
}

// fold takes a line of the journal into the state; only inputs change it.
func fold(st State, line []byte) (next State, changed bool, err error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return st, false, err
	}
	if e.Input == nil {
		return st, false, nil
	}
	next, _ = Reduce(st, *e.Input)
	return next, true, nil
}

// WaitReady waits until every agent of the run is ready for prompts. It fails
// when one ends before it is, and when ctx ends, naming those that are not.
func WaitReady(ctx context.Context, run Run) error {
	names, err := run.AgentNames()
	if err != nil {
		return err
	}
	from := map[string]int64{}
	for _, name := range names {
		from[name] = 0
	}
	return waitReady(ctx, run, from)
}

// waitReady is WaitReady for some agents, by what their logs tell from the byte
// offsets on.
func waitReady(ctx context.Context, run Run, from map[string]int64) error {
	if len(from) == 0 {
		return nil
	}
	waiting, paths := map[string]bool{}, map[string]string{}
	for name := range from {
		waiting[name] = true
		paths[run.Dir.Agent(name).Events()] = name
	}
	tail, err := watch.Follow(ctx, watch.Options{}, func(line watch.Line) error {
		if line.Err != nil {
			return line.Err
		}
		var e pty.Event
		if json.Unmarshal(line.Data, &e) != nil {
			return nil
		}
		name := paths[line.Path]
		switch e.Kind {
		case pty.EventReady:
			delete(waiting, name)
			if len(waiting) == 0 {
				return errEnough
			}
		case pty.EventExit:
			if waiting[name] {
				return endedEarly(run, name, e.Exit)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer tail.Close()
	for path, name := range paths {
		if err := tail.Add(path, from[name]); err != nil {
			return err
		}
	}
	err = tail.Wait()
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err != nil:
		return err
	}
	left := slices.Sorted(maps.Keys(waiting))
	return fmt.Errorf("agents of run %s are not ready: %s: %w", run.Name, strings.Join(left, ", "), context.Cause(ctx))
}

// An EarlyEndError says that an agent's program ended before it was ready.
type EarlyEndError struct {
	Run, Agent string
	Status     string
}

func (e *EarlyEndError) Error() string {
	return fmt.Sprintf("agent %s of run %s ended before it was ready (%s)", e.Agent, e.Run, e.Status)
}

func endedEarly(run Run, agent string, exit *pty.ExitInfo) error {
	e := &EarlyEndError{Run: run.Name, Agent: agent, Status: "unknown status"}
	if exit != nil {
		e.Status = fmt.Sprintf("status %d", exit.Code)
		if exit.Signal != "" {
			e.Status = "signal " + exit.Signal
		}
	}
	return e
}

// A Standing is where a run stands, by its journal.
type Standing struct {
	Phase    Phase
	Troubles map[string]Trouble // what keeps agents, by name
}

// LastStanding is where a run stands by the end of its journal.
func LastStanding(dir state.RunDir) Standing {
	path := dir.Journal()
	last := Standing{Phase: PhaseStarting}
	read := func(from int64) bool {
		found := false
		_, _ = durable.Lines(path, from, func(line []byte, _ int64) error {
			var e Entry
			if json.Unmarshal(line, &e) == nil && e.Phase != "" {
				last, found = Standing{Phase: e.Phase, Troubles: e.Troubles}, true
			}
			return nil
		})
		return found
	}
	const end = 128 << 10
	if info, err := os.Stat(path); err == nil && info.Size() > end && read(info.Size()-end) {
		return last
	}
	read(0)
	return last
}
