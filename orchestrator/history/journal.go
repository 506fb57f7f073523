package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muntin/checkpoint"
	"muntin/orchestrator"
	"muntin/orchestrator/board"
)

// A journal reads the orchestrator's journal. What the agents' logs and the
// board's log tell better is left to them.
type journal struct {
	effects map[string]orchestrator.Effect // without a result yet, by key
	phase   orchestrator.Phase
	plan    board.Status
	planned bool // plan was read
}

func newJournal() *journal { return &journal{effects: map[string]orchestrator.Effect{}} }

func (j *journal) line(line []byte) []Event {
	var e orchestrator.Entry
	if json.Unmarshal(line, &e) != nil || e.Time.IsZero() {
		return nil
	}
	out := Event{Time: e.Time, Seq: e.Seq, Who: Orchestrator}
	ok := false
	switch {
	case e.Effect != nil:
		j.effects[e.Effect.Key] = *e.Effect
		ok = out.effect(*e.Effect)
	case e.Input != nil:
		ok = j.input(&out, *e.Input)
	case e.Phase != "" && e.Phase != j.phase:
		j.phase = e.Phase
		out.Kind, out.What, ok = KindRun, string(e.Phase), true
	}
	if !ok {
		return nil
	}
	return []Event{out}
}

// kindOf is the kind of an effect's events. Of those that are KindEffect the
// agents' logs (send) and the board's (mark, approve) say more.
func kindOf(k orchestrator.EffectKind) Kind {
	switch k {
	case orchestrator.EffectClaim:
		return KindClaim
	case orchestrator.EffectCheck, orchestrator.EffectRunCheck:
		return KindCheck
	case orchestrator.EffectMerge:
		return KindMerge
	case orchestrator.EffectRestart:
		return KindRestart
	case orchestrator.EffectOverlap:
		return KindOverlap
	default:
		return KindEffect
	}
}

// effect tells whether the beginning of an effect is worth an event.
func (out *Event) effect(f orchestrator.Effect) bool {
	out.Kind = kindOf(f.Kind)
	out.What, out.Agent, out.Task, out.ID, out.Effect = "started", f.Agent, f.Task, f.Key, &f
	out.Text = f.Text
	return out.Kind == KindCheck || out.Kind == KindMerge || out.Kind == KindRestart
}

func (j *journal) input(out *Event, in orchestrator.Input) bool {
	switch in.Kind {
	case orchestrator.InputResult:
		return in.Result != nil && j.result(out, in)
	case orchestrator.InputLost:
		out.Kind, out.What, out.Agent, out.Text = KindAgent, "lost", in.Agent, "its supervisor is gone"
		return true
	case orchestrator.InputPlan:
		if in.Plan == nil || j.planned && in.Plan.Diff == "" && in.Plan.Status == j.plan {
			return false
		}
		j.plan, j.planned = in.Plan.Status, true
		out.Kind, out.What, out.Who, out.Plan = KindPlan, string(in.Plan.Status), "", in.Plan
		return true
	case orchestrator.InputAsked:
		if in.Request == nil {
			return false
		}
		out.Kind, out.What, out.Who, out.ID, out.Request = KindRequest, "asked", Person, in.Request.ID, in.Request
		out.Text = requestText(*in.Request)
		if in.Request.Budget != nil {
			out.What, out.Agent = "budget", in.Request.Budget.Of.Agent
		}
		return true
	case orchestrator.InputBoard, orchestrator.InputAgent, orchestrator.InputTime:
	}
	return false
}

// result tells of an effect's end: where it matters, or where it went wrong.
func (j *journal) result(out *Event, in orchestrator.Input) bool {
	f, known := j.effects[in.Key]
	if !known {
		return false
	}
	delete(j.effects, in.Key)
	res := in.Result
	out.effect(f)
	out.Result = res
	out.What, out.Text = "ok", f.Text
	if !res.OK {
		out.What, out.Text = "failed", res.Error
	}
	switch out.Kind {
	case KindCheck:
		if res.OK {
			out.What = "passed"
		}
	case KindMerge:
		switch {
		case res.OK:
			out.What, out.Text = "merged", fmt.Sprintf("%.8s %s", res.Commit, f.Text)
		case len(res.Conflicts) > 0:
			out.What, out.Text = "conflict", strings.Join(res.Conflicts, ", ")
		}
	case KindOverlap:
		var list []string
		for _, o := range res.Overlaps {
			list = append(list, o.String())
		}
		if res.OK {
			out.What, out.Text = "seen", strings.Join(list, "; ")
		}
		return !res.OK || len(list) > 0
	case KindEffect:
		out.What, out.Text = string(f.Kind)+" failed", res.Error
		return !res.OK
	}
	return true
}

func requestText(r orchestrator.Request) string {
	if r.Budget == nil {
		return ""
	}
	var parts []string
	for _, raise := range r.Budget.Raises {
		value := orchestrator.FormatBudget(raise.Field, raise.To)
		if raise.By {
			value = "+" + value
		}
		parts = append(parts, raise.Field+" "+value)
	}
	return fmt.Sprintf("budget of %s: %s", r.Budget.Of, strings.Join(parts, ", "))
}

// boardLog reads the board's log as far as it is of this run: it is one for all
// runs on the same file.
func boardLog(from, until time.Time) func(line []byte) []Event {
	var seq int64
	return func(line []byte) []Event {
		seq++
		var r board.Record
		if json.Unmarshal(line, &r) != nil || r.Time.Before(from) || !until.IsZero() && r.Time.After(until) {
			return nil
		}
		var order []string
		tasks := map[string][]board.Change{}
		for _, c := range r.Changes {
			if _, ok := tasks[c.Task]; !ok {
				order = append(order, c.Task)
			}
			tasks[c.Task] = append(tasks[c.Task], c)
		}
		var out []Event
		for _, task := range order {
			e := Event{Time: r.Time, Seq: seq, Kind: KindBoard, What: tasks[task][0].What, Task: task, Who: r.Who, Changes: tasks[task]}
			if r.By == board.Agent {
				e.Agent = r.Who
			}
			if e.Who == "" {
				e.Who = Person
			}
			e.Text = changesText(tasks[task])
			out = append(out, e)
		}
		return out
	}
}

func changesText(list []board.Change) string {
	var parts []string
	for _, c := range list {
		switch c.What {
		case board.Added:
			parts = append(parts, "added: "+c.To)
		case board.Removed:
			parts = append(parts, "removed: "+c.From)
		case board.Marked:
			parts = append(parts, c.From+" → "+c.To)
		default:
			parts = append(parts, c.What+": "+c.To)
		}
	}
	return strings.Join(parts, "; ")
}

// byHand makes events of the checkpoints that are in no event log: those that
// people took, and what they put back.
func byHand(agent string, list []checkpoint.Checkpoint) []Event {
	var out []Event
	for _, c := range list { // newest first
		e := Event{Time: c.Time, Seq: int64(c.ID), Agent: agent, Turn: c.Turn, Who: Person, Saved: &c, next: int64(c.ID)}
		switch c.Cause {
		case checkpoint.CauseManual:
			e.Kind, e.What, e.Text = KindCheckpoint, string(c.Cause), fmt.Sprintf("#%d %.8s %s", c.ID, c.Commit, c.Note)
		case checkpoint.CauseRestored:
			e.Kind, e.What, e.Text = KindRollback, "restored", fmt.Sprintf("#%d is the files of %.8s, %s", c.ID, c.Restored, files(c.Files))
			if c.Step != "" {
				e.What = string(c.Step)
			}
		case checkpoint.CauseUndo:
			e.Kind, e.What, e.Text = KindCheckpoint, string(c.Cause), fmt.Sprintf("#%d %.8s, %s: before a rollback", c.ID, c.Commit, files(c.Files))
		case checkpoint.CauseStart, checkpoint.CauseTurn, checkpoint.CauseBetween:
			continue
		}
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}
