package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muntin/agent/pty"
)

// Reduce makes the next state and what is to be done from a state and an
// input. It is pure: the same arguments give the same results, and s is left
// as it was.
func Reduce(s State, in Input) (State, []Effect) {
	r := &step{state: s.clone(), now: in.Time}
	switch in.Kind {
	case InputBoard:
		r.board(in.Rev, in.Tasks)
	case InputAgent:
		if in.Event != nil {
			r.agent(in.Agent, *in.Event)
		}
	case InputLost:
		r.lost(in.Agent)
	case InputPlan:
		if in.Plan != nil {
			r.plan(*in.Plan)
		}
	case InputTime:
		r.due(in.Heard)
	case InputAsked:
		if in.Request != nil {
			r.asked(*in.Request)
		}
	case InputBack:
		if in.Back != nil {
			r.wentBack(*in.Back)
		}
	case InputFleet:
		if in.Fleet != nil {
			r.fleet(*in.Fleet)
		}
	case InputResult:
		if in.Tasks != nil {
			r.board(in.Rev, in.Tasks)
		}
		if in.Result != nil {
			r.result(in.Key, *in.Result)
		}
	}
	r.orphans()
	r.firsts()
	r.proceed()
	r.courses()
	r.schedule()
	r.phase()
	r.notices(s)
	r.wake()
	return r.state, r.effects
}

// A step is one call of Reduce at work.
type step struct {
	state   State
	now     time.Time
	effects []Effect
}

// emit adds an effect and returns its key.
func (r *step) emit(e Effect) string {
	r.state.Effects++
	e.Key = strings.TrimSuffix(fmt.Sprintf("%d-%s-%s", r.state.Effects, e.Kind, e.Task), "-")
	r.effects = append(r.effects, e)
	return e.Key
}

func (r *step) tell(f Fact) {
	f.Time = r.now
	r.state.Facts = append(r.state.Facts, f)
	if n := len(r.state.Facts); n > maxFacts {
		r.state.Facts = r.state.Facts[n-maxFacts:]
	}
}

// move takes a task to its next stage, which waits for the effect of key.
func (r *step) move(w Work, stage Stage, key string) {
	w.Stage, w.Key, w.Since = stage, key, r.now
	r.state.Works[w.Agent] = w
}

// free lets go of a task: its agent can get another.
func (r *step) free(w Work) {
	delete(r.state.Works, w.Agent)
	if a, ok := r.state.Agents[w.Agent]; ok && a.Task == w.Task {
		a.Task = ""
		r.state.Agents[w.Agent] = a
	}
}

// board takes a newer reading of the board. What a person did to a task that
// an agent has, is told to the agent.
func (r *step) board(rev int64, tasks []Task) {
	if rev <= r.state.Rev {
		return
	}
	r.state.Rev, r.state.Tasks = rev, tasks
	if r.state.Settings.Flow.Loop != nil {
		r.state.Tasks = r.loops()
		return
	}
	for _, name := range r.state.Order {
		if w, ok := r.state.Works[name]; ok && r.leads(w) {
			r.compare(w)
		}
	}
}

// compare follows what the board says of a task that an agent has.
func (r *step) compare(w Work) {
	if w.Stage == StageClaiming || w.Stage == StageMarking || w.Held.Key != "" || r.state.Settings.Flow.Loop != nil {
		return
	}
	task, found := r.state.Task(w.Task)
	switch {
	case !found:
		r.takeAway(w, "was removed from the board")
	case task.State == w.Held.state():
		w.Ticked = false
		r.state.Works[w.Agent] = w
		for _, lane := range r.mates(w) {
			r.tellChange(lane, task)
		}
	case task.State == TaskDone && task.By != "":
		r.tickedByAgent(w, task)
	case task.State == TaskDone:
		r.takeAway(w, "was ticked on the board")
	default:
		r.takeAway(w, "was set to "+string(task.State)+" on the board")
	}
}

// tickedByAgent takes back what an agent may not decide: whether a task is done is
// for its check, or a person, to say.
func (r *step) tickedByAgent(w Work, task Task) {
	if w.Ticked {
		return
	}
	w.Ticked = true
	r.state.Works[w.Agent] = w
	r.emit(Effect{Kind: EffectMark, Agent: r.claimant(w), Task: w.Task, State: TaskActive})
	if slices.Contains(agentsOf(r.lanesOf(w.Task)), task.By) {
		r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("%s says ^%s is done: it is checked when the turn ends", task.By, w.Task)})
		return
	}
	r.tell(Fact{Agent: task.By, Bad: true, Text: fmt.Sprintf("%s ticked ^%s, which is %s's: put back", task.By, w.Task, w.Agent)})
	if _, ours := r.state.Agents[task.By]; ours {
		r.emit(Effect{
			Kind: EffectSend, Agent: task.By, Task: w.Task, Msg: pty.KindSteer,
			Text: fmt.Sprintf("You ticked task ^%s, which %s works on. It was put back: leave the tasks of others alone.", w.Task, w.Agent),
		})
	}
}

// takeAway has all agents stop working on a task.
func (r *step) takeAway(w Work, why string) {
	delete(r.state.Courses, w.Task)
	for _, each := range r.state.WorkOn(w.Task) {
		r.tell(Fact{Agent: each.Agent, Text: fmt.Sprintf("^%s %s: %s stops working on it", w.Task, why, each.Agent)})
		r.drop(each, why)
	}
}

func (r *step) tellChange(w Work, task Task) {
	text := task.Text + "\n" + task.Body
	if text == w.Text {
		return
	}
	if w.Stage == StageWorking && !w.Reads {
		r.emit(Effect{Kind: EffectSend, Agent: w.Agent, Task: w.Task, Msg: pty.KindSteer, Text: changeText(w.Text, text, w.Task)})
		r.tell(Fact{Agent: w.Agent, Text: fmt.Sprintf("^%s was changed on the board: told %s", w.Task, w.Agent)})
	}
	w.Text = text
	r.state.Works[w.Agent] = w
}

// phase says where the run stands after a step, and starts the run's own
// check when the last task is done.
func (r *step) phase() {
	s := &r.state
	open, held := s.Count(TaskOpen), s.Count(TaskBlocked)+s.Count(TaskWaiting)
	switch {
	case s.Rev == 0:
		s.Phase = PhaseStarting
	case s.RunCheck.Key != "" || r.moving():
		s.Phase = PhaseRunning
	case s.Approve != "" || r.planning():
		s.Phase = PhaseRunning
	case !r.approved():
		s.Phase = PhaseWaiting
	case open > 0 && r.anyReady():
		s.Phase = PhaseRunning
	case open > 0 || held > 0 || len(s.Works) > 0 || len(s.Tasks) == 0:
		s.Phase = PhaseWaiting
	case s.Settings.RunCheck != "" && !s.RunCheck.Done:
		s.RunCheck.Key = r.emit(Effect{Kind: EffectRunCheck, Text: s.Settings.RunCheck})
		s.Phase = PhaseRunning
	case s.RunCheck.Done && !s.RunCheck.Passed:
		s.Phase = PhaseWaiting
	default:
		s.Phase = PhaseDone
	}
}

// moving tells whether a task is at work that does not wait for a person.
func (r *step) moving() bool {
	for _, w := range r.state.Works {
		if !r.stuck(w) {
			return true
		}
	}
	for _, t := range r.state.Tasks {
		if t.Group || t.State != TaskActive {
			continue
		}
		c, between := r.state.Courses[t.ID]
		if _, ours := r.state.workOn(t.ID); !ours && (!between || r.someone(t, c.Step)) {
			return true
		}
	}
	return false
}

// stuck tells whether only a person can have a task go on.
func (r *step) stuck(w Work) bool {
	return w.Held.Why != "" || r.state.Agents[w.Agent].Asks != nil && w.Stage == StageWorking
}

// anyReady tells whether a task is ready for which an agent can come some time,
// without a person's help.
func (r *step) anyReady() bool {
	return slices.ContainsFunc(r.state.Tasks, func(t Task) bool { return t.Ready && r.someone(t, 0) })
}

// someone tells whether a step of a task can be done some time, without a person's
// help: by as many agents as it takes.
func (r *step) someone(t Task, step int) bool {
	come, lanes := 0, r.state.Settings.Flow.lanes()
	all := 0
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		if !r.able(a) || !r.suits(t, a, step) {
			continue
		}
		all++
		if w, busy := r.state.Works[name]; !busy || !r.stuck(w) {
			come++
		}
		if come == lanes {
			return true
		}
	}
	return come > 0 && come == all
}
