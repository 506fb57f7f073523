package orchestrator

import (
	"fmt"

	"muntin/agent/pty"
	"muntin/recipes"
)

// agent takes a line of an agent's event log.
func (r *step) agent(name string, e pty.Event) {
	a, ok := r.state.Agents[name]
	if !ok || e.Seq <= a.Seq {
		return
	}
	a.Seq = e.Seq
	if e.Turn > 0 {
		a.Turn = e.Turn
	}
	set := func(state pty.AgentState) {
		a.State, a.Since, a.Doing = state, e.Time, ""
	}
	switch e.Kind {
	case pty.EventStart:
		set(pty.AgentStarting)
		a.Note = ""
	case pty.EventReady:
		set(pty.AgentIdle)
		if e.Ready != nil {
			a.Source = string(e.Ready.Source)
		}
		r.tell(Fact{Agent: name, Good: true, Text: name + " is ready"})
	case pty.EventTurnStart:
		set(pty.AgentWorking)
		r.started(a)
	case pty.EventTool:
		if e.Tool != nil {
			a.Doing = e.Tool.Name + " " + e.Tool.Summary
		}
	case pty.EventCheckpoint:
		changed := e.Checkpoint != nil && (a.Checkpoint == nil || a.Checkpoint.Tree != e.Checkpoint.Tree)
		a.Checkpoint = e.Checkpoint
		if changed && a.Isolated {
			r.look()
		}
	case pty.EventCheckpointFailed:
		a.Note = "checkpoint failed: " + e.Error
		r.tell(Fact{Agent: name, Bad: true, Text: name + ": " + a.Note})
	case pty.EventTurnEnd:
		set(pty.AgentIdle)
		r.state.Agents[name] = a
		if e.TurnEnd != nil {
			r.turnEnd(a, *e.TurnEnd)
		}
		return
	case pty.EventExit:
		set(pty.AgentExited)
		r.state.Agents[name] = a
		r.exited(a, e.Exit)
		return
	}
	r.state.Agents[name] = a
}

func (r *step) turnEnd(a Agent, end pty.TurnEndInfo) {
	if a.Role == recipes.RolePlanner && end.Reason == pty.TurnDone {
		r.planned(a)
	}
	if end.Usage != nil {
		a.Tokens += end.Usage.Input + end.Usage.Output + end.Usage.CacheRead + end.Usage.CacheWrite
		r.state.Agents[a.Name] = a
	}
	w, ok := r.state.Work[a.Task]
	if !ok || end.Task != w.Task || (w.Stage != StageWorking && w.Stage != StagePrompting) {
		return
	}
	switch {
	case end.Reason == pty.TurnAborted:
		r.mark(w, TaskWaiting, "the turn was aborted by a person")
	case end.Reason != pty.TurnDone:
		r.mark(w, TaskBlocked, "the agent's turn ended with an error: "+end.Error)
	case end.Checkpoint == nil && a.Isolated:
		r.mark(w, TaskBlocked, "there is no checkpoint of the turn to check and merge")
	default:
		if end.Checkpoint != nil {
			w.Tree = end.Checkpoint.Tree
		}
		r.check(w)
	}
}

// exited takes the end of an agent's process.
func (r *step) exited(a Agent, exit *pty.ExitInfo) {
	a.Note = "its process ended"
	if exit != nil {
		a.Note = fmt.Sprintf("its process ended with status %d", exit.Code)
		if exit.Signal != "" {
			a.Note = "its process was ended by " + exit.Signal
		}
	}
	r.gone(a)
}

// lost takes the end of an agent's supervisor that wrote none down. What the
// agent did last is not known.
func (r *step) lost(name string) {
	a, ok := r.state.Agents[name]
	if !ok || a.State == pty.AgentExited || a.State == pty.AgentUnknown {
		return
	}
	a.State, a.Since, a.Doing = pty.AgentUnknown, r.now, ""
	a.Note = "its supervisor is gone"
	r.gone(a)
}

// gone gives the task of an agent that is no more back to the board.
func (r *step) gone(a Agent) {
	r.state.Agents[a.Name] = a
	r.tell(Fact{Agent: a.Name, Bad: true, Text: a.Name + ": " + a.Note})
	w, ok := r.state.Work[a.Task]
	if ok && (w.Stage == StageWorking || w.Stage == StagePrompting || w.Stage == StagePreparing) {
		r.mark(w, TaskOpen, "")
	}
}
