package orchestrator

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"muntin/internal/durable"
	"muntin/internal/id"
)

// An Entry is one line of journal.jsonl: an input, an effect that is about to
// be carried out, or where the run stands from here on.
type Entry struct {
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	Input  *Input    `json:"input,omitempty"`
	Effect *Effect   `json:"effect,omitempty"`
	Phase  Phase     `json:"phase,omitempty"`

	Troubles map[string]Trouble `json:"troubles,omitempty"` // with Phase: what keeps agents, by name
}

// A Journal is the durable memory of a run. It has one writer.
type Journal struct {
	log *durable.Log
	seq int64
	now func() time.Time
}

// OpenJournal opens the journal at path and folds it into the state of the
// run, from start. It returns that state and the effects that were under way:
// journalled, or due, and without a result.
func OpenJournal(path string, start State, now func() time.Time) (*Journal, State, []Effect, error) {
	log, err := durable.OpenLog(path)
	if err != nil {
		return nil, start, nil, fmt.Errorf("opening the run's journal: %w", err)
	}
	j := &Journal{log: log, now: now}
	state, due := start, map[string]Effect{}
	var order []string
	_, err = durable.Lines(path, 0, func(line []byte, _ int64) error {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line after entry %d: %w", j.seq, err)
		}
		j.seq = e.Seq
		switch {
		case e.Input != nil:
			delete(due, e.Input.Key)
			if back := e.Input.Back; back != nil {
				maps.DeleteFunc(due, func(_ string, f Effect) bool { return back.voids(f) })
			}
			var effects []Effect
			state, effects = Reduce(state, *e.Input)
			for _, f := range effects {
				due[f.Key] = f
				order = append(order, f.Key)
			}
		case e.Effect != nil:
			if _, ok := due[e.Effect.Key]; ok {
				due[e.Effect.Key] = *e.Effect // with the id it was given
			}
		}
		return nil
	})
	if err != nil {
		log.Close()
		return nil, start, nil, fmt.Errorf("reading the run's journal %s: %w", path, err)
	}
	var pending []Effect
	for _, key := range order {
		if f, ok := due[key]; ok && state.wants(f) {
			pending = append(pending, f)
		}
	}
	return j, state, pending, nil
}

// Close releases the journal.
func (j *Journal) Close() error { return j.log.Close() }

// step writes an input and what followed from it, and returns the effects with
// their ids. All of it is durable when it returns.
func (j *Journal) step(in Input, before, after State, effects []Effect) ([]Effect, error) {
	if err := j.append(Entry{Input: &in}); err != nil {
		return nil, err
	}
	effects, err := j.intend(effects)
	if err != nil {
		return nil, err
	}
	troubles := after.Troubles()
	if after.Phase != before.Phase || !maps.Equal(troubles, before.Troubles()) {
		if err := j.append(Entry{Phase: after.Phase, Troubles: troubles}); err != nil {
			return nil, err
		}
	}
	return effects, j.log.Sync()
}

// intend journals effects that are about to be carried out.
func (j *Journal) intend(effects []Effect) ([]Effect, error) {
	for i := range effects {
		if effects[i].ID == "" {
			effects[i].ID = id.New(j.now())
		}
		if err := j.append(Entry{Effect: &effects[i]}); err != nil {
			return nil, err
		}
	}
	return effects, nil
}

func (j *Journal) append(e Entry) error {
	j.seq++
	e.Seq, e.Time = j.seq, j.now()
	return j.log.Append(e)
}

// wants tells whether the result of an effect still matters: the task's work
// waits for it, or it speaks to an agent or the board, which must not miss it.
func (s State) wants(e Effect) bool {
	switch e.Kind {
	case EffectSend, EffectMark, EffectRecall:
		return true
	case EffectRunCheck:
		return s.RunCheck.Key == e.Key
	case EffectApprove:
		return s.Approve == e.Key
	case EffectRestart:
		return s.Agents[e.Agent].Restart.Key == e.Key
	case EffectFirst:
		return s.Agents[e.Agent].FirstKey == e.Key
	case EffectClaim, EffectPrepare, EffectCheck, EffectCommit, EffectMerge:
	}
	if e.Kind == EffectOverlap {
		return s.Radar.Key == e.Key
	}
	for _, w := range s.Works {
		if w.Key == e.Key {
			return true
		}
	}
	return false
}
