package orchestrator

import (
	"fmt"

	"muntin/agent/pty"
	"muntin/orchestrator/worktree"
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
	r.alive(&a, e)
	r.seen(&a, e)
	r.state.Agents[name] = a
	switch {
	case e.Kind == pty.EventReady:
		r.back(a)
	case e.Kind == pty.EventMessage && e.Message != nil:
		r.message(a, *e.Message)
	case e.Kind == pty.EventTurnEnd && e.TurnEnd != nil:
		r.turnEnd(a, *e.TurnEnd)
	case e.Kind == pty.EventExit:
		r.exited(a, e.Exit)
	}
}

// seen notes what an event says of the agent itself.
func (r *step) seen(a *Agent, e pty.Event) {
	set := func(state pty.AgentState) {
		a.State, a.Since, a.Doing = state, e.Time, ""
	}
	switch e.Kind {
	case pty.EventStart:
		a.started()
		set(pty.AgentStarting)
		a.Note = ""
	case pty.EventReady:
		set(pty.AgentIdle)
		a.Came = a.Came || a.Role != recipes.RoleAssistant
		if e.Ready != nil {
			a.Source = string(e.Ready.Source)
		}
		r.tell(Fact{Agent: a.Name, Good: true, Text: a.Name + " is ready"})
	case pty.EventTurnStart:
		set(pty.AgentWorking)
		r.began(*a)
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
		r.tell(Fact{Agent: a.Name, Bad: true, Text: a.Name + ": " + a.Note})
	case pty.EventWaiting:
		if e.Waiting != nil {
			r.asks(a, *e.Waiting)
		}
	case pty.EventLimit:
		if e.Limit != nil {
			r.limited(a, *e.Limit)
		}
	case pty.EventTurnEnd:
		set(pty.AgentIdle)
		if e.TurnEnd != nil && e.TurnEnd.Reason == pty.TurnExited {
			set(pty.AgentExited) // its exit event comes next
		}
	case pty.EventExit:
		set(pty.AgentExited)
	}
}

func (r *step) turnEnd(a Agent, end pty.TurnEndInfo) {
	if a.Role == recipes.RolePlanner && end.Reason == pty.TurnDone {
		r.planned(a)
	}
	paused := a.Pause.on()
	a.account(end)
	if end.Reason == pty.TurnDone && !paused {
		a.wentWell()
		a.Came = true
	}
	r.state.Agents[a.Name] = a
	w, ok := r.state.Works[a.Name]
	if ok && w.Over && w.Stage == StagePrompting && end.Task == w.Task {
		r.free(w)
		return
	}
	if !ok || end.Task != w.Task || (w.Stage != StageWorking && w.Stage != StagePrompting) {
		return
	}
	switch {
	case end.Reason == pty.TurnExited && !a.Restart.Gone && a.Restart.Policy != RestartNever:
		r.rest(w, pty.KindPrompt, r.goOnText(w, endedText))
	case paused && end.Reason != pty.TurnAborted:
		r.rest(w, pty.KindPrompt, r.goOnText(w, limitText))
	case w.Reads:
		r.readTurn(w, end)
	case end.Reason == pty.TurnAborted:
		r.mark(w, TaskWaiting, "the turn was aborted by a person")
	case end.Reason != pty.TurnDone:
		r.mark(w, TaskBlocked, "the agent's turn ended with an error: "+end.Error)
	case end.Checkpoint == nil && a.Isolated:
		r.mark(w, TaskBlocked, "there is no checkpoint of the turn to check and merge")
	default:
		if end.Checkpoint != nil {
			w.Tree, w.On = end.Checkpoint.Tree, worktree.Basis{Head: end.Checkpoint.Head, Merging: end.Checkpoint.Merging}
		}
		w.Said = end.Text
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
	if exit != nil && exit.Ended != "" {
		a.Note = "its supervisor was ended by " + exit.Ended
	}
	r.ended(a, exit != nil && exit.Code == 0 && exit.Signal == "" && exit.Ended == "")
}

// lost takes the end of an agent's supervisor that wrote none down. What the
// agent did last is not known.
func (r *step) lost(name string) {
	a, ok := r.state.Agents[name]
	if !ok || a.Restart.Gone || a.Restart.Key != "" || !a.Restart.At.IsZero() {
		return // its end is known
	}
	a.State, a.Since, a.Doing = pty.AgentUnknown, r.now, ""
	a.Note = "its supervisor is gone"
	r.ended(a, false)
}

// gone gives the task of an agent that is no more back to the board.
func (r *step) gone(a Agent) {
	a.Restart.Gone = true
	r.state.Agents[a.Name] = a
	r.tell(Fact{Agent: a.Name, Bad: true, Text: a.Name + ": " + a.Note})
	w, ok := r.state.Works[a.Name]
	if !ok {
		return
	}
	if w.Over {
		r.free(w)
		return
	}
	switch w.Stage {
	case StageWorking, StagePrompting, StagePreparing, StageResting:
		if w.Stage == StagePrompting || w.Filed {
			r.emit(Effect{Kind: EffectRecall, Agent: a.Name, Task: w.Task})
		}
		r.mark(w, TaskOpen, "")
	}
}
