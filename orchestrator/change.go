package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/recipes"
)

// A Change is what makes a run into what a recipe says.
type Change struct {
	recipes.Delta
	// Restart are the agents of Changed that have to be ended and started again,
	// with their conversations, for what changed of them to count.
	Restart []string `json:"restart"`
	// Later are settings that count for what is made from now on only.
	Later []string `json:"later,omitempty"`

	have, want *recipes.Recipe // resolved
}

// ErrFixed says that a recipe differs from its run in something that cannot
// change while the run is there.
var ErrFixed = errors.New("it is fixed for as long as the run is there")

// Compare tells what differs between a run and a recipe with its parameters and
// models filled in. The error matches ErrFixed when the run cannot become it.
func Compare(run Run, recipe *recipes.Recipe) (Change, error) {
	have, err := run.Recipe()
	if err != nil {
		return Change{}, err
	}
	c := Change{have: have.Resolved(), want: recipe.Bind(recipes.Vars{Repo: run.Root, Run: run.Name}).Resolved(), Restart: []string{}}
	c.Delta = recipes.Diff(c.have, c.want)
	measured := Measured(c.have) != Measured(c.want)
	for _, a := range c.want.Agents {
		if slices.Contains(c.Added, a.Name) {
			continue
		}
		if measured || slices.ContainsFunc(c.Changed[a.Name], needsRestart) {
			c.Restart = append(c.Restart, a.Name)
		}
	}
	for _, s := range c.Settings {
		top, _, _ := strings.Cut(s.Key, ".")
		switch {
		case s.Key == "board.plan" || s.Key == "board.todo" || s.Key == "mode":
			return c, fmt.Errorf("run %s has %s: %s, the recipe %s: %w", run.Name, s.Key, s.From, s.To, ErrFixed)
		case top == "worktree" || top == "layout":
			c.Later = append(c.Later, s.Key)
		}
	}
	return c, nil
}

// needsRestart tells whether an agent has to be started again for a change to count.
func needsRestart(c recipes.Change) bool {
	top, _, _ := strings.Cut(c.Key, ".")
	switch top {
	case "role", "prompt", "prompt_file", "restart", "restarts", "depends_on", "limits":
		return false // the orchestrator's affair; a first prompt is sent once
	}
	return true
}

// leave is whom the change ends. Who gets another worktree gives its task back.
func (c Change) leave() Leave {
	l := Leave{Remove: slices.Clone(c.Removed)}
	for _, name := range c.Restart {
		moves := slices.ContainsFunc(c.Changed[name], func(ch recipes.Change) bool { return ch.Key == "isolation" })
		if moves {
			l.Remove = append(l.Remove, name)
		} else {
			l.Restart = append(l.Restart, name)
		}
	}
	return l
}

// startPath is the recipe that a run began with, once another was applied: what
// its journal begins from.
func (r Run) startPath() string { return filepath.Join(r.Dir.Path, "start.yaml") }

// first is the state before the first line of the journal.
func (r Run) first() (State, error) {
	recipe, err := recipes.Load(r.startPath())
	if errors.Is(err, recipes.ErrNotFound) {
		recipe, err = r.Recipe()
	}
	if err != nil {
		return State{}, err
	}
	return InitialState(r, recipe), nil
}

// applied is the change that the run's recipe is to what the state knows of it;
// nil for none.
func (r Run) applied(st State) (*FleetChange, error) {
	if _, err := os.Stat(r.startPath()); errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing was applied, which is no error
	}
	text, err := os.ReadFile(r.Dir.Manifest())
	if err != nil {
		return nil, fmt.Errorf("reading the recipe of run %s: %w", r.Name, err)
	}
	sum := sha256.Sum256(text)
	mark := hex.EncodeToString(sum[:8])
	if mark == st.Recipe {
		return nil, nil //nolint:nilnil // as above
	}
	recipe, err := r.Recipe()
	if err != nil {
		return nil, err
	}
	now := InitialState(r, recipe)
	c := &FleetChange{Recipe: mark, Settings: now.Settings}
	for _, name := range now.Order {
		c.Agents = append(c.Agents, now.Agents[name])
	}
	return c, nil
}

// adopt journals what was applied to the run's recipe since the journal's last
// line, and returns what follows from it beside what is under way.
func (j *Journal) adopt(run Run, st State, pending []Effect) (State, []Effect, error) {
	change, err := run.applied(st)
	if err != nil || change == nil {
		return st, pending, err
	}
	in := Input{Kind: InputFleet, Time: j.now().UTC().Round(0), Fleet: change}
	next, effects := Reduce(st, in)
	effects, err = j.step(in, st, next, effects)
	pending = slices.DeleteFunc(slices.Clone(pending), func(e Effect) bool { return !next.wants(e) })
	return next, append(pending, effects...), err
}
