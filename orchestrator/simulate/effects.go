package simulate

import (
	"fmt"
	"slices"
	"time"

	"muntin/agent/pty"
	"muntin/orchestrator"
)

// effect plays an effect: its result comes after as long as the real one takes.
func (s *simulation) effect(e orchestrator.Effect) {
	wait := 20 * time.Millisecond
	res := orchestrator.Result{OK: true}
	switch e.Kind {
	case orchestrator.EffectPrepare:
		wait = 200 * time.Millisecond
	case orchestrator.EffectCheck:
		wait = s.Check
		if s.chance(s.Fail) {
			res = orchestrator.Result{Error: "exit status 1"}
		}
	case orchestrator.EffectMerge:
		wait = 300 * time.Millisecond
		if s.chance(s.Conflict) {
			res = orchestrator.Result{Conflicts: []string{"file"}}
		}
	case orchestrator.EffectCommit:
		res.Commit = "commit of " + e.Tree
	case orchestrator.EffectClaim, orchestrator.EffectMark:
		s.after(wait, func() { s.edit(e) })
		return
	case orchestrator.EffectSend:
		s.after(wait, func() {
			if res := s.agents[e.Agent].send(e); e.Msg != pty.KindAbort {
				s.result(e.Key, res)
			}
		})
		return
	case orchestrator.EffectRecall:
		s.agents[e.Agent].recall(e.Task)
	case orchestrator.EffectRestart:
		s.after(wait, func() {
			s.result(e.Key, res)
			s.agents[e.Agent].begin()
		})
		return
	case orchestrator.EffectFirst, orchestrator.EffectApprove, orchestrator.EffectOverlap, orchestrator.EffectRunCheck:
	}
	s.after(wait, func() { s.result(e.Key, res) })
}

func (s *simulation) result(key string, res orchestrator.Result) {
	s.input(orchestrator.Input{Kind: orchestrator.InputResult, Key: key, Result: &res})
}

// edit plays an edit of the board, as BoardReader does it.
func (s *simulation) edit(e orchestrator.Effect) {
	res := orchestrator.Result{OK: true}
	t := &s.tasks[s.index[e.Task]]
	switch {
	case e.Kind == orchestrator.EffectClaim && t.State != orchestrator.TaskOpen:
		res = orchestrator.Result{Error: fmt.Sprintf("^%s is %s by now", e.Task, t.State)}
	case e.Kind == orchestrator.EffectClaim:
		t.State, t.Claim = orchestrator.TaskActive, e.Agent
	case t.State == orchestrator.TaskActive || e.Held && t.State == orchestrator.TaskWaiting:
		t.State, t.Reason = e.State, e.Why
		if e.State == orchestrator.TaskOpen {
			t.Claim = ""
		}
	}
	tasks := s.board()
	s.input(orchestrator.Input{Kind: orchestrator.InputResult, Key: e.Key, Result: &res, Rev: s.rev, Tasks: tasks})
	if t.State == orchestrator.TaskWaiting && s.Person > 0 {
		s.after(s.Person, func() { s.person(e.Task) })
	}
}

// person plays a person who judges what waits for one.
func (s *simulation) person(task string) {
	c, ok := s.state.Courses[task]
	if !ok || c.Person == "" {
		return
	}
	for _, w := range s.state.WorkOn(task) {
		if w.Stage == orchestrator.StagePassed {
			s.tally.judged++
			v := &orchestrator.Verdict{Task: task, Winner: w.Agent, Approve: true}
			s.input(orchestrator.Input{Kind: orchestrator.InputAsked, Request: &orchestrator.Request{ID: fmt.Sprint("p", s.steps), Verdict: v}})
			return
		}
	}
}

// board numbers a reading of the board.
func (s *simulation) board() []orchestrator.Task {
	s.rev++
	for i := range s.tasks {
		t := &s.tasks[i]
		t.Ready = !t.Group && t.State == orchestrator.TaskOpen && !slices.ContainsFunc(t.After, func(id string) bool {
			at, ok := s.index[id]
			return !ok || s.tasks[at].State != orchestrator.TaskDone && s.tasks[at].State != orchestrator.TaskCancelled
		})
		if _, known := s.tally.ready[t.ID]; t.Ready && !known {
			s.tally.ready[t.ID] = s.now
		}
	}
	return slices.Clone(s.tasks)
}

func (s *simulation) readBoard() {
	tasks := s.board()
	s.input(orchestrator.Input{Kind: orchestrator.InputBoard, Rev: s.rev, Tasks: tasks})
}
