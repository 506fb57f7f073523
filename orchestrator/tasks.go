package orchestrator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muntin/agent/pty"
	"muntin/recipes"
)

// result takes the end of an effect and does what comes next for its task.
func (r *step) result(key string, res Result) {
	if res.Notice != "" {
		r.tell(Fact{Bad: true, Text: res.Notice})
		return
	}
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
	if key == "" || r.restarted(key, res) || r.firstSent(key, res) || r.wrote(key, res) {
		return
	}
	for _, name := range r.state.atWork() {
		if w, ok := r.state.Works[name]; ok && w.Key == key { // a race's contestants wait for one claim
			r.reached(w, res)
		}
	}
}

// reached takes the end of the effect that work waits for.
func (r *step) reached(w Work, res Result) {
	if w.Over {
		r.left(w, res)
		return
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
	case StageKeeping:
		r.kept(w, res)
	case StageMerging:
		r.merged(w, res)
	case StageMarking:
		r.marked(w, res)
	case StageResting, StageWorking, StagePassed:
	}
}

func (r *step) claimed(w Work, res Result) {
	if !res.OK {
		r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("%s did not get ^%s: %s", w.Agent, w.Task, res.Error)})
		delete(r.state.Courses, w.Task)
		r.free(w)
		return
	}
	r.prepare(w)
}

// prepare brings the agent's worktree to what it begins with: what is merged,
// on top of what it has, or, where several have a hand in tasks, just that or
// what the step before made.
func (r *step) prepare(w Work) {
	e := Effect{Kind: EffectPrepare, Task: w.Task, Agent: w.Agent}
	if r.state.Settings.Flow.several() {
		e.Fresh, e.Commit = true, r.course(w.Task).Commit
	}
	r.move(w, StagePreparing, r.emit(e))
}

func (r *step) prepared(w Work, res Result) {
	if !res.OK {
		r.mark(w, TaskBlocked, "the worktree of "+w.Agent+" could not be brought up to date: "+res.Error)
		return
	}
	if w.Reads {
		task, _ := r.state.Task(w.Task)
		w.Ask = readText(task, r.passedOf(w.Task), res.Output)
	}
	r.rest(w, pty.KindPrompt, r.prompt(w))
}

// prompt is what an agent is told to do.
func (r *step) prompt(w Work) string {
	task, _ := r.state.Task(w.Task)
	flow := r.state.Settings.Flow
	switch {
	case w.Reads:
		return w.Ask
	case flow.Loop != nil:
		return loopText(*flow.Loop, w.Attempt+1)
	}
	text := taskText(task, r.checkOf(task), r.state.Agents[w.Agent].Shared)
	if len(flow.Steps) > 1 {
		text += stepText(r.course(w.Task), len(flow.Steps))
	}
	return text
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
	if command == "" || !r.lastStep(w) {
		r.passed(w)
		return
	}
	r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("%s says ^%s is done: checking", w.Agent, w.Task)})
	r.move(w, StageChecking, r.emit(Effect{Kind: EffectCheck, Task: w.Task, Agent: w.Agent, Text: command}))
}

func (r *step) checked(w Work, res Result) {
	if res.OK {
		r.tell(Fact{Agent: w.Agent, Good: true, Text: fmt.Sprintf("the check of ^%s passed", w.Task)})
		r.passed(w)
		return
	}
	task, _ := r.state.Task(w.Task)
	why := firstLine(res.Error)
	r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("the check of ^%s failed: %s", w.Task, why)})
	if loop := r.state.Settings.Flow.Loop; loop != nil {
		r.again(w, "the condition does not hold: "+why, roundText(*loop, w.Attempt+2, res))
		return
	}
	r.again(w, "the check failed: "+why, checkText(w.Task, r.checkOf(task), res))
}

func (r *step) merge(w Work) {
	if !r.state.Agents[w.Agent].Isolated {
		r.mark(w, TaskDone, "")
		return
	}
	task, _ := r.state.Task(w.Task)
	r.move(w, StageMerging, r.emit(Effect{
		Kind: EffectMerge, Task: w.Task, Agent: w.Agent, Tree: w.Tree, Basis: w.On, Base: w.Start, Paths: task.Files(),
		Text: firstLine(task.Text) + " (^" + w.Task + ")",
	}))
}

func (r *step) merged(w Work, res Result) {
	switch {
	case res.OK:
		r.tell(Fact{Agent: w.Agent, Good: true, Text: fmt.Sprintf("^%s is merged to %s", w.Task, r.state.Settings.Branch)})
		r.notice(Notice{Event: recipes.EventMerged, Agent: w.Agent, Task: w.Task, Text: fmt.Sprintf("^%s is merged to %s", w.Task, r.state.Settings.Branch)})
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
	most := r.state.Settings.Attempts
	if loop := r.state.Settings.Flow.Loop; loop != nil {
		most = loop.Max
	}
	if w.Attempt >= most {
		r.mark(w, TaskBlocked, fmt.Sprintf("%s (attempt %d of %d)", why, w.Attempt, most))
		return
	}
	if a := r.state.Agents[w.Agent]; a.Restart.Gone || a.Leaves == LeavesForGood {
		r.mark(w, TaskOpen, "")
		return
	}
	r.rest(w, pty.KindFollowUp, text)
}

// mark ends the work on a task, unless only one of several gives up, and writes
// on the board what became of it.
func (r *step) mark(w Work, state TaskState, why string) {
	if state != TaskDone && r.lose(w, state, why) {
		return
	}
	if lost := r.course(w.Task).Lost; len(lost) > 0 && state != TaskDone {
		state, why = TaskBlocked, strings.Join(append(slices.Clip(lost), w.Agent+": "+cmp.Or(why, "it has ended")), "; ")
	}
	delete(r.state.Courses, w.Task)
	for _, other := range r.state.WorkOn(w.Task) {
		if other.Agent != w.Agent {
			r.drop(other, "has ended")
		}
	}
	switch state {
	case TaskBlocked, TaskWaiting:
		r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("^%s needs a person: %s", w.Task, why)})
	case TaskOpen:
		r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("^%s goes back to the board", w.Task)})
	}
	if r.state.Settings.Flow.Loop != nil {
		r.setLoop(w.Task, state, why)
		r.free(w)
		return
	}
	w.Filed, w.Next = false, Next{}
	r.move(w, StageMarking, r.emit(Effect{Kind: EffectMark, Task: w.Task, Agent: r.claimant(w), State: state, Why: why, Held: w.Held.any()}))
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
