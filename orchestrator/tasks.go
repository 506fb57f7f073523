package orchestrator

import (
	"fmt"
	"strings"

	"muntin/agent/pty"
)

// result takes the end of an effect and does what comes next for its task.
func (r *step) result(key string, res Result) {
	if key == r.state.RunCheck.Key && key != "" {
		r.runChecked(res)
		return
	}
	if key == r.state.Radar.Key && key != "" {
		r.looked(res)
		return
	}
	if key == r.state.Approve && key != "" {
		r.approvedBy(res)
		return
	}
	if key == "" || r.restarted(key, res) || r.wrote(key, res) {
		return
	}
	for _, w := range r.state.Work {
		if w.Key != key {
			continue
		}
		switch w.Stage {
		case StageClaiming:
			r.claimed(w, res)
		case StagePreparing:
			r.prepared(w, res)
		case StagePrompting:
			r.prompted(w, res)
		case StageChecking:
			r.checked(w, res)
		case StageMerging:
			r.merged(w, res)
		case StageMarking:
			r.marked(w, res)
		}
		return
	}
}

func (r *step) claimed(w Work, res Result) {
	if !res.OK {
		r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("%s did not get ^%s: %s", w.Agent, w.Task, res.Error)})
		r.free(w)
		return
	}
	r.move(w, StagePreparing, r.emit(Effect{Kind: EffectPrepare, Task: w.Task, Agent: w.Agent}))
}

func (r *step) prepared(w Work, res Result) {
	if !res.OK {
		r.mark(w, TaskBlocked, "the worktree of "+w.Agent+" could not be brought up to date: "+res.Error)
		return
	}
	task, _ := r.state.Task(w.Task)
	r.rest(w, pty.KindPrompt, taskText(task, r.checkOf(task), r.state.Agents[w.Agent].Shared))
}

// prompted follows a message that was sent for the task. The turn may have
// ended before this is heard; then the stage has moved on already.
func (r *step) prompted(w Work, res Result) {
	if !res.OK && res.Gone {
		r.missed(w, res)
		return
	}
	if !res.OK {
		r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("%s did not take the prompt for ^%s: %s", w.Agent, w.Task, res.Error)})
		r.mark(w, TaskBlocked, "the prompt was not accepted: "+res.Error)
		return
	}
	r.move(w, StageWorking, "")
	r.warn(w.Agent)
}

func (r *step) check(w Work) {
	task, _ := r.state.Task(w.Task)
	command := r.checkOf(task)
	if command == "" {
		r.merge(w)
		return
	}
	r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("%s says ^%s is done: checking", w.Agent, w.Task)})
	r.move(w, StageChecking, r.emit(Effect{Kind: EffectCheck, Task: w.Task, Agent: w.Agent, Text: command}))
}

func (r *step) checked(w Work, res Result) {
	if res.OK {
		r.tell(Fact{Agent: w.Agent, Good: true, Text: fmt.Sprintf("the check of ^%s passed", w.Task)})
		r.merge(w)
		return
	}
	task, _ := r.state.Task(w.Task)
	why := firstLine(res.Error)
	r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("the check of ^%s failed: %s", w.Task, why)})
	r.again(w, "the check failed: "+why, checkText(w.Task, r.checkOf(task), res))
}

func (r *step) merge(w Work) {
	if !r.state.Agents[w.Agent].Isolated {
		r.mark(w, TaskDone, "")
		return
	}
	task, _ := r.state.Task(w.Task)
	r.move(w, StageMerging, r.emit(Effect{
		Kind: EffectMerge, Task: w.Task, Agent: w.Agent, Tree: w.Tree, On: w.On, Base: w.Start, Paths: task.Files(),
		Text: firstLine(task.Text) + " (^" + w.Task + ")",
	}))
}

func (r *step) merged(w Work, res Result) {
	switch {
	case res.OK:
		r.tell(Fact{Agent: w.Agent, Good: true, Text: fmt.Sprintf("^%s is merged to %s", w.Task, r.state.Settings.Branch)})
		r.landed(w, res)
		r.look()
		r.mark(w, TaskDone, "")
	case len(res.Conflicts) > 0:
		r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("^%s conflicts in %s", w.Task, strings.Join(res.Conflicts, ", "))})
		r.informed(w.Agent, res.Conflicts)
		r.again(w, "the merge conflicts in "+strings.Join(res.Conflicts, ", "), conflictText(w.Task, r.state.Settings.Branch, res))
	default:
		r.mark(w, TaskBlocked, "the merge could not be made: "+res.Error)
	}
}

// again sends work back to its agent, or blocks the task when it has been
// sent back often enough.
func (r *step) again(w Work, why, text string) {
	w.Attempt++
	if w.Attempt >= r.state.Settings.Attempts {
		r.mark(w, TaskBlocked, fmt.Sprintf("%s (attempt %d of %d)", why, w.Attempt, r.state.Settings.Attempts))
		return
	}
	if r.state.Agents[w.Agent].Restart.Gone {
		r.mark(w, TaskOpen, "")
		return
	}
	r.rest(w, pty.KindFollowUp, text)
}

func (r *step) mark(w Work, state TaskState, why string) {
	w.Filed, w.Next = false, Next{}
	r.move(w, StageMarking, r.emit(Effect{Kind: EffectMark, Task: w.Task, Agent: w.Agent, State: state, Why: why, Held: w.Held.any()}))
	switch state {
	case TaskBlocked, TaskWaiting:
		r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("^%s needs a person: %s", w.Task, why)})
	case TaskOpen:
		r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("^%s goes back to the board", w.Task)})
	}
}

func (r *step) marked(w Work, res Result) {
	if !res.OK {
		r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("^%s could not be written on the board: %s", w.Task, res.Error)})
	}
	r.free(w)
}

func (r *step) runChecked(res Result) {
	r.state.RunCheck = RunCheck{Done: true, Passed: res.OK, Output: res.Output, Commit: res.Commit}
	if res.OK {
		r.tell(Fact{Good: true, Text: "the run's check passed on " + r.state.Settings.Branch})
		return
	}
	r.tell(Fact{Bad: true, Text: "the run's check failed on " + r.state.Settings.Branch + ": " + firstLine(res.Error)})
}

func (r *step) checkOf(t Task) string {
	if t.Check != "" {
		return t.Check
	}
	return r.state.Settings.Check
}
