package orchestrator

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muntin/agent/pty"
)

// doer answers every effect with success and counts them.
type doer struct{ did chan Effect }

func (d doer) Do(_ context.Context, e Effect) Input {
	d.did <- e
	return Input{Result: &Result{OK: true}}
}

// The loop has one timer: it fires when the state wants it, and not before or
// after. What it decided then is decided again when the journal is read.
func TestTheLoopTellsTheTimeWhenItIsDue(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	synctest.Test(t, func(t *testing.T) {
		agents := []Agent{{Name: "ada", Role: RoleWorker, Restart: Restart{Policy: RestartOnFailure, Most: 3}}}
		start := NewState(Settings{Attempts: 3, Stall: Stall{After: 10 * time.Minute, Nudges: 1}}, agents)
		journal, st, pending, err := OpenJournal(path, start, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		inputs, did := make(chan Input), make(chan Effect, 16)
		var steps atomic.Int64
		loop := &Loop{
			Journal: journal, State: st, Pending: pending, Doer: doer{did}, Inputs: inputs, Now: time.Now,
			OnState: func(State) { steps.Add(1) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- loop.Run(ctx) }()
		seq := int64(0)
		event := func(e pty.Event) {
			seq++
			e.Seq, e.Time = seq, time.Now()
			inputs <- Input{Kind: InputAgent, Agent: "ada", Event: &e}
			synctest.Wait()
		}
		event(pty.Event{Kind: pty.EventReady})
		inputs <- Input{Kind: InputBoard, Rev: 1, Tasks: []Task{{ID: "a", State: TaskOpen, Ready: true}}}
		synctest.Wait()
		event(pty.Event{Kind: pty.EventTurnStart, TurnStart: &pty.TurnStartInfo{Task: "a"}})
		for range 3 { // claim, prepare, send
			<-did
		}
		time.Sleep(9 * time.Minute) //nolint:forbidigo // the clock of the bubble
		event(pty.Event{Kind: pty.EventTool, Tool: &pty.ToolInfo{Name: "bash"}})
		before := steps.Load()
		time.Sleep(9 * time.Minute) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if n := steps.Load() - before; n != 0 || len(did) > 0 {
			t.Errorf("%d steps while nothing was due", n)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if e := <-did; e.Msg != pty.KindSteer {
			t.Errorf("it did %+v", e)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
		again, st, pending, err := OpenJournal(path, start, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if st.Effects != loop.State.Effects || len(pending) > 0 || st.Agents["ada"].Silence.Nudges != 1 {
			t.Errorf("read again: %d effects of %d, pending %v, %+v", st.Effects, loop.State.Effects, pending, st.Agents["ada"].Silence)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}
