// Package source makes what the dashboard shows of a run: its state as the
// orchestrator has it, and, while somebody looks at them, its agents' screens
// and messages.
package source

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muntin/orchestrator"
	"muntin/orchestrator/board"
	"muntin/orchestrator/dash"
	"muntin/recipes"
)

// pause is how long the next View waits at least: of the states that come faster
// only the newest counts. A large fleet is drawn less often, so that a busy one
// costs about the same as a small one; what a person does is drawn at once all
// the same.
func pause(agents int) time.Duration {
	return min(100*time.Millisecond+time.Duration(agents)*time.Millisecond, 250*time.Millisecond)
}

// A Source turns a run's states into Views.
type Source struct {
	run    orchestrator.Run
	models map[string]string
	now    func() time.Time
	onView func(dash.View)
	lines  *lines
	wake   chan struct{} // holds one: there is a newer state

	mu     sync.Mutex // guards newest
	newest *picture

	// Of the goroutine of Run, or whoever calls View.
	pulses map[string]*pulse
	files  files
}

// A picture is a state with the board's problems.
type picture struct {
	state    orchestrator.State
	problems []board.Problem
}

// Options are what New needs.
type Options struct {
	Run    orchestrator.Run
	Recipe *recipes.Recipe
	Now    func() time.Time
	// Stat counts the lines that an agent has changed and that are not merged.
	// It is called from one goroutine. nil: they are not shown.
	Stat func(ctx context.Context, agent string) (added, deleted int, err error)
	// OnView is called with each View before it is sent, from Run's goroutine. It
	// must not block. nil: nobody.
	OnView func(dash.View)
}

// New makes the Source of a run.
func New(o Options) *Source {
	s := &Source{
		run: o.Run, models: map[string]string{}, now: o.Now, wake: make(chan struct{}, 1), pulses: map[string]*pulse{},
		lines: newLines(o.Stat), onView: o.OnView,
	}
	for _, a := range o.Recipe.Resolve() {
		s.models[a.Name] = a.Model
		if !a.BuiltIn() {
			s.models[a.Name] = strings.Join(a.Command, " ")
		}
	}
	return s
}

// Update takes a newer state. It does not block.
func (s *Source) Update(st orchestrator.State, problems []board.Problem) {
	s.mu.Lock()
	s.newest = &picture{st, problems}
	s.mu.Unlock()
	s.nudge()
}

func (s *Source) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it is to look anyway
	}
}

// Run sends a View of the newest state to views, a few times a second and only
// when there is news, until ctx ends; then it closes views.
func (s *Source) Run(ctx context.Context, views chan<- dash.View) {
	defer close(views)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.lines.run(ctx, s.nudge) })
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		s.mu.Lock()
		newest := s.newest
		s.mu.Unlock()
		if newest == nil {
			continue
		}
		v := s.View(newest.state, newest.problems)
		if s.onView != nil {
			s.onView(v)
		}
		select {
		case <-ctx.Done():
			return
		case views <- v:
		}
		rest.Reset(pause(len(v.Agents)))
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
	}
}

// View is a state as the dashboard shows it.
func (s *Source) View(st orchestrator.State, problems []board.Problem) dash.View {
	s.files.read(s.run, st.Rev)
	v := dash.View{
		Run: s.run.Name, Repo: filepath.Base(s.run.Repo), Branch: s.run.Branch, Recipe: s.run.From,
		Started: s.run.Created, Phase: phaseView(st.Phase), Plan: s.files.plan,
	}
	for _, t := range st.Tasks {
		task := taskView(st, t)
		task.Depth = s.files.depth[t.ID]
		v.Tasks = append(v.Tasks, task)
	}
	for _, name := range st.Order {
		v.Agents = append(v.Agents, s.agentView(st, st.Agents[name]))
	}
	for _, f := range st.Facts {
		v.Log = append(v.Log, dash.Line{Time: f.Time, Level: levelView(f), Text: f.Text})
	}
	for _, o := range st.Radar.Overlaps {
		v.Overlaps = append(v.Overlaps, overlapViews(o)...)
	}
	for _, p := range problems {
		v.Problems = append(v.Problems, filepath.Base(s.run.Todo)+":"+p.String())
	}
	v.Needs = needs(s.run, st)
	return v
}

// files are what the board's files tell beyond the state.
type files struct {
	rev   int64
	began bool
	depth map[string]int
	plan  string
}

// read reads them when the board was read anew. A file that cannot be read
// leaves what was known: the orchestrator tells what is wrong with it.
func (f *files) read(run orchestrator.Run, rev int64) {
	if f.began && f.rev == rev {
		return
	}
	f.began, f.rev = true, rev
	if src, err := os.ReadFile(run.Plan); err == nil {
		f.plan = string(board.PlanBody(src))
	}
	src, err := os.ReadFile(run.Todo)
	if err != nil {
		return
	}
	b, err := board.Parse(src)
	if err != nil {
		return
	}
	f.depth = map[string]int{}
	for _, t := range b.Tasks() {
		if t.Parent != "" {
			f.depth[t.ID] = f.depth[t.Parent] + 1
		}
	}
}

func phaseView(p orchestrator.Phase) dash.Phase {
	switch p {
	case orchestrator.PhaseDone:
		return dash.PhaseDone
	case orchestrator.PhaseWaiting:
		return dash.PhaseWaiting
	case orchestrator.PhaseStarting, orchestrator.PhaseRunning:
	}
	return dash.PhaseRunning
}

func levelView(f orchestrator.Fact) dash.Level {
	switch {
	case f.Good:
		return dash.LevelGood
	case f.Bad:
		return dash.LevelBad
	}
	return dash.LevelInfo
}

func overlapViews(o orchestrator.Overlap) []dash.Overlap {
	var list []dash.Overlap
	for _, f := range o.Files {
		v := dash.Overlap{A: o.A, B: o.B, Path: f.Path, Kind: f.Kind}
		if len(f.Hunks) > 0 {
			v.Where = f.Hunks[0].A.String()
		}
		list = append(list, v)
	}
	return list
}

func taskView(st orchestrator.State, t orchestrator.Task) dash.Task {
	task := dash.Task{ID: t.ID, Text: t.Text, State: dash.TaskState(t.State), Note: t.Reason}
	if t.State == orchestrator.TaskActive {
		task.State = dash.TaskClaimed
	}
	for _, id := range t.After {
		if dep, ok := st.Task(id); !ok || dep.State != orchestrator.TaskDone {
			task.After = append(task.After, id)
		}
	}
	if work := st.WorkOn(t.ID); len(work) > 0 {
		w := work[0]
		task.Agent, task.Attempt = w.Agent, w.Attempt+1
		if w.Stage != orchestrator.StageWorking && w.Stage != orchestrator.StageMarking {
			task.Note = string(w.Stage)
		}
	} else if i := slices.IndexFunc(t.Names, func(n string) bool { _, ok := st.Agents[n]; return ok }); i >= 0 {
		task.Agent = t.Names[i]
	}
	return task
}

func (s *Source) agentView(st orchestrator.State, a orchestrator.Agent) dash.Agent {
	agent := dash.Agent{
		Name: a.Name, Role: a.Role, Model: s.models[a.Name], State: dash.AgentState(a.State), Source: a.Source,
		Since: a.Since, Task: a.Task, Turn: a.Turn, Tokens: int(a.Used.Tokens), Note: a.Note,
		Cost: a.Used.Cost, Memory: a.Used.Memory, Activity: s.activity(a),
	}
	if a.Checkpoint != nil {
		agent.Checkpoint = a.Checkpoint.ID
		agent.Added, agent.Deleted = s.lines.of(a.Name, a.Checkpoint.Commit+" "+a.Task)
	}
	if agent.Note == "" {
		agent.Note = a.Doing
	}
	if trouble := st.Trouble(a); trouble.Kind != "" {
		agent.State, agent.Note = TroubleState(agent.State, trouble), trouble.Why
	}
	return agent
}

// TroubleState is the state of an agent that something keeps.
func TroubleState(state dash.AgentState, t orchestrator.Trouble) dash.AgentState {
	switch t.Kind {
	case orchestrator.TroubleAsks:
		return dash.AgentWaiting
	case orchestrator.TroubleStalled:
		return dash.AgentStalled
	case orchestrator.TroubleLimited:
		return dash.AgentLimited
	case orchestrator.TroubleGivenUp:
		return dash.AgentFailed
	case orchestrator.TroubleBudget, orchestrator.TroubleRestarting:
	}
	return state // the note says it
}
