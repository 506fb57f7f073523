package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"muntin/agent/pty"
	"muntin/recipes"
)

// passed goes on with work whose check has passed: to the merge, or first to
// those that have to judge it.
func (r *step) passed(w Work) {
	if r.state.Settings.Flow.direct() {
		r.merge(w)
		return
	}
	task, _ := r.state.Task(w.Task)
	r.move(w, StageKeeping, r.emit(Effect{
		Kind: EffectCommit, Task: w.Task, Agent: w.Agent, Tree: w.Tree, Basis: w.On, Text: firstLine(task.Text) + " (^" + w.Task + ")",
	}))
}

// kept takes the commit of checked work.
func (r *step) kept(w Work, res Result) {
	if !res.OK {
		r.mark(w, TaskBlocked, "the work could not be committed: "+res.Error)
		return
	}
	w.Commit = res.Commit
	r.move(w, StagePassed, "")
}

// courses settles what has come so far that it can be: results are chosen, read,
// handed to the next step, or given to a person to judge.
func (r *step) courses() {
	for _, t := range r.state.Tasks {
		c, ok := r.state.Courses[t.ID]
		if !ok {
			continue
		}
		if lanes := r.lanesOf(t.ID); len(lanes) > 0 {
			r.settle(t, c, lanes)
		}
		if c, ok = r.state.Courses[t.ID]; ok && len(r.lanesOf(t.ID)) == 0 {
			r.between(t, c)
		}
	}
}

// settle decides about a task at work, as far as it can be decided now.
func (r *step) settle(t Task, c Course, lanes []Work) {
	flow := r.state.Settings.Flow
	passed := r.passedOf(t.ID)
	if len(passed) == 0 {
		return
	}
	race := flow.Lanes > 1
	switch {
	case race && flow.Choose == recipes.ChooseChecks:
		r.choose(slices.MinFunc(passed, func(a, b Work) int { return a.Since.Compare(b.Since) }), "its check passed first")
	case len(passed) < len(lanes): // the others may still get there
	case race && len(passed) == 1:
		r.choose(passed[0], "no other came through")
	case !race && flow.Reader == "":
		r.choose(passed[0], "")
	case c.Person != "":
		r.call(t.ID, c.Person)
	case race && flow.Choose == recipes.ChoosePerson:
		r.needPerson(t.ID, "choose whose work is taken: `muntin choose "+t.ID+" "+strings.Join(agentsOf(passed), "|")+"`")
	default:
		r.read(t, passed)
	}
}

// passedOf are the lanes of a task whose work waits to be judged.
func (r *step) passedOf(task string) []Work {
	return slices.DeleteFunc(r.lanesOf(task), func(w Work) bool { return w.Stage != StagePassed })
}

func agentsOf(list []Work) []string {
	var names []string
	for _, w := range list {
		names = append(names, w.Agent)
	}
	return names
}

// needPerson has a person judge a task.
func (r *step) needPerson(task, why string) {
	c := r.course(task)
	c.Person = why
	r.setCourse(task, c)
	r.call(task, why)
}

// call shows on the board what a person is needed for, or with "" that none is.
func (r *step) call(task, why string) {
	for _, w := range r.lanesOf(task) {
		r.hold(w, why)
	}
}

// choose takes an agent's work: it is merged, or goes to the next step. Others
// leave the task; what they made stays in their checkpoints.
func (r *step) choose(w Work, why string) {
	c := r.course(w.Task)
	if c.Chosen != w.Agent && r.state.Settings.Flow.Lanes > 1 {
		r.tell(Fact{Agent: w.Agent, Good: true, Text: fmt.Sprintf("%s wins ^%s: %s", w.Agent, w.Task, why)})
	}
	c.Chosen, c.Person, c.Asked = w.Agent, "", 0
	r.setCourse(w.Task, c)
	r.call(w.Task, "")
	for _, other := range r.state.WorkOn(w.Task) {
		if other.Agent == w.Agent {
			continue
		}
		if !other.Reads {
			r.tell(Fact{Agent: other.Agent, Text: fmt.Sprintf("what %s made of ^%s is kept in its checkpoints: `muntin checkpoint ls %s`", other.Agent, w.Task, other.Agent)})
		}
		r.drop(other, "was done by "+w.Agent)
	}
	w = r.state.Works[w.Agent]
	if !r.lastStep(w) {
		r.handOver(w, c)
		return
	}
	r.merge(w)
}

// lastStep tells whether nothing follows this step but the merge.
func (r *step) lastStep(w Work) bool {
	return r.course(w.Task).Step+1 >= len(r.state.Settings.Flow.Steps)
}

// handOver gives what a step made to the next one.
func (r *step) handOver(w Work, c Course) {
	r.tell(Fact{Agent: w.Agent, Good: true, Text: fmt.Sprintf("%s hands ^%s on: step %d of %d is done", w.Agent, w.Task, c.Step+1, len(r.state.Settings.Flow.Steps))})
	r.setCourse(w.Task, Course{Step: c.Step + 1, Commit: w.Commit, From: w.Agent, Said: w.Said})
	r.free(w)
}

// between looks after a task that waits for its next step.
func (r *step) between(t Task, c Course) {
	if t.State != TaskActive { // a person has settled it, or it could not be claimed
		delete(r.state.Courses, t.ID)
		return
	}
	flow := r.state.Settings.Flow
	for _, name := range r.state.Order {
		if a := r.state.Agents[name]; flow.takes(a, c.Step) && !a.Restart.Gone {
			return
		}
	}
	if _, under := r.state.Orphans[t.ID]; under {
		return
	}
	why := fmt.Sprintf("no agent is left for step %d of %d", c.Step+1, len(flow.Steps))
	r.tell(Fact{Bad: true, Text: fmt.Sprintf("^%s needs a person: %s", t.ID, why)})
	r.state.Orphans[t.ID] = r.emit(Effect{Kind: EffectMark, Agent: r.state.Settings.Run, Task: t.ID, State: TaskBlocked, Why: why})
	delete(r.state.Courses, t.ID)
}

// read gives finished work to a reader, if one is idle. When none is left, a
// person reads.
func (r *step) read(t Task, passed []Work) {
	if _, reading := r.readerOf(t.ID); reading {
		return
	}
	role, left := r.state.Settings.Flow.Reader, false
	var best Agent
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		_, busy := r.state.Works[name]
		if a.Role != role || a.Restart.Gone || r.over(a) != "" || slices.Contains(agentsOf(passed), name) {
			continue
		}
		left = true
		if !busy && r.mayPrompt(a) && (best.Name == "" || a.Given < best.Given) {
			best = a
		}
	}
	switch {
	case !left:
		r.needPerson(t.ID, fmt.Sprintf("no %s is left to judge it: %s", role, r.howToJudge(t.ID, passed)))
	case best.Name != "":
		best.Task, best.Given = t.ID, r.state.Effects+1
		r.state.Agents[best.Name] = best
		e := Effect{Kind: EffectPrepare, Task: t.ID, Agent: best.Name, Fresh: true}
		for _, w := range passed {
			e.Sides = append(e.Sides, Candidate{Agent: w.Agent, Commit: w.Commit})
		}
		if len(passed) == 1 {
			e.Commit = passed[0].Commit
		}
		r.tell(Fact{Agent: best.Name, Text: fmt.Sprintf("%s reads ^%s of %s", best.Name, t.ID, strings.Join(agentsOf(passed), ", "))})
		r.move(Work{Task: t.ID, Agent: best.Name, Reads: true, Text: t.Text + "\n" + t.Body}, StagePreparing, r.emit(e))
	}
}

func (r *step) howToJudge(task string, passed []Work) string {
	if r.state.Settings.Flow.Lanes > 1 {
		return "`muntin choose " + task + " " + strings.Join(agentsOf(passed), "|") + "`"
	}
	return "`muntin review approve|request " + task + "`"
}

// heard takes the end of a reader's turn: its verdict, as it gave it with a
// command, or in its last words.
func (r *step) heard(w Work, said string) {
	v := w.Verdict
	if v == nil {
		if parsed, ok := ParseVerdict(said); ok {
			parsed.By = w.Agent
			v = &parsed
		}
	}
	c := r.course(w.Task)
	if v != nil && r.judged(w.Task, *v) {
		if still, ok := r.state.Works[w.Agent]; ok && still.Task == w.Task && still.Reads && !still.Over {
			r.free(still)
		}
		return
	}
	w.Verdict = nil
	r.state.Works[w.Agent] = w
	if c.Asked++; c.Asked > 1 {
		r.free(w)
		r.setCourse(w.Task, c)
		r.needPerson(w.Task, fmt.Sprintf("the answer of %s is not clear: %s", w.Agent, r.howToJudge(w.Task, r.lanesOf(w.Task))))
		return
	}
	r.setCourse(w.Task, c)
	r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("the answer of %s about ^%s is not clear: asked again", w.Agent, w.Task)})
	r.rest(w, pty.KindFollowUp, unclearText(w.Task, agentsOf(r.lanesOf(w.Task))))
}

// judged carries out a verdict and reports whether it fits the task.
func (r *step) judged(task string, v Verdict) bool {
	passed := r.passedOf(task)
	race := r.state.Settings.Flow.Lanes > 1
	if len(passed) == 0 {
		return false
	}
	switch {
	case race:
		i := slices.IndexFunc(passed, func(w Work) bool { return w.Agent == v.Winner })
		if i < 0 {
			return false
		}
		r.choose(passed[i], "chosen by "+judgeName(v))
	case v.Approve:
		r.tell(Fact{Agent: v.By, Good: true, Text: fmt.Sprintf("%s approves ^%s", judgeName(v), task)})
		r.choose(passed[0], "")
	case v.Changes:
		r.sendBack(passed[0], v)
	default:
		return false
	}
	return true
}

func judgeName(v Verdict) string {
	if v.By == "" {
		return "a person"
	}
	return v.By
}

// sendBack returns work to its agent with what a reader found, as often as the
// recipe allows; a person may send it back once more.
func (r *step) sendBack(w Work, v Verdict) {
	c := r.course(w.Task)
	r.tell(Fact{Agent: v.By, Text: fmt.Sprintf("%s wants changes of ^%s: %s", judgeName(v), w.Task, firstLine(v.Text))})
	if v.By != "" {
		if c.Round++; c.Round > r.state.Settings.Flow.Rounds {
			r.setCourse(w.Task, c)
			r.needPerson(w.Task, fmt.Sprintf("sent back %d times, and %s still wants changes: %s", c.Round-1, v.By, firstLine(v.Text)))
			return
		}
	}
	c.Asked, c.Person = 0, ""
	r.setCourse(w.Task, c)
	r.call(w.Task, "")
	w = r.state.Works[w.Agent]
	if r.state.Agents[w.Agent].Restart.Gone {
		r.mark(w, TaskOpen, "")
		return
	}
	r.rest(w, pty.KindFollowUp, findingsText(w.Task, v))
}
