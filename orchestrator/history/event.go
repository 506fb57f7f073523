// Package history reads what happened in a run as one ordered stream: the
// orchestrator's journal, the agents' event logs, the board's log and the
// checkpoints that people made. It reads only; nothing is locked or written.
//
// The order is by time, and within a source by the source's own order, even
// where a clock was put back. Times of different processes are those of one
// machine's clock.
package history

import (
	"time"

	"muntin/agent/pty"
	"muntin/checkpoint"
	"muntin/orchestrator"
	"muntin/orchestrator/board"
)

// A Kind says what an event is about.
type Kind string

// The kinds of events.
const (
	KindRun        Kind = "run"        // started; then its phases
	KindAgent      Kind = "agent"      // started, ready, ended, lost
	KindPrompt     Kind = "prompt"     // a message was queued; Text is what it says
	KindMessage    Kind = "message"    // what became of it: held, delivered, accepted, done, failed
	KindTurn       Kind = "turn"       // started, done, error, aborted, exited
	KindTool       Kind = "tool"       // used, failed
	KindUsage      Kind = "usage"      // what a turn has used so far
	KindWaiting    Kind = "waiting"    // approval, question, nothing
	KindLimit      Kind = "limit"      // of its provider
	KindWarning    Kind = "warning"    //
	KindCheckpoint Kind = "checkpoint" // its cause, or failed
	KindRollback   Kind = "rollback"   // a person put files back
	KindBoard      Kind = "board"      // a task changed on the board
	KindPlan       Kind = "plan"       // the plan changed; What is its status
	KindClaim      Kind = "claim"      // started, ok, failed
	KindCheck      Kind = "check"      // started, passed, failed; without a task it is the run's
	KindMerge      Kind = "merge"      // started, merged, conflict, failed
	KindRestart    Kind = "restart"    // started, ok, failed
	KindOverlap    Kind = "overlap"    // agents change the same lines
	KindRequest    Kind = "request"    // a person asked the orchestrator for something
	KindEffect     Kind = "effect"     // any other thing that the orchestrator did
)

// Kinds are all kinds, in the order in which the documentation has them.
func Kinds() []Kind {
	return []Kind{
		KindRun, KindAgent, KindPrompt, KindMessage, KindTurn, KindTool, KindUsage, KindWaiting, KindLimit, KindWarning, KindCheckpoint,
		KindRollback, KindBoard, KindPlan, KindClaim, KindCheck, KindMerge, KindRestart, KindOverlap, KindRequest, KindEffect,
	}
}

// Person and Orchestrator are who does something when no agent does.
const (
	Person       = "person"
	Orchestrator = "orchestrator"
)

// An Event is one thing that happened. Text is foreign: clean it before it is
// shown. One of the last group holds the event as its source has it.
type Event struct {
	Time   time.Time `json:"time"`
	Source string    `json:"source"` // "run", "journal", "board", "agent/<name>", "checkpoints/<name>"
	Seq    int64     `json:"seq"`    // grows within the source
	Kind   Kind      `json:"kind"`
	What   string    `json:"what"` // see the kinds
	Agent  string    `json:"agent,omitempty"`
	Task   string    `json:"task,omitempty"`
	Turn   int       `json:"turn,omitempty"`
	Who    string    `json:"who,omitempty"` // Person, Orchestrator, an agent; empty where it is not known
	ID     string    `json:"id,omitempty"`  // of a message; the key of an effect
	Text   string    `json:"text,omitempty"`

	Log     *pty.Event             `json:"log,omitempty"`
	Effect  *orchestrator.Effect   `json:"effect,omitempty"` // also with its Result
	Result  *orchestrator.Result   `json:"result,omitempty"`
	Request *orchestrator.Request  `json:"request,omitempty"`
	Plan    *orchestrator.Plan     `json:"plan,omitempty"`
	Changes []board.Change         `json:"changes,omitempty"`
	Saved   *checkpoint.Checkpoint `json:"saved,omitempty"`

	at   time.Time // what it is ordered by: never before the one before it in its source
	next int64     // the source's position behind it
}

// Bad tells whether the event is of something that went wrong.
func (e Event) Bad() bool {
	switch e.What {
	case "failed", "error", "conflict", "lost", string(pty.TurnAborted), string(pty.TurnExited):
		return true
	}
	return e.Kind == KindLimit || e.Kind == KindWarning
}
