package orchestrator

import (
	"slices"

	"muntin/agent/pty"
	"muntin/recipes"
)

// A Flow says through whose hands a task goes before it is merged. All modes are
// settings of it; the zero Flow is that of workers: one agent, then the merge.
type Flow struct {
	Steps   [][]string // the agents of each step, in the steps' order; none: one step, of all workers
	Lanes   int        // how many agents do a step at once, each for itself; 0 is 1
	Choose  string     // with several lanes: who chooses, one of the recipes.Choose…
	Reader  string     // the role of agents that read what passed its check, and judge it
	Rounds  int        // how often readers may send it back; more needs a person
	Loop    *Looping   // the agents' work is this, and not on the board
	Reserve bool       // tasks whose claimed paths meet are not at work at once
}

// A Looping is work that is given again until its check passes.
type Looping struct {
	Prompt string
	Until  string
	Max    int // rounds
}

// flowOf is the flow of a recipe's mode; agents are the resolved ones.
func flowOf(r *recipes.Recipe) Flow {
	f := Flow{Reserve: r.Reserve}
	switch r.Mode {
	case recipes.ModeRace:
		f.Lanes, f.Choose = r.Race.Agents, r.Race.Choose
		if f.Choose == recipes.ChooseJudge {
			f.Reader = r.Race.Judge
		}
	case recipes.ModeReview:
		f.Reader, f.Rounds = r.Review.Role, r.Review.Rounds
	case recipes.ModeLoop:
		f.Loop = &Looping{Prompt: r.Loop.Prompt, Until: r.Loop.Until, Max: r.Loop.Max}
	case recipes.ModePipeline:
		f.Steps = stepsOf(r.Agents, r.Board.Approve != recipes.ApproveNone)
	case recipes.ModeWorkers:
	}
	return f
}

// stepsOf sorts agents by how many stand before them: those without depends_on
// are the first step, those that depend on them the second, and so on. Assistants
// take no part, nor do planners that plan the run.
func stepsOf(agents []recipes.Agent, planned bool) [][]string {
	by := map[string]recipes.Agent{}
	for _, a := range agents {
		if a.Role != recipes.RoleAssistant && (a.Role != recipes.RolePlanner || !planned) {
			by[a.Name] = a
		}
	}
	depths := map[string]int{}
	var depth func(name string) int
	depth = func(name string) int {
		if d, known := depths[name]; known {
			return d
		}
		depths[name] = 0 // recipes have no circles; without this one would not end
		d := 0
		for _, before := range by[name].DependsOn {
			if _, in := by[before]; in {
				d = max(d, depth(before)+1)
			}
		}
		depths[name] = d
		return d
	}
	var steps [][]string
	for _, a := range agents {
		if _, in := by[a.Name]; !in {
			continue
		}
		d := depth(a.Name)
		for len(steps) <= d {
			steps = append(steps, nil)
		}
		steps[d] = append(steps[d], a.Name)
	}
	return steps
}

// several tells whether more than one agent may have a hand in a task: then the
// board shows it as the run's, not as an agent's.
func (f Flow) several() bool { return f.Lanes > 1 || len(f.Steps) > 1 }

// direct tells whether what passed its check is merged at once.
func (f Flow) direct() bool { return !f.several() && f.Reader == "" }

// lanes is how many agents do a step.
func (f Flow) lanes() int { return max(f.Lanes, 1) }

// takes tells whether an agent does a step of tasks that name nobody.
func (f Flow) takes(a Agent, step int) bool {
	if len(f.Steps) > 0 {
		return step < len(f.Steps) && slices.Contains(f.Steps[step], a.Name)
	}
	return a.Role == RoleWorker
}

// hands tells whether an agent does a step of any.
func (f Flow) hands(a Agent) bool {
	for step := range max(len(f.Steps), 1) {
		if f.takes(a, step) {
			return true
		}
	}
	return false
}

// A Course is where a task stands on the way through several hands.
type Course struct {
	Step   int      // of Flow.Steps
	Commit string   // what the step before made; empty: it starts from what is merged
	From   string   // by whom
	Said   string   // its last words
	Round  int      // how often readers sent it back
	Asked  int      // answers in a row that were not clear
	Lost   []string // lanes that came to nothing, and why
	Person string   // why a person has to judge; empty: none has to
	Chosen string   // the agent whose work is taken
}

// course is a task's, or its beginning.
func (r *step) course(task string) Course { return r.state.Courses[task] }

func (r *step) setCourse(task string, c Course) { r.state.Courses[task] = c }

// claimant is who has a task on the board.
func (r *step) claimant(w Work) string {
	if r.state.Settings.Flow.several() {
		return r.state.Settings.Run
	}
	return w.Agent
}

// lanesOf are those at work on a task itself: neither its readers nor those that
// are leaving it.
func (r *step) lanesOf(task string) []Work {
	return slices.DeleteFunc(r.state.WorkOn(task), func(w Work) bool { return w.Reads })
}

// mates are the lanes of work's task, in a flow with one hand without a look at
// all the others.
func (r *step) mates(w Work) []Work {
	if r.state.Settings.Flow.direct() {
		return []Work{w}
	}
	return r.lanesOf(w.Task)
}

// readerOf is who reads a task's work now.
func (r *step) readerOf(task string) (Work, bool) {
	list := slices.DeleteFunc(r.state.WorkOn(task), func(w Work) bool { return !w.Reads })
	if len(list) == 0 {
		return Work{}, false
	}
	return list[0], true
}

// leads tells whether work is the one by which its task is compared with the board.
func (r *step) leads(w Work) bool {
	list := r.mates(w)
	return len(list) > 0 && list[0].Agent == w.Agent
}

// drop has an agent leave a task. What is under way for it comes to its end
// first, so that nothing else begins in its worktree meanwhile.
func (r *step) drop(w Work, why string) {
	switch {
	case w.Filed:
		r.emit(Effect{Kind: EffectRecall, Agent: w.Agent, Task: w.Task})
	case w.Stage == StageWorking:
		r.abort(w, why)
	case w.Key != "":
		w.Over = true
		r.state.Works[w.Agent] = w
		return
	}
	r.free(w)
}

func (r *step) abort(w Work, why string) {
	r.emit(Effect{Kind: EffectSend, Agent: w.Agent, Task: w.Task, Msg: pty.KindAbort, Text: "Task ^" + w.Task + " " + why + "."})
}

// left takes the end of what was under way for an agent that leaves its task.
func (r *step) left(w Work, res Result) {
	if w.Stage == StagePrompting && res.OK && r.state.Agents[w.Agent].State == pty.AgentWorking {
		r.abort(w, "is no longer yours")
	}
	if w.Stage == StagePrompting && !res.OK {
		r.emit(Effect{Kind: EffectRecall, Agent: w.Agent, Task: w.Task})
	}
	r.free(w)
}

// lose takes the end of one of several that work on a task, which changes
// nothing for the others, or of a reader. It reports false when the task itself
// has come to nothing.
func (r *step) lose(w Work, state TaskState, why string) bool {
	c := r.course(w.Task)
	if w.Reads {
		r.free(w)
		if state != TaskOpen {
			c.Person = why
			r.setCourse(w.Task, c)
		}
		return true
	}
	if c.Step > 0 && state == TaskOpen {
		r.free(w) // another agent of the step may go on from what the last one made
		return true
	}
	others := slices.DeleteFunc(r.lanesOf(w.Task), func(o Work) bool { return o.Agent == w.Agent })
	if len(others) == 0 {
		return false
	}
	if why == "" {
		why = "it has ended"
	}
	c.Lost = append(slices.Clip(c.Lost), w.Agent+": "+why)
	r.setCourse(w.Task, c)
	r.tell(Fact{Agent: w.Agent, Bad: true, Text: w.Agent + " is out of the race for ^" + w.Task + ": " + why})
	held := w.Held
	r.free(w)
	if held.any() {
		next := r.state.Works[others[0].Agent]
		next.Held = held
		r.state.Works[next.Agent] = next
	}
	return true
}
