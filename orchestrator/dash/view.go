// Package dash draws the dashboard of a run: its agents, its board, what needs
// a person and what happened. It draws plain data that it declares itself; the
// orchestrator fills it in. Whatever a person does in it is a command line of
// muntin, which it shows before it is carried out.
//
// Rules. All text in a View is foreign: it is cleaned before it is shown. No
// line is wider than the terminal. Nothing is drawn and nobody wakes up unless
// a View arrives, the terminal changes its size, a key is pressed, or an agent
// is working, which shows its age by the second.
package dash

import "time"

// A View is one picture of a run. It is not changed after it was sent.
type View struct {
	Run     string
	Repo    string // name of the repository, for people
	Branch  string // the integration branch
	Recipe  string
	Started time.Time
	Phase   Phase

	Tasks    []Task  // in the order of the board
	Agents   []Agent // in the order of the recipe
	Needs    []Need  // what waits for a person, the most urgent first
	Overlaps []Overlap
	Plan     string // PLAN.md without its front matter
	Log      []Line // newest last
	Problems []string
	Hints    []string // what a person can do, such as "muntin attach demo"
}

// A Phase says how far a run is.
type Phase string

// The phases of a run. Waiting is for a person.
const (
	PhaseRunning Phase = "running"
	PhaseDone    Phase = "done"
	PhaseFailed  Phase = "failed"
	PhaseWaiting Phase = "waiting"
)

// A TaskState is the state of a task, in the board's words.
type TaskState string

// The states of a task.
const (
	TaskOpen      TaskState = "open"
	TaskClaimed   TaskState = "claimed" // in progress
	TaskDone      TaskState = "done"
	TaskBlocked   TaskState = "blocked"
	TaskCancelled TaskState = "cancelled"
	TaskWaiting   TaskState = "waiting" // for a person
)

// A Task is one item of the board.
type Task struct {
	ID      string
	Text    string
	State   TaskState
	Depth   int      // how many tasks it lies in
	Agent   string   // who has it, or had it
	Attempt int      // counts from 1; shown from the second on
	After   []string // ids of unfinished tasks that it waits for
	Note    string   // why it is blocked, what its check said
}

// settled tells whether nothing more will happen to the task.
func (t Task) settled() bool { return t.State == TaskDone || t.State == TaskCancelled }

// noted tells whether the task's note matters now.
func (t Task) noted() bool { return t.Note != "" && !t.settled() }

// An AgentState is what an agent is doing.
type AgentState string

// What an agent may be doing. Only a working agent's age is shown running.
const (
	AgentStarting AgentState = "starting"
	AgentIdle     AgentState = "idle"
	AgentWorking  AgentState = "working"
	AgentWaiting  AgentState = "waiting" // for a person
	AgentHeld     AgentState = "held"    // a person is typing
	AgentLimited  AgentState = "limited" // rate or quota
	AgentStalled  AgentState = "stalled"
	AgentFailed   AgentState = "failed"
	AgentExited   AgentState = "exited"
	AgentUnknown  AgentState = "unknown"
)

// An Agent is one worker of the run.
type Agent struct {
	Name       string
	Role       string
	Model      string // or the command, for an outside agent
	State      AgentState
	Source     string    // the evidence for State: protocol, hook, transcript, screen, none
	Since      time.Time // when State began
	Task       string
	Turn       int
	Checkpoint int // the number of the last one, 0 for none
	Tokens     int // used so far, 0 where the agent does not tell
	Note       string

	Cost     float64 // US dollars so far
	Memory   int64   // bytes that its processes held at the end of the last turn
	Added    int     // lines that it has changed and are not merged yet
	Deleted  int
	Activity []int // events of its last active minutes, the oldest first
}

// A NeedKind says what a person is wanted for.
type NeedKind string

// What a person can be wanted for.
const (
	NeedAnswer   NeedKind = "asks"     // an agent's turn waits for an approval or an answer
	NeedPlan     NeedKind = "plan"     // the plan waits to be approved
	NeedConflict NeedKind = "conflict" // a merge that nobody could resolve
	NeedBlocked  NeedKind = "blocked"  // a task that failed its checks, or was blocked
	NeedDecision NeedKind = "decide"   // a task that was marked to wait for a person
	NeedBudget   NeedKind = "budget"
	NeedStall    NeedKind = "stalled"
	NeedRevive   NeedKind = "ended" // an agent that is not started again by itself
)

// A Need is one thing that waits for a person.
type Need struct {
	Kind   NeedKind
	Agent  string // whom it keeps, "" for none
	Task   string // what it is about, "" for none
	Text   string // in a line
	Since  time.Time
	Answer []string // the command line, without the program's name, that settles it; nil: none does
	Label  string   // what Answer does, in a word or two
}

// An Overlap tells that the work of two will conflict when it is merged.
type Overlap struct {
	A, B  string // agents; B is "merged" for what is merged already
	Path  string
	Where string // the lines of it, as A has the file
	Kind  string // of the conflict, in git's words
}

// A Message is one message to an agent and how far it has come.
type Message struct {
	ID    string
	Agent string
	From  string
	Kind  string
	State string
	Why   string
	Text  string
	Time  time.Time
}

// A Screen is what an agent's terminal shows.
type Screen struct {
	Cols, Rows int
	Lines      []string // with colours as SGR sequences; foreign text
	Ended      bool     // the agent's program has ended
	Err        string   // why there is nothing to be seen
}

// A Level says how much a line of the log matters.
type Level string

// The levels of a line.
const (
	LevelInfo Level = "info"
	LevelGood Level = "good"
	LevelWarn Level = "warn"
	LevelBad  Level = "bad"
)

// A Line is one thing that happened.
type Line struct {
	Time  time.Time
	Level Level
	Text  string
}

// working tells whether some agent is, so that ages run.
func (v View) working() bool {
	for _, a := range v.Agents {
		if a.State == AgentWorking {
			return true
		}
	}
	return false
}

// find finds an agent by its name.
func (v View) find(name string) (Agent, bool) {
	for _, a := range v.Agents {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// counts returns the number of tasks that count (cancelled ones do not), and
// of those in each state.
func (v View) counts() (total int, by map[TaskState]int) {
	by = make(map[TaskState]int)
	for _, t := range v.Tasks {
		by[t.State]++
		if t.State != TaskCancelled {
			total++
		}
	}
	return total, by
}
