package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
	"muntin/orchestrator/board"
	"muntin/orchestrator/dash"
	"muntin/recipes"
)

// A screen turns the run's states into what the dashboard shows. It keeps the
// newest only: a slow terminal skips states, it does not hold up the run.
type screen struct {
	run    orchestrator.Run
	models map[string]string
	views  chan dash.View // holds one
}

func newScreen(run orchestrator.Run, recipe *recipes.Recipe) *screen {
	models := map[string]string{}
	for _, a := range recipe.Agents {
		models[a.Name] = a.Model
		if !a.BuiltIn() {
			models[a.Name] = strings.Join(a.Command, " ")
		}
	}
	return &screen{run: run, models: models, views: make(chan dash.View, 1)}
}

// show draws until ctx ends or a person quits.
func (s *screen) show(ctx context.Context, a *app.App) error {
	o := dash.Options{In: a.Streams.In, Out: a.Streams.Out, Views: s.views, Env: a.Environ, Now: a.Now}
	if a.Streams.Interactive() {
		o.In, o.Out = os.Stdin, os.Stdout // the dashboard draws on the terminal itself
	}
	return dash.Run(ctx, o)
}

// update is called from the loop's goroutine only.
func (s *screen) update(st orchestrator.State, problems []board.Problem) {
	view := s.view(st, problems)
	select {
	case <-s.views: // nobody has seen it yet
	default:
	}
	s.views <- view
}

func (s *screen) view(st orchestrator.State, problems []board.Problem) dash.View {
	v := dash.View{
		Run: s.run.Name, Repo: filepath.Base(s.run.Repo), Branch: s.run.Branch, Recipe: s.run.From,
		Started: s.run.Created, Phase: phaseView(st.Phase),
	}
	for _, t := range st.Tasks {
		v.Tasks = append(v.Tasks, taskView(st, t))
	}
	for _, name := range st.Order {
		v.Agents = append(v.Agents, s.agentView(st, st.Agents[name]))
	}
	for _, f := range st.Facts {
		v.Log = append(v.Log, dash.Line{Time: f.Time, Level: levelView(f), Text: f.Text})
	}
	for _, p := range problems {
		v.Problems = append(v.Problems, filepath.Base(s.run.Todo)+":"+p.String())
	}
	return v
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

func (s *screen) agentView(st orchestrator.State, a orchestrator.Agent) dash.Agent {
	agent := dash.Agent{
		Name: a.Name, Role: a.Role, Model: s.models[a.Name], State: dash.AgentState(a.State), Source: a.Source,
		Since: a.Since, Task: a.Task, Turn: a.Turn, Tokens: int(a.Used.Tokens), Note: a.Note,
	}
	if a.Checkpoint != nil {
		agent.Checkpoint = a.Checkpoint.ID
	}
	if agent.Note == "" {
		agent.Note = a.Doing
	}
	if trouble := st.Trouble(a); trouble.Kind != "" {
		agent.State, agent.Note = troubleView(agent.State, trouble), trouble.Why
	}
	return agent
}

// troubleView is the state of an agent that something keeps.
func troubleView(state dash.AgentState, t orchestrator.Trouble) dash.AgentState {
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
