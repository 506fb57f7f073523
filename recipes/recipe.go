// Package recipes reads the YAML files that describe a run: its agents, board,
// checks and limits. Reading is strict: every mistake is found, named with its
// file, line and column, and reported with all the others in one Error.
//
// A recipe is data. Nothing here runs a command, expands a variable, or trusts
// a file because of where it lies.
package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Version is the recipe format this package reads and writes: the value of the
// key `muntin`.
const Version = 1

// Limits of a recipe.
const (
	MaxSize     = 1 << 20 // bytes of a file
	MaxAgents   = 200     // of a resolved recipe
	MaxAttempts = 100
)

// A Layout says how the agents' panes are placed.
type Layout string

// The layouts.
const (
	LayoutAuto     Layout = "auto"     // together while they fit, else windows
	LayoutTogether Layout = "together" // all panes in one window
	LayoutWindows  Layout = "windows"  // a window per agent
)

// An Isolation says where an agent works.
type Isolation string

// The isolations.
const (
	IsolationWorktree Isolation = "worktree" // a linked worktree of its own
	IsolationShared   Isolation = "shared"   // one worktree with the others
	IsolationNone     Isolation = "none"     // the repository itself
)

// An Approval says who lets a planned run begin.
type Approval string

// The approvals. Without one the run is not planned: work begins at once.
const (
	ApproveNone   Approval = ""
	ApprovePerson Approval = "person" // nothing is given out before PLAN.md is approved
	ApproveAuto   Approval = "auto"   // the planner's first finished turn approves it
)

// RolePlanner is the role of the agent that writes the plan and the board.
const RolePlanner = "planner"

// RoleWorker is the role of agents that pull tasks from the board.
const RoleWorker = "worker"

// Defaults of a recipe.
const (
	DefaultPlan         = "PLAN.md"
	DefaultTodo         = "TODO.md"
	DefaultAttempts     = 3
	DefaultCheckTimeout = 5 * time.Minute
)

// A Recipe describes a run. Parse fills in the defaults of everything outside
// the agents.
type Recipe struct {
	Version      int
	Name         string
	Description  string
	Model        string // provider/id, for agents with neither model nor command
	Board        Board
	Checks       Checks
	Attempts     int // failed checks before a task is blocked
	CheckTimeout time.Duration
	Layout       Layout
	Agents       []Agent
}

// Board names the board's files, relative to the top of the repository.
type Board struct {
	Plan    string
	Todo    string
	Approve Approval
}

// Checks are shell commands that judge work. In a file `check: X` is short for
// `checks: {task: X}`.
type Checks struct {
	Task string // after each task, in the agent's worktree
	Run  string // on the merged result
}

// An Agent describes one agent, or Count of them. One with neither Model nor
// Command is a built-in agent with the run's model.
type Agent struct {
	Name       string
	Count      int // 0: not given, one agent of this very name
	Role       string
	Model      string   // provider/id of a built-in agent
	Command    []string // argv of an outside agent
	Prompt     string
	PromptFile string // relative to the top of the repository
	System     string
	Isolation  Isolation
	Env        []string // names of variables to pass on
	Dir        string   // inside the worktree
}

// BuiltIn reports whether the agent is muntin's own, not an outside command.
func (a Agent) BuiltIn() bool { return len(a.Command) == 0 }

// FirstPrompt is the agent's first prompt: Prompt, or the text of PromptFile
// below root, the top of the repository. A file outside root is refused, also
// through a symbolic link. It is empty when the agent has neither.
func (a Agent) FirstPrompt(root string) (string, error) {
	if a.PromptFile == "" {
		return a.Prompt, nil
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return "", fmt.Errorf("reading the prompt of agent %s: %w", a.Name, err)
	}
	defer dir.Close()
	text, err := dir.ReadFile(filepath.FromSlash(a.PromptFile))
	if err != nil {
		return "", fmt.Errorf("reading the prompt of agent %s: %w", a.Name, err)
	}
	return string(text), nil
}

// Resolve is the flat list of agents a run starts: counts are expanded to
// <name>-1, <name>-2, …, and role, isolation and, for built-in agents, the
// recipe's model are filled in. To use another default model, set r.Model
// before. An agent that has no model even so keeps an empty one.
func (r *Recipe) Resolve() []Agent {
	var out []Agent
	for _, a := range r.Agents {
		if a.Role == "" {
			a.Role = RoleWorker
		}
		if a.Isolation == "" {
			a.Isolation = IsolationWorktree
		}
		if a.Model == "" && a.BuiltIn() {
			a.Model = r.Model
		}
		out = append(out, a.expand()...)
	}
	return out
}

// Resolved is a copy of the recipe with the agents of Resolve: what a run
// writes down as its run.yaml.
func (r *Recipe) Resolved() *Recipe {
	out := *r
	out.Agents = r.Resolve()
	return &out
}

// expand makes Count agents of one.
func (a Agent) expand() []Agent {
	count := a.Count
	a.Count = 0
	if count == 0 {
		return []Agent{a}
	}
	out := make([]Agent, count)
	for i := range out {
		out[i] = a
		out[i].Name = fmt.Sprintf("%s-%d", a.Name, i+1)
	}
	return out
}
