// Package recipes reads the YAML files that describe a run: its agents, board,
// checks and limits. Reading is strict: every mistake is found, named with its
// file, line and column, and reported with all the others in one Error.
//
// A recipe is data. Nothing here runs a command, expands a variable of the
// environment, or trusts a file because of where it lies.
//
// The format is described once, by the struct tags of the types in this file:
//
//	key      its name in a file; "" for what has none there
//	is       what a text or a number must be (see checks), for lists each item
//	default  the value of a key that is not given
//	oneof    the words that are allowed
//	range    the least and the greatest number
//	vars     which variables its text may hold: "run", or "agent" for all
//	scalar   the key that a value stands for that is not a mapping
//	keyed    a list that is written as a mapping, from names to items
//	without  keys of an item that a list does not have
//	doc      a line for the reference
//
// Decoding, Marshal, Schema and Reference are all made from them.
package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"muntin/recipes/internal/tree"
)

// Version is the recipe format this package reads and writes: the value of the
// key `muntin`.
const Version = 1

// Limits of a recipe.
const (
	MaxSize   = tree.MaxSize // bytes of a file
	MaxAgents = 200          // of a resolved recipe
	MaxDepth  = 8            // recipes that a recipe builds on, one behind the other
)

// A Mode says how the agents of a run work together.
type Mode string

// The modes.
const (
	ModeWorkers  Mode = "workers"  // workers pull tasks from the board
	ModeRace     Mode = "race"     // several work on one task, the best result is kept
	ModeReview   Mode = "review"   // a reviewer reads each task's work before it is merged
	ModeLoop     Mode = "loop"     // one prompt again and again until a check passes
	ModePipeline Mode = "pipeline" // agents work one after the other, as depends_on says
)

// The styles of layouts that have a name of ours. All others are tmux's: its
// own names, or the text of a tmux layout.
const (
	LayoutAuto     = "auto"     // together while they fit, else windows
	LayoutTogether = "together" // all panes in one window
	LayoutWindows  = "windows"  // a window per agent
	LayoutTiled    = "tiled"
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

// A Restart says what follows when an agent's program ends.
type Restart string

// The restarts.
const (
	RestartOnFailure Restart = "on-failure"
	RestartNever     Restart = "never"
	RestartAlways    Restart = "always"
)

// Who chooses the best result of a race.
const (
	ChooseChecks = "checks" // the first that passes all checks
	ChooseJudge  = "judge"  // an agent of a role
	ChoosePerson = "person"
)

// Where a worktree starts from.
const (
	FromHead    = "head"    // the commit that is checked out
	FromWorking = "working" // the files as they are now, committed or not
)

// How work is merged.
const (
	MergeMerge  = "merge"
	MergeSquash = "squash"
	MergeRebase = "rebase"
)

// The ways to notify.
const (
	NotifyBell    = "bell"
	NotifyTmux    = "tmux"
	NotifyDesktop = "desktop"
	NotifyCommand = "command"
	NotifyWebhook = "webhook"
)

// An Event is something of a run that hooks and notifications can wait for.
type Event string

// The events.
const (
	EventReady       Event = "ready"        // all agents are ready
	EventTaskDone    Event = "task-done"    // a task's work passed its check
	EventTaskBlocked Event = "task-blocked" // a task failed too often
	EventNeedsPerson Event = "needs-person" // something can only be settled by a person
	EventMerged      Event = "merged"       // work was merged
	EventRunDone     Event = "run-done"     // all tasks are done
	EventExit        Event = "exit"         // an agent's program ended
	EventLimited     Event = "limited"      // a limit was reached
)

// Roles that mean something to muntin. A recipe can have others.
const (
	RoleWorker    = "worker"    // pulls tasks from the board
	RolePlanner   = "planner"   // writes the plan and the board
	RoleAssistant = "assistant" // takes prompts, not tasks
)

// Defaults that other packages need.
const (
	DefaultPlan = "PLAN.md"
	DefaultTodo = "TODO.md"
)

// A Recipe describes a run. Parse fills in the defaults of everything outside
// the agents; Resolve fills in those of agents.
type Recipe struct {
	Version     int    `key:"muntin" doc:"the version of the format: 1"`
	Name        string `key:"name" is:"name:recipe" doc:"a letter or digit, then at most 31 of a-z, 0-9 and hyphens"`
	Description string `key:"description" is:"text" doc:"a line for lists of recipes"`
	// Extends is empty in a recipe that was read: what it names is merged in.
	Extends string  `key:"extends" is:"text" doc:"another recipe that this one changes: its name, or a path relative to this file that begins with ./ or ../"`
	Params  []Param `key:"params" keyed:"" doc:"values that are given at the start, as ${name} in texts"`
	Model   string  `key:"model" is:"model" doc:"provider/id, for agents with no model, command or adapter of their own"`
	Mode    Mode    `key:"mode" default:"workers" oneof:"workers race review loop pipeline" doc:"how the agents work together"`
	Race    *Race   `key:"race" doc:"for mode race"`     // set in this mode
	Review  *Review `key:"review" doc:"for mode review"` // set in this mode
	Loop    *Loop   `key:"loop" doc:"for mode loop"`     // set in this mode

	MaxParallel  int           `key:"max_parallel" range:"0 200" doc:"tasks at work at once; 0: as many as there are workers"`
	Reserve      bool          `key:"reserve" doc:"tasks whose \"files:\" lines meet are not at work at once"`
	Roles        []Agent       `key:"roles" keyed:"" without:"name count role" doc:"values that the agents of a role share; what an agent says itself goes first"`
	Agents       []Agent       `key:"agents" doc:"the agents"`
	Limits       Limits        `key:"limits" doc:"limits of the whole run"`
	Board        Board         `key:"board" doc:"the files with the plan and the tasks"`
	Check        string        `key:"check" is:"shell" doc:"short for checks: {task: …}"` // empty in a recipe that was read
	Checks       Checks        `key:"checks" doc:"commands that judge work"`
	Attempts     int           `key:"attempts" default:"3" range:"1 100" doc:"failed checks before a task is blocked"`
	CheckTimeout time.Duration `key:"check_timeout" default:"5m" is:"timeout" doc:"how long a check may take"`
	Stall        Stall         `key:"stall" doc:"what follows when a working agent is silent"`
	Worktree     Worktree      `key:"worktree" doc:"how an agent's worktree is prepared"`
	Merge        Merge         `key:"merge" doc:"how checked work gets into the run's branch"`
	Layout       Layout        `key:"layout" scalar:"style" doc:"how the panes are placed: a style, or {panes, style}"`
	Hooks        []Hook        `key:"hooks" doc:"programs to run when something happens"`
	Notify       []Notify      `key:"notify" doc:"how a person is told"`
}

// Race describes the mode in which several agents work on the same task.
type Race struct {
	Agents int    `key:"agents" default:"3" range:"2 20" doc:"how many work on each task"`
	Choose string `key:"choose" default:"checks" oneof:"checks judge person" doc:"who chooses the best result"`
	Judge  string `key:"judge" is:"name:role" doc:"the role of the agent that chooses"`
}

// Review describes the mode in which work is read before it is merged.
type Review struct {
	Role   string `key:"role" default:"reviewer" is:"name:role" doc:"the role of the agents that read"`
	Rounds int    `key:"rounds" default:"2" range:"1 20" doc:"how often work may come back before a person is needed"`
}

// Loop describes the mode in which one prompt is given again and again.
type Loop struct {
	Prompt string `key:"prompt" is:"text" vars:"run" doc:"what is sent each time"`
	Until  string `key:"until" is:"shell" doc:"the command that ends the loop when it succeeds"`
	Max    int    `key:"max" default:"20" range:"1 1000" doc:"the most rounds"`
}

// Limits bound what an agent or a run may use. 0 is no limit.
type Limits struct {
	Turns     int           `key:"turns" range:"0 1000000" doc:"turns"`
	Tokens    int64         `key:"tokens" range:"0 1000000000000" doc:"tokens in and out"`
	Cost      float64       `key:"cost" doc:"US dollars"`
	Time      time.Duration `key:"time" is:"duration" doc:"wall time"`
	Memory    int64         `key:"memory" is:"size" doc:"bytes of memory, such as 2GB or 512MiB"`
	Processes int           `key:"processes" range:"0 100000" doc:"processes at once"`
}

// Board names the board's files, relative to the top of the repository.
type Board struct {
	Plan    string   `key:"plan" default:"PLAN.md" is:"file" doc:"the plan"`
	Todo    string   `key:"todo" default:"TODO.md" is:"file" doc:"the tasks"`
	Approve Approval `key:"approve" oneof:"person auto" doc:"who lets work begin after the planner: a person, or auto for at once"`
}

// Checks are shell commands that judge work. In a file `check: X` is short for
// `checks: {task: X}`.
type Checks struct {
	Task string `key:"task" is:"shell" doc:"after each task, in the agent's worktree"`
	Run  string `key:"run" is:"shell" doc:"on the merged result"`
}

// Stall says what follows when a working agent is silent. With After 0 nothing does.
type Stall struct {
	After  time.Duration `key:"after" default:"10m" is:"duration" doc:"the silence that counts; 0s: never"`
	Nudges int           `key:"nudges" default:"1" range:"0 20" doc:"how often the agent is reminded before a person is needed"`
}

// Worktree says how an agent's worktree is made and taken away. Paths are
// relative to the top of the repository and may be patterns.
type Worktree struct {
	From     string   `key:"from" default:"head" oneof:"head working" doc:"what it starts from: the last commit, or the files as they are"`
	Copy     []string `key:"copy" is:"path" doc:"untracked files and folders to copy into it"`
	Link     []string `key:"link" is:"path" doc:"untracked files and folders to link to"`
	Setup    []string `key:"setup" is:"shell" doc:"shell commands to prepare it"`
	Teardown []string `key:"teardown" is:"shell" doc:"shell commands before it is removed"`
	Ports    int      `key:"ports" range:"0 1000" doc:"network ports that are kept for each agent"`
}

// Merge says how checked work gets into the run's branch.
type Merge struct {
	Style string `key:"style" default:"merge" oneof:"merge squash rebase" doc:"with a merge commit, as one commit, or on top"`
}

// A Layout says how the agents' panes are placed. With Panes the windows have up
// to that many panes each, in the given style.
type Layout struct {
	Style string `key:"style" default:"auto" is:"layout" doc:"auto, together, windows; tiled, main-vertical, main-horizontal, even-horizontal, even-vertical; or the text of a tmux layout"`
	Panes int    `key:"panes" range:"0 50" doc:"panes of a window; more agents get further windows"`
}

// A Hook is a program that runs when something happens.
type Hook struct {
	On  Event    `key:"on" is:"event" doc:"the event"`
	Run []string `key:"run" is:"argv" vars:"run" doc:"the program and its arguments"`
}

// A Notify tells a person of events.
type Notify struct {
	On  []string `key:"on" is:"event" doc:"the events"`
	By  string   `key:"by" oneof:"bell tmux desktop command webhook" doc:"the way"`
	Run []string `key:"run" is:"argv" vars:"run" doc:"for command: the program and its arguments"`
	URL string   `key:"url" is:"url" doc:"for webhook: the address, which gets a POST with JSON"`
}

// A Param is a value that is given when a recipe is used. In a recipe that was
// read, Default is the value in use.
type Param struct {
	Name        string   `key:""`
	Type        string   `key:"type" default:"string" oneof:"int string bool path choice" doc:"what it must be; a path is relative to the top of the repository"`
	Default     *string  `key:"default" is:"value" doc:"its value if none is given; a parameter without one must be given"`
	Description string   `key:"description" is:"text" doc:"a line for people who are asked for it"`
	Choices     []string `key:"choices" is:"value" doc:"for choice: the values it may have"`
}

// An Agent describes one agent, or Count of them, or as one of Recipe.Roles what
// agents share. One with neither Model, Command nor Adapter is a built-in agent
// with the run's model.
type Agent struct {
	Name       string    `key:"name" is:"name:agent" doc:"a letter or digit, then at most 31 of a-z, 0-9 and hyphens"`
	Count      int       `key:"count" range:"1 200" doc:"this many, called name-1, name-2, …"` // 0: not given, one agent of this very name
	Role       string    `key:"role" is:"name:role" doc:"a role of this recipe, or worker (takes tasks; the default), planner, assistant"`
	Model      string    `key:"model" is:"model" doc:"provider/id of a built-in agent"`
	Thinking   string    `key:"thinking" oneof:"off minimal low medium high xhigh max" doc:"how much the model thinks"`
	Command    []string  `key:"command" is:"argv" vars:"agent" doc:"the program of an outside agent and its arguments"`
	Adapter    string    `key:"adapter" is:"name:adapter" doc:"how an outside agent is driven (see muntin adapter ls); without a command it also says what is started"`
	Prompt     string    `key:"prompt" is:"text" vars:"agent" doc:"the first prompt"`
	PromptFile string    `key:"prompt_file" is:"file" vars:"agent" doc:"the file with the first prompt"`
	System     string    `key:"system" is:"text" vars:"agent" doc:"an addition to the system prompt of a built-in agent"`
	Tools      []string  `key:"tools" is:"word" doc:"the tools it has; all without this key"`
	Isolation  Isolation `key:"isolation" oneof:"worktree shared none" doc:"where it works: a worktree of its own (the default), one shared with the others, or the repository itself"`
	Env        []string  `key:"env" is:"variable" doc:"names of variables to pass on, never values"`
	Dir        string    `key:"dir" is:"path" vars:"agent" doc:"the folder it starts in, inside its worktree"`
	Approval   string    `key:"approval" is:"word" doc:"what it asks a person for, in the words of its adapter: ask, edits, all"`
	DependsOn  []string  `key:"depends_on" is:"name:agent" doc:"agents that must be ready, or for assistants have done a turn, before it gets anything to do; in mode pipeline also the order of the steps"`
	Ready      *Ready    `key:"ready" doc:"how to tell that it is ready"`
	Restart    Restart   `key:"restart" oneof:"on-failure never always" doc:"whether it is started again when its program ends (on-failure)"`
	Restarts   int       `key:"restarts" range:"1 100" doc:"how often (3)"`
	Limits     Limits    `key:"limits" doc:"limits of this agent"`
}

// Defaults of a resolved agent.
const defaultRestarts = 3

// Ready says how to tell that an agent is ready.
type Ready struct {
	Text    string        `key:"text" is:"text" doc:"what is then on its screen"`
	Check   string        `key:"check" is:"shell" doc:"a command that then succeeds"`
	Timeout time.Duration `key:"timeout" default:"1m" is:"timeout" doc:"how long to wait"`
}

// BuiltIn reports whether the agent is muntin's own, not an outside command.
func (a Agent) BuiltIn() bool { return len(a.Command) == 0 && a.Adapter == "" }

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
