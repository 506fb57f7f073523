package orchestrator

import (
	"time"

	"muntin/agent/pty"
	"muntin/orchestrator/board"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// An InputKind names what happened.
type InputKind string

// What can happen to a run.
const (
	InputBoard  InputKind = "board"  // the board was read
	InputAgent  InputKind = "agent"  // an agent's log has a new line
	InputResult InputKind = "result" // an effect came to its end
	InputLost   InputKind = "lost"   // an agent's supervisor has gone without a word
	InputPlan   InputKind = "plan"   // the plan was read
	InputTime   InputKind = "time"   // it is as late as State.Wake
	InputAsked  InputKind = "asked"  // a person asked for something
	InputBack   InputKind = "back"   // the run went back to a fleet point
	InputFleet  InputKind = "fleet"  // the recipe was changed
)

// An Input is one thing that happened. All inputs of a run are in its journal.
type Input struct {
	Kind  InputKind  `json:"kind"`
	Time  time.Time  `json:"time"`
	Rev   int64      `json:"rev,omitempty"` // board, and results that read it
	Tasks []Task     `json:"tasks,omitempty"`
	Agent string     `json:"agent,omitempty"`
	Event *pty.Event `json:"event,omitempty"`

	Key    string  `json:"key,omitempty"`
	Result *Result `json:"result,omitempty"`

	Plan *Plan `json:"plan,omitempty"`

	Heard   map[string]time.Time `json:"heard,omitempty"` // time: when agents gave their last sign of life
	Request *Request             `json:"request,omitempty"`
	Back    *Back                `json:"back,omitempty"`
	Fleet   *FleetChange         `json:"fleet,omitempty"`
}

// A Plan is a reading of PLAN.md.
type Plan struct {
	Status board.Status `json:"status"`
	Diff   string       `json:"diff,omitempty"` // to the last reading, as a unified diff; empty for the first
}

// A Result tells how an effect ended. OK means what was wanted is so; else
// Error, or Output and Conflicts, say why not.
type Result struct {
	OK        bool     `json:"ok"`
	Error     string   `json:"error,omitempty"`
	Output    string   `json:"output,omitempty"`
	Commit    string   `json:"commit,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	State     string   `json:"state,omitempty"`  // of a message
	Gone      bool     `json:"gone,omitempty"`   // the agent that was to have it has ended
	Notice    string   `json:"notice,omitempty"` // notice: why somebody was not told

	Clashes  []worktree.Conflict `json:"clashes,omitempty"`  // merge: both sides of the conflicts
	Also     []Also              `json:"also,omitempty"`     // merge: who else changed what it changed
	Overlaps []Overlap           `json:"overlaps,omitempty"` // overlap: all there are now
}

// An EffectKind names something to be done.
type EffectKind string

// What the orchestrator does.
const (
	EffectClaim    EffectKind = "claim"     // write the claim on the board
	EffectPrepare  EffectKind = "prepare"   // bring the agent's worktree to the run's branch
	EffectSend     EffectKind = "send"      // send a message to the agent
	EffectCheck    EffectKind = "check"     // run a task's check in the agent's worktree
	EffectMerge    EffectKind = "merge"     // commit the checked tree and merge it
	EffectMark     EffectKind = "mark"      // write a task's state on the board
	EffectRunCheck EffectKind = "run-check" // run the run's check on the merged result
	EffectNotice   EffectKind = "notice"    // tell hooks and people of an event
	EffectOverlap  EffectKind = "overlap"   // look for coming conflicts
	EffectApprove  EffectKind = "approve"   // write on the plan that it is approved
	EffectRestart  EffectKind = "restart"   // start the agent's supervisor again, in its pane
	EffectCommit   EffectKind = "commit"    // commit the checked tree on the agent's branch
	EffectFirst    EffectKind = "first"     // send the agent the recipe's first prompt
	EffectRecall   EffectKind = "recall"    // take back messages about the task that wait for the agent
)

// An Effect is one thing to be done. Carrying it out twice does no harm. Key
// names it in the journal and in its result; ID is a ULID that the loop gives
// it when it is journalled, so that a message sent again is the same message.
type Effect struct {
	Key   string          `json:"key"`
	ID    string          `json:"id,omitempty"`
	Kind  EffectKind      `json:"kind"`
	Task  string          `json:"task,omitempty"`
	Agent string          `json:"agent,omitempty"`
	Text  string          `json:"text,omitempty"`    // send: the message; check, run-check: the command; merge: the subject
	Msg   pty.MessageKind `json:"message,omitempty"` // send
	Tree  string          `json:"tree,omitempty"`    // merge
	Basis worktree.Basis  `json:"basis,omitzero"`    // merge: what Tree was on top of
	Base  string          `json:"base,omitempty"`    // merge: only what changed since this tree; empty: all
	Paths []string        `json:"paths,omitempty"`   // merge: only in these paths, with Base; none: all
	State TaskState       `json:"state,omitempty"`   // mark
	Why   string          `json:"why,omitempty"`     // mark: the reason
	On    recipes.Event   `json:"on,omitempty"`      // notice: the event
	Held  bool            `json:"held,omitempty"`    // mark: we may have set it to waiting ourselves

	Fresh  bool        `json:"fresh,omitempty"`  // prepare: leave nothing of earlier work in the worktree
	Commit string      `json:"commit,omitempty"` // prepare: with Fresh, what to put there; empty: what is merged
	Sides  []Candidate `json:"sides,omitempty"`  // prepare: the work to be read; the result's Output holds its changes
}
