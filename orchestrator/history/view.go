package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muntin/agent/adapter"
	"muntin/agent/pty"
	"muntin/internal/durable"
	"muntin/orchestrator"
	"muntin/orchestrator/watch"
)

// An Agent is an agent by its own event log, which is true also where no
// orchestrator is at work.
type Agent struct {
	Name       string             `json:"name"`
	Role       string             `json:"role,omitempty"`
	State      pty.AgentState     `json:"state"`
	Since      time.Time          `json:"since"`
	Source     adapter.Evidence   `json:"source,omitempty"` // of what the state is known by
	Confidence adapter.Confidence `json:"confidence,omitempty"`
	Turn       int                `json:"turn"`
	Task       string             `json:"task,omitempty"` // of the running turn
	Queued     int                `json:"queued"`         // messages that wait
	Doing      string             `json:"doing,omitempty"`
	Last       time.Time          `json:"last"` // its last event

	Waiting    *pty.WaitingInfo    `json:"waiting,omitempty"`
	Limit      *pty.LimitInfo      `json:"limit,omitempty"`
	Checkpoint *pty.CheckpointInfo `json:"checkpoint,omitempty"`
	Used       Usage               `json:"used"`

	queue map[string]bool
}

// take folds one event of the agent's log.
func (a *Agent) take(e pty.Event) {
	a.Last = e.Time
	if e.Turn > 0 {
		a.Turn = e.Turn
	}
	set := func(s pty.AgentState, source adapter.Evidence, confidence adapter.Confidence) {
		a.State, a.Since, a.Source, a.Confidence, a.Doing = s, e.Time, source, confidence, ""
	}
	switch {
	case e.Kind == pty.EventStart:
		set(pty.AgentStarting, "process", "")
		a.Waiting, a.Limit, a.Task = nil, nil, ""
	case e.Kind == pty.EventExit:
		set(pty.AgentExited, "process", "")
		a.Waiting = nil
	case e.Ready != nil:
		set(pty.AgentIdle, e.Ready.Source, e.Ready.Confidence)
		a.Waiting = nil
	case e.TurnStart != nil:
		set(pty.AgentWorking, e.TurnStart.Source, e.TurnStart.Confidence)
		a.Task = e.TurnStart.Task
	case e.TurnEnd != nil:
		set(pty.AgentIdle, e.TurnEnd.Source, e.TurnEnd.Confidence)
		a.Task, a.Waiting = "", nil
		if e.TurnEnd.Reason == pty.TurnDone {
			a.Limit = nil
		}
		a.Used.turn(*e.TurnEnd)
	case e.Waiting != nil:
		a.Waiting = e.Waiting
		if e.Waiting.For == pty.WaitNothing {
			a.Waiting = nil
		}
	case e.Limit != nil:
		a.Limit = e.Limit
	case e.Tool != nil:
		a.Doing = e.Tool.Name + " " + e.Tool.Summary
	case e.Checkpoint != nil:
		a.Checkpoint = e.Checkpoint
	case e.Message != nil:
		a.message(*e.Message)
	}
}

func (a *Agent) message(m pty.MessageInfo) {
	if a.queue == nil {
		a.queue = map[string]bool{}
	}
	if delete(a.queue, m.ID); m.State == pty.StateQueued || m.State == pty.StateHeld {
		a.queue[m.ID] = true
	}
	a.Queued = len(a.queue)
}

// Short is the agent's state in one word that says most: waiting and limited
// stand above what its process does.
func (a Agent) Short() string {
	switch {
	case a.State == pty.AgentExited:
	case a.Waiting != nil:
		return "waiting"
	case a.Limit != nil && a.State != pty.AgentWorking:
		return "limited"
	}
	return string(a.State)
}

// A View is a run as it is known now.
type View struct {
	Run    orchestrator.Run
	State  orchestrator.State // by the journal
	Agents []Agent            // in the recipe's order
}

// Agent returns an agent by its name.
func (v View) Agent(name string) (Agent, bool) {
	for _, a := range v.Agents {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// Ended tells whether nothing of the run goes on: no orchestrator is at work
// and all agents have written down their ends.
func (v View) Ended() bool {
	for _, a := range v.Agents {
		if a.State != pty.AgentExited {
			return false
		}
	}
	return !v.Run.Served()
}

// A viewer folds the journal and the agents' logs.
type viewer struct {
	View
	paths map[string]int // of the agents' logs
}

func newViewer(run orchestrator.Run) (*viewer, error) {
	recipe, err := run.Recipe()
	if err != nil {
		return nil, fmt.Errorf("reading run %s: %w", run.Name, err)
	}
	v := &viewer{View: View{Run: run, State: orchestrator.InitialState(run, recipe)}, paths: map[string]int{}}
	for _, a := range recipe.Agents {
		v.paths[run.Dir.Agent(a.Name).Events()] = len(v.Agents)
		v.Agents = append(v.Agents, Agent{Name: a.Name, Role: a.Role, State: pty.AgentStarting, Since: run.Created})
	}
	return v, nil
}

// take folds a line of a log. It tells whether anything may have changed.
func (v *viewer) take(path string, line []byte) bool {
	if i, ok := v.paths[path]; ok {
		var e pty.Event
		if json.Unmarshal(line, &e) != nil {
			return false
		}
		v.Agents[i].take(e)
		return true
	}
	var e orchestrator.Entry
	if json.Unmarshal(line, &e) != nil || e.Input == nil {
		return false
	}
	v.State, _ = orchestrator.Reduce(v.State, *e.Input)
	return true
}

// past folds all there is and returns how far each log was read.
func (v *viewer) past() (map[string]int64, error) {
	at := map[string]int64{}
	paths := []string{v.Run.Dir.Journal()}
	for path := range v.paths {
		paths = append(paths, path)
	}
	for _, path := range paths {
		next, err := durable.Lines(path, 0, func(line []byte, _ int64) error {
			v.take(path, line)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading run %s: %w", v.Run.Name, err)
		}
		at[path] = next
	}
	return at, nil
}

// Now is how a run stands.
func Now(run orchestrator.Run) (View, error) {
	v, err := newViewer(run)
	if err != nil {
		return View{}, err
	}
	_, err = v.past()
	return v.View, err
}

// Watch calls look with how a run stands, at once, whenever an event has come,
// and when the time has come that look asked for (zero: none). It ends when
// look says so, with nil, or when ctx ends, with its cause. A view is look's
// only until look returns.
func Watch(ctx context.Context, run orchestrator.Run, look func(View) (done bool, wake time.Time)) error {
	v, err := newViewer(run)
	if err != nil {
		return err
	}
	at, err := v.past()
	if err != nil {
		return err
	}
	f := &feed{lines: make(chan fed)}
	stop, err := f.start(ctx, at)
	if err != nil {
		return err
	}
	defer stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		done, wake := look(v.View)
		if done {
			return nil
		}
		if timer.Stop(); !wake.IsZero() {
			timer.Reset(time.Until(wake))
		}
		for changed := false; !changed; {
			select {
			case l := <-f.lines:
				changed = v.take(l.path, l.data)
			case <-timer.C:
				changed = true
			case <-f.ended:
				return errors.Join(f.err, context.Cause(ctx))
			}
		}
	}
}

// A feed brings the lines of several logs to one goroutine.
type feed struct {
	lines chan fed
	ended chan struct{} // closed when no line will come any more
	err   error         // why; read after ended
}

type fed struct {
	path string
	data []byte
}

// start follows logs from their offsets. Stop ends that and waits.
func (f *feed) start(ctx context.Context, at map[string]int64) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	tail, err := watch.Follow(ctx, watch.Options{}, func(l watch.Line) error {
		if l.Err != nil {
			return l.Err
		}
		select {
		case f.lines <- fed{l.Path, l.Data}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		cancel()
		return nil, err
	}
	f.ended = make(chan struct{})
	go func() {
		defer close(f.ended)
		for path, from := range at {
			if err := tail.Add(path, from); err != nil {
				f.err = errors.Join(err, tail.Close())
				return
			}
		}
		f.err = tail.Wait()
	}()
	return func() { cancel(); <-f.ended }, nil
}
