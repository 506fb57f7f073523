// Package dash draws the dashboard of a run: its tasks, its agents and what
// happened last. It draws plain data that it declares itself; the orchestrator
// fills it in.
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
	Log      []Line  // newest last
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
