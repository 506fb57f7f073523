package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator"
)

// Runs lists the runs of the repository the command is about, or of all
// repositories where it is about none or everywhere is set, newest first.
func (a *App) Runs(everywhere bool) ([]orchestrator.Run, error) {
	repo, err := state.FindRepo(a.Dir)
	if everywhere || errors.Is(err, state.ErrNoRepo) {
		return orchestrator.AllRuns(a.Layout)
	}
	if err != nil {
		return nil, err
	}
	return orchestrator.Runs(a.Layout.Repo(repo))
}

// Run finds the run that is meant: the one of the name; without a name the
// newest living one, else the newest. A repository without runs, and a folder
// that is in none, looks at the runs of all repositories, where the choice
// must be clear.
func (a *App) Run(name string) (orchestrator.Run, error) {
	if name != "" {
		if err := id.CheckName("run", name); err != nil {
			return orchestrator.Run{}, &ExitError{Code: ExitUsage, Err: err}
		}
	}
	runs, err := a.Runs(false)
	if err == nil && len(named(runs, name)) == 0 {
		var all []orchestrator.Run
		if all, err = a.Runs(true); err == nil {
			return choose(all, name, true)
		}
	}
	if err != nil && len(runs) == 0 {
		return orchestrator.Run{}, err
	}
	return choose(runs, name, false)
}

// Agent finds an agent of a run by its name, or fails with the names there are.
func Agent(run orchestrator.Run, name string) (state.AgentDir, error) {
	names, err := run.AgentNames()
	if err != nil {
		return state.AgentDir{}, err
	}
	if !slices.Contains(names, name) {
		return state.AgentDir{}, &ExitError{Code: ExitUsage, Err: Hint(
			fmt.Errorf("run %s has no agent %q", run.Name, name), "its agents are %s", strings.Join(names, ", "))}
	}
	return run.Dir.Agent(name), nil
}

func named(runs []orchestrator.Run, name string) []orchestrator.Run {
	if name == "" {
		return runs
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r orchestrator.Run) bool { return r.Name != name })
}

func choose(runs []orchestrator.Run, name string, everywhere bool) (orchestrator.Run, error) {
	runs = named(runs, name)
	if len(runs) == 0 {
		what := "no run"
		if name != "" {
			what = "no run named " + name
		}
		return orchestrator.Run{}, Hint(fmt.Errorf("there is %s", what), "start one with `muntin up <recipe>`, list them with `muntin ls --all`")
	}
	if len(runs) == 1 {
		return runs[0], nil
	}
	var living []orchestrator.Run
	for _, r := range runs {
		if r.Alive() {
			living = append(living, r)
		}
	}
	if everywhere && len(living) > 1 {
		var where []string
		for _, r := range living {
			where = append(where, r.Name+" in "+r.Repo)
		}
		return orchestrator.Run{}, &ExitError{Code: ExitUsage, Err: Hint(
			errors.New("more than one run is meant: "+strings.Join(where, ", ")), "name the repository with --repo")}
	}
	if len(living) > 0 {
		return living[0], nil
	}
	return runs[0], nil
}
