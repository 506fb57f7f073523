package demo

import (
	"fmt"
	"strings"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
)

// A story prints each fact of a run once.
type story struct {
	app  *app.App
	last orchestrator.Fact
}

func newStory(a *app.App) *story { return &story{app: a} }

func (st *story) tell(s orchestrator.State) {
	t := st.app.Theme
	from := 0
	for i, f := range s.Facts {
		if f == st.last {
			from = i + 1
		}
	}
	for _, f := range s.Facts[from:] {
		mark := t.Dim.Render("·")
		switch {
		case f.Good:
			mark = t.Good.Render("✓")
		case f.Bad:
			mark = t.Bad.Render("✗")
		}
		fmt.Fprintf(st.app.Streams.Out, "%s %s %s\n", t.Dim.Render(f.Time.Local().Format("15:04:05.0")), mark, term.CleanLine(f.Text))
		st.last = f
	}
}

// summary prints how the run ended and where to look deeper. It fails unless
// every task is done and the merged program passed its tests.
func summary(o Options, r orchestrator.Run, s orchestrator.State) error {
	a := o.App
	t := a.Theme
	done, all := s.Count(orchestrator.TaskDone), 0
	for _, task := range s.Tasks {
		if !task.Group {
			all++
		}
	}
	checked := s.RunCheck.Done && s.RunCheck.Passed
	verdict := t.Good.Render("✓")
	if done != all || !checked {
		verdict = t.Bad.Render("✗")
	}
	tests := "its tests were not run"
	if s.RunCheck.Done {
		tests = "its tests " + map[bool]string{true: "pass", false: "fail"}[checked]
	}
	fmt.Fprintf(a.Streams.Out, "\n%s %d of %d tasks done, merged to %s: %s\n", verdict, done, all, r.Branch, tests)
	for _, name := range s.Order {
		agent := s.Agents[name]
		n := 0
		if agent.Checkpoint != nil {
			n = agent.Checkpoint.ID
		}
		fmt.Fprintf(a.Streams.Out, "  %-8s %d turns, %d checkpoints, %d tokens\n", name, agent.Turn, n, agent.Used.Tokens)
	}
	deeper(o, r, s)
	if done != all || !checked {
		return app.Exit(app.ExitFailed)
	}
	return nil
}

// deeper names the commands to look deeper, with this run's names in them.
func deeper(o Options, r orchestrator.Run, s orchestrator.State) {
	a := o.App
	agent, turn := r.Name, 1
	for _, name := range s.Order {
		if s.Agents[name].Turn >= turn {
			agent, turn = name, s.Agents[name].Turn
		}
	}
	muntin := a.Command()
	lines := [][2]string{
		{muntin + " attach " + r.Name, "the panes"},
		{muntin + " logs " + agent, "what an agent did"},
		{muntin + " checkpoint ls " + agent, "a checkpoint of every turn"},
		{fmt.Sprintf("%s checkpoint diff -a %s turn:%d turn:%d", muntin, agent, turn-1, turn), "what the last turn changed"},
		{fmt.Sprintf("%s rollback %s %d", muntin, agent, turn-1), "take it back; undo takes that back"},
		{"git log --oneline --graph " + r.Branch, "the merged work"},
		{muntin + " down " + r.Name, "end it; everything is kept"},
	}
	if o.Down {
		lines = lines[1 : len(lines)-1] // it will have ended
	}
	width := 0
	for _, line := range lines {
		width = max(width, len(line[0]))
	}
	t := a.Theme
	fmt.Fprintf(a.Streams.Out, "\nLook deeper:\n  %s\n", t.Command.Render("cd "+r.Root))
	for _, line := range lines {
		fmt.Fprintf(a.Streams.Out, "  %s%s %s\n", t.Command.Render(line[0]), strings.Repeat(" ", width-len(line[0])+1), t.Dim.Render(line[1]))
	}
}

// afterwards is what a person reads who has detached from the demo.
func afterwards(o Options, r orchestrator.Run) error {
	s, err := orchestrator.Now(r)
	if err != nil {
		return err
	}
	if s.Phase == orchestrator.PhaseDone {
		return summary(o, r, s)
	}
	fmt.Fprintf(o.App.Streams.Out, "run %s goes on: %d of %d tasks are done\n", r.Name, s.Count(orchestrator.TaskDone), len(s.Tasks))
	deeper(o, r, s)
	return nil
}
