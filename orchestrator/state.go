package orchestrator

import (
	"maps"
	"slices"
	"time"

	"muntin/agent/pty"
	"muntin/orchestrator/board"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// A TaskState is a task's mark on the board.
type TaskState string

// The marks of the board.
const (
	TaskOpen      TaskState = "open"
	TaskActive    TaskState = "active"
	TaskDone      TaskState = "done"
	TaskBlocked   TaskState = "blocked"
	TaskCancelled TaskState = "cancelled"
	TaskWaiting   TaskState = "waiting"
)

// A Task is one task of the board as the reducer needs it, in document order.
type Task struct {
	ID       string    `json:"id"`
	Text     string    `json:"text"`
	Body     string    `json:"body,omitempty"`
	State    TaskState `json:"state"`
	Names    []string  `json:"names,omitempty"` // @names: an agent, a role, or who claimed it
	After    []string  `json:"after,omitempty"`
	Check    string    `json:"check,omitempty"`
	Claim    string    `json:"claim,omitempty"`    // who has a task that is active
	Priority int       `json:"priority,omitempty"` // 1 is first; 0 is none
	Ready    bool      `json:"ready,omitempty"`    // open, and nothing it depends on is missing
	Group    bool      `json:"group,omitempty"`    // done when its children are; never given out
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"` // the agent that ticked it; empty: a person, or it is not known
}

// A Stage is how far the run has come with a task.
type Stage string

// The stages of a task that an agent has.
const (
	StageClaiming  Stage = "claiming"
	StagePreparing Stage = "preparing"
	StageResting   Stage = "resting" // it goes on with its next message, when its agent may have one
	StagePrompting Stage = "prompting"
	StageWorking   Stage = "working"
	StageChecking  Stage = "checking"
	StageKeeping   Stage = "keeping" // its checked tree is committed
	StagePassed    Stage = "passed"  // it waits for others, to be judged, or for the next step
	StageMerging   Stage = "merging"
	StageMarking   Stage = "marking"
)

// Work is what one agent has to do for a task. An agent has one at a time; a
// task can have several.
type Work struct {
	Task    string
	Agent   string
	Stage   Stage
	Attempt int            // checks and merges that failed so far
	Text    string         // the task as the agent was told it
	Tree    string         // the checkpoint that is being checked or merged
	On      worktree.Basis // of Tree
	Key     string         // the effect it waits for; empty while the agent works
	Since   time.Time
	Start   string // shared: the files when its first turn began
	Ticked  bool   // an agent ticked it, and that is being put back
	Next    Next   // of a resting task
	Filed   bool   // its message waits in the inbox of an agent that has ended
	Held    Held

	Reads   bool     // the agent judges what others made
	Ask     string   // a reader's prompt
	Verdict *Verdict // what the reader said with a command in this turn
	Commit  string   // of the checked tree, from StagePassed on
	Said    string   // the agent's last words
	Over    bool     // the agent leaves the task when what is under way has ended
}

// A Next is what an agent is told when it may go on.
type Next struct {
	Msg  pty.MessageKind
	Text string
}

// An Agent is one agent of the run as its event log shows it.
type Agent struct {
	Name       string
	Role       string
	Isolated   bool // it works in a worktree: its work is merged
	Shared     bool // in one with others
	State      pty.AgentState
	Since      time.Time
	Source     string
	Turn       int
	Task       string // the task it was given
	Seq        int64  // the last event seen
	Checkpoint *pty.CheckpointInfo
	Doing      string // its latest tool call, in a line
	Note       string
	After      []string // agents that have to have come before it gets anything to do
	Came       bool     // it was ready once; an assistant: has ended a turn well
	First      bool     // the recipe's first prompt is to be sent when those before it have come
	FirstKey   string   // the effect that sends it, while it is carried out
	Given      int      // its place in the order in which agents were given tasks
	Leaves     Leaving

	Restart Restart
	Silence Silence
	Pause   Pause            // its provider takes no more for now
	Asks    *pty.WaitingInfo // its turn waits for a person
	Limits  Budget
	Used    Budget
}

// A Phase says where the whole run stands.
type Phase string

// The phases of a run. It waits when nothing can go on without a person.
const (
	PhaseStarting Phase = "starting"
	PhaseRunning  Phase = "running"
	PhaseDone     Phase = "done"
	PhaseWaiting  Phase = "waiting"
)

// Settings are what a run was started with, as far as decisions need it.
type Settings struct {
	Run      string
	Attempts int    // failed checks before a task is blocked
	Check    string // the default check of a task
	RunCheck string // the check of the merged result
	Branch   string // where checked work is merged to
	Approval recipes.Approval

	Flow    Flow
	Notices []recipes.Event // those that hooks and people wait for

	MaxParallel int               // tasks at work at once; 0: as many as there are agents
	Stall       Stall             // when a silent agent is nudged
	Limits      Budget            // of the whole run
	Roles       map[string]Budget // of all agents of a role together
}

// A Fact is a line of the run's story, for people.
type Fact struct {
	Time  time.Time
	Agent string
	Good  bool
	Bad   bool
	Text  string
}

// maxFacts bounds the story that is kept in memory; the journal has all of it.
const maxFacts = 200

// A State is all that the reducer knows. It is a value: Reduce never changes
// the one that it was given.
type State struct {
	Settings Settings
	Order    []string // agents in the recipe's order
	Agents   map[string]Agent
	Tasks    []Task
	Rev      int64 // which reading of the board Tasks is
	Plan     board.Status
	Approve  string            // the effect that approves the plan, while it is carried out
	Works    map[string]Work   // what agents have to do, by agent
	Loops    []Task            // mode loop: what is done instead of the board's tasks
	Courses  map[string]Course // where tasks stand that go through several hands, by task
	Effects  int               // how many effects there have been; makes their keys
	Phase    Phase
	RunCheck RunCheck
	Radar    Radar
	Facts    []Fact
	Wake     time.Time           // when it wants to be told the time; zero: never
	Orphans  map[string]string   // the effects that give back tasks whose agents have ended, by task
	Requests map[string]struct{} // those of people that were taken, by id
	Recipe   string              // the mark of the recipe that was applied last; empty: that of the start
	Left     map[string]Agent    // agents that were removed, as they were

	Announced bool // it was told that all agents are ready
}

// RunCheck is the check of the merged result.
type RunCheck struct {
	Key    string // while it runs
	Commit string // what was checked
	Done   bool
	Passed bool
	Output string
}

// NewState is the state before the first input.
func NewState(settings Settings, agents []Agent) State {
	s := State{
		Settings: settings, Agents: map[string]Agent{}, Works: map[string]Work{}, Phase: PhaseStarting,
		Courses: map[string]Course{}, Orphans: map[string]string{}, Requests: map[string]struct{}{},
	}
	for _, a := range agents {
		a.State = pty.AgentStarting
		s.Order = append(s.Order, a.Name)
		s.Agents[a.Name] = a
	}
	return s
}

// Task returns the board's task of an id.
func (s State) Task(id string) (Task, bool) {
	i := slices.IndexFunc(s.Tasks, func(t Task) bool { return t.ID == id })
	if i < 0 {
		return Task{}, false
	}
	return s.Tasks[i], true
}

// WorkOn returns what agents have to do for a task, in the agents' order, without
// that of agents that are leaving it.
func (s State) WorkOn(task string) []Work {
	var list []Work
	for _, name := range s.atWork() {
		if w := s.Works[name]; w.Task == task && !w.Over {
			list = append(list, w)
		}
	}
	return list
}

// atWork names the agents that have something to do: in the recipe's order, and
// then those that were removed while something of theirs is still written down.
func (s State) atWork() []string {
	var names []string
	for _, name := range s.Order {
		if _, ok := s.Works[name]; ok {
			names = append(names, name)
		}
	}
	if len(names) < len(s.Works) {
		for _, name := range slices.Sorted(maps.Keys(s.Works)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// workOn is the first of WorkOn.
func (s State) workOn(task string) (Work, bool) {
	list := s.WorkOn(task)
	if len(list) == 0 {
		return Work{}, false
	}
	return list[0], true
}

// Count returns how many of the tasks that are given out are in a state.
func (s State) Count(state TaskState) int {
	n := 0
	for _, t := range s.Tasks {
		if !t.Group && t.State == state {
			n++
		}
	}
	return n
}

// clone copies what a step of the reducer may change.
func (s State) clone() State {
	s.Agents = maps.Clone(s.Agents)
	s.Works = maps.Clone(s.Works)
	s.Courses = maps.Clone(s.Courses)
	s.Orphans = maps.Clone(s.Orphans)
	s.Facts = slices.Clip(s.Facts)
	return s
}
