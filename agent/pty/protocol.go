package pty

import (
	"encoding/json"
	"time"

	"muntin/agent/adapter"
)

// ProtocolVersion is what hello answers. docs/protocol.md describes it.
const ProtocolVersion = 1

// A MessageKind says what a message wants of the agent.
type MessageKind string

// The kinds of messages. A prompt waits until the agent is idle; a steer goes
// into the running turn; a followup waits for the end of the turn; an abort
// ends the turn.
const (
	KindPrompt   MessageKind = "prompt"
	KindSteer    MessageKind = "steer"
	KindFollowUp MessageKind = "followup"
	KindAbort    MessageKind = "abort"
)

// A Message is something sent to an agent: one file of its inbox. The ID is a
// ULID; a message is delivered exactly once by it.
type Message struct {
	ID   string      `json:"id"`
	Kind MessageKind `json:"kind"`
	Text string      `json:"text,omitempty"`
	From string      `json:"from,omitempty"` // "user", "orchestrator" or an agent's name
	Task string      `json:"task,omitempty"` // the task it is about
	Time time.Time   `json:"time"`

	Deadline *time.Time `json:"deadline,omitempty"` // it fails if it was not handed over by then
	RetryOf  string     `json:"retry_of,omitempty"` // the failed message whose text is sent again
}

// A MessageState is how far a message has come.
type MessageState string

// The states of a message, in their order. Done and failed are ends. Between
// held and delivered a message that is typed is "typing", for a moment.
const (
	StateQueued    MessageState = "queued"
	StateHeld      MessageState = "held"
	StateDelivered MessageState = "delivered"
	StateAccepted  MessageState = "accepted"
	StateDone      MessageState = "done"
	StateFailed    MessageState = "failed"

	stateTyping MessageState = "typing" // its paste may have begun: it is never typed again
)

// Ended reports whether nothing more will happen to the message.
func (s MessageState) Ended() bool { return s == StateDone || s == StateFailed }

// Reached reports whether s is at or behind want on the way queued → done.
func (s MessageState) Reached(want MessageState) bool { return rank[s] >= rank[want] }

//nolint:gochecknoglobals // a constant table
var rank = map[MessageState]int{
	StateQueued: 1, StateHeld: 1, stateTyping: 2, StateDelivered: 3, StateAccepted: 4, StateDone: 5, StateFailed: 5,
}

// An AgentState is what the agent is doing, as far as its supervisor saw.
type AgentState string

// What an agent is doing. Unknown is an honest answer.
const (
	AgentStarting AgentState = "starting"
	AgentIdle     AgentState = "idle"
	AgentWorking  AgentState = "working"
	AgentExited   AgentState = "exited"
	AgentUnknown  AgentState = "unknown"
)

// An EventKind names a line of events.jsonl.
type EventKind string

// What a supervisor sees and writes down.
const (
	EventStart            EventKind = "start"
	EventReady            EventKind = "ready"
	EventMessage          EventKind = "message"
	EventTurnStart        EventKind = "turn_start"
	EventTool             EventKind = "tool"
	EventCheckpoint       EventKind = "checkpoint"
	EventCheckpointFailed EventKind = "checkpoint_failed"
	EventTurnEnd          EventKind = "turn_end"
	EventWaiting          EventKind = "waiting"
	EventLimit            EventKind = "limit"
	EventUsage            EventKind = "usage"
	EventWarning          EventKind = "warning"
	EventExit             EventKind = "exit"
)

// An Event is one line of events.jsonl. Seq counts from 1 without gaps, across
// restarts of the supervisor. A turn's checkpoint is written before its
// turn_end, so whoever reads a turn_end finds the commit in it.
type Event struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Kind EventKind `json:"kind"`
	Turn int       `json:"turn,omitempty"` // counts from 1, across restarts

	Start      *StartInfo      `json:"start,omitempty"`
	Ready      *ReadyInfo      `json:"ready,omitempty"`
	Message    *MessageInfo    `json:"message,omitempty"`
	TurnStart  *TurnStartInfo  `json:"turn_start,omitempty"`
	Tool       *ToolInfo       `json:"tool,omitempty"`
	Checkpoint *CheckpointInfo `json:"checkpoint,omitempty"`
	TurnEnd    *TurnEndInfo    `json:"turn_end,omitempty"`
	Waiting    *WaitingInfo    `json:"waiting,omitempty"`
	Limit      *LimitInfo      `json:"limit,omitempty"`
	Usage      *UsageInfo      `json:"usage,omitempty"`
	Warning    *WarningInfo    `json:"warning,omitempty"`
	Exit       *ExitInfo       `json:"exit,omitempty"`
	Error      string          `json:"error,omitempty"` // checkpoint_failed, exit without a start
}

// StartInfo tells what was started.
type StartInfo struct {
	Argv     []string `json:"argv"`
	Dir      string   `json:"dir"`
	PID      int      `json:"pid"` // the supervisor's
	ChildPID int      `json:"child_pid"`
	Adapter  string   `json:"adapter"`
}

// ReadyInfo tells how it was seen that the agent takes prompts.
type ReadyInfo struct {
	Source     adapter.Evidence   `json:"source"`
	Confidence adapter.Confidence `json:"confidence,omitempty"` // with the source screen
}

// MessageInfo is a step in a message's life.
type MessageInfo struct {
	ID       string           `json:"id"`
	Kind     MessageKind      `json:"kind"`
	State    MessageState     `json:"state"`
	From     string           `json:"from,omitempty"`
	Task     string           `json:"task,omitempty"`
	Text     string           `json:"text,omitempty"` // with queued only
	Evidence adapter.Evidence `json:"evidence,omitempty"`
	Why      string           `json:"why,omitempty"` // held, failed
}

// Ended tells whether the message failed with the end of the agent's program, or
// of its supervisor.
func (i MessageInfo) Ended() bool {
	switch i.Why {
	case whyTyped, whyAccepted, whyNoAnswer, whyInTurn:
		return i.State == StateFailed
	}
	return false
}

// TurnStartInfo names the message that began a turn; empty for a turn that a
// person began in the pane.
type TurnStartInfo struct {
	Message    string             `json:"message,omitempty"`
	Task       string             `json:"task,omitempty"`
	Source     adapter.Evidence   `json:"source"`
	Confidence adapter.Confidence `json:"confidence,omitempty"` // with the source screen
}

// ToolInfo is one tool call of a turn, where the agent tells of them.
type ToolInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"` // one line: the command, the path
	IsError bool   `json:"is_error,omitempty"`
	MS      int64  `json:"ms,omitempty"`
}

// WaitingFor is what an agent waits for a person for.
type WaitingFor string

// What an agent waits for; WaitNothing says that it goes on.
const (
	WaitApproval WaitingFor = "approval"
	WaitQuestion WaitingFor = "question"
	WaitNothing  WaitingFor = "nothing"
)

// WaitingInfo says that a running turn stands still until a person answers, or
// that it does not any more.
type WaitingInfo struct {
	For        WaitingFor         `json:"for"`
	Text       string             `json:"text,omitempty"` // the question, where it is known
	Source     adapter.Evidence   `json:"source"`
	Confidence adapter.Confidence `json:"confidence,omitempty"` // with the source screen
}

// LimitInfo says that the agent's provider takes no more requests for now.
type LimitInfo struct {
	Kind       adapter.LimitKind  `json:"kind,omitempty"` // where it is known
	Text       string             `json:"text,omitempty"`
	RetryAt    *time.Time         `json:"retry_at,omitempty"` // where the provider said when
	Source     adapter.Evidence   `json:"source"`
	Confidence adapter.Confidence `json:"confidence,omitempty"` // with the source screen
}

// Resources are what the processes of an agent hold: all that stem from its
// first one, and all of its session.
type Resources struct {
	Memory    int64 `json:"memory,omitempty"` // bytes in main memory; a page that several share counts for each; 0 where the system does not tell
	Processes int   `json:"processes"`
}

// UsageInfo tells of a turn that goes on what it has used by now. It comes
// only where Options.Limits asks for it.
type UsageInfo struct {
	Usage     *Usage     `json:"usage,omitempty"`     // of the turn so far, where the agent tells
	Resources *Resources `json:"resources,omitempty"` // now, where the system tells
}

// WarningInfo is something that stops nothing and that a person should know.
type WarningInfo struct {
	Text string `json:"text"`
}

// CheckpointInfo names the checkpoint of a turn.
type CheckpointInfo struct {
	ID     int    `json:"id"` // its number on the agent's chain
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	Ref    string `json:"ref"`
	Files  int    `json:"files"` // changed since the checkpoint before
	Cause  string `json:"cause"`

	// What the files were on top of: HEAD's commit, and those that a merge was open with.
	Head    string   `json:"head,omitempty"`
	Merging []string `json:"merging,omitempty"`
}

// A TurnReason says how a turn ended.
type TurnReason string

// How a turn ended.
const (
	TurnDone    TurnReason = "done"
	TurnError   TurnReason = "error"
	TurnAborted TurnReason = "aborted"
	TurnExited  TurnReason = "exited" // the agent's process ended in the turn
)

// TurnEndInfo tells how a turn ended and what it used.
type TurnEndInfo struct {
	Message    string           `json:"message,omitempty"`
	Task       string           `json:"task,omitempty"`
	Reason     TurnReason       `json:"reason"`
	Error      string           `json:"error,omitempty"`
	Text       string           `json:"text,omitempty"` // the agent's last words, at most 4 KiB
	Entry      string           `json:"entry,omitempty"`
	DurationMS int64            `json:"duration_ms"`
	Usage      *Usage           `json:"usage,omitempty"`
	Resources  *Resources       `json:"resources,omitempty"` // at its end, where Options.Limits asks for them
	Checkpoint *CheckpointInfo  `json:"checkpoint,omitempty"`
	Source     adapter.Evidence `json:"source"`

	Confidence adapter.Confidence `json:"confidence,omitempty"` // with the source screen
}

// Usage counts what a turn used, where the agent tells.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`

	Cost float64 `json:"cost,omitempty"` // in US dollars
}

// ExitInfo tells how the agent's process ended.
type ExitInfo struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	// Ended is the signal that the supervisor itself was sent, for which it ended the
	// agent: its pane went away, or somebody ended it. Empty: the agent ended by
	// itself, or a client asked for it.
	Ended string `json:"ended,omitempty"`
}

// An Op names a request on the supervisor's socket.
type Op string

// The requests. Attach turns the connection into the built-in agent's link:
// the supervisor sends deliver frames on it and takes report frames from it.
const (
	OpHello     Op = "hello"
	OpStatus    Op = "status"
	OpSend      Op = "send"
	OpCancel    Op = "cancel"
	OpSubscribe Op = "subscribe"
	OpScreen    Op = "screen"
	OpResize    Op = "resize"
	OpStop      Op = "stop"
	OpAttach    Op = "attach"
	OpDeliver   Op = "deliver"
	OpReport    Op = "report"
	OpHook      Op = "hook"
)

// A Frame is one line on the socket, in either direction.
type Frame struct {
	ID      int64    `json:"id,omitempty"` // a reply carries its request's
	Op      Op       `json:"op,omitempty"`
	Version int      `json:"version,omitempty"`
	OK      bool     `json:"ok,omitempty"`
	Error   string   `json:"error,omitempty"`
	From    int64    `json:"from,omitempty"` // subscribe: the first seq wanted; the answer to send: the first that can come after it
	Message *Message `json:"message,omitempty"`
	Status  *Status  `json:"status,omitempty"`
	Event   *Event   `json:"event,omitempty"`
	Report  *Report  `json:"report,omitempty"`

	Info *MessageInfo `json:"info,omitempty"` // the answer to send and cancel: how far the message is

	Cancel string  `json:"cancel,omitempty"` // cancel: the message's id
	Output *Output `json:"output,omitempty"` // subscribe: the offset wanted; then the output
	Style  bool    `json:"style,omitempty"`  // screen: with colours and attributes, as SGR sequences
	Screen *Screen `json:"screen,omitempty"`
	Size   *Size   `json:"size,omitempty"` // resize

	Hook *adapter.HookInput `json:"hook,omitempty"` // hook: what an outside agent's hook was given
}

// Output is a piece of what the agent printed: text, with the secrets left out.
type Output struct {
	Offset int64  `json:"offset"` // of Data; in a request: the first one wanted, -1 for what comes from now on
	Data   string `json:"data,omitempty"`
	Lost   int64  `json:"lost,omitempty"` // bytes between the last piece and this one that are not kept any more
	End    bool   `json:"end,omitempty"`  // the agent has ended; nothing follows
}

// Screen is what the agent's terminal shows.
type Screen struct {
	Cols      int      `json:"cols"`
	Rows      int      `json:"rows"`
	Lines     []string `json:"lines"` // without trailing blanks; foreign text
	Col       int      `json:"col"`   // the cursor, from 0
	Row       int      `json:"row"`
	Hidden    bool     `json:"hidden,omitempty"` // the cursor is not shown
	Title     string   `json:"title,omitempty"`
	Alternate bool     `json:"alternate,omitempty"` // the alternate screen is on
	Partial   bool     `json:"partial,omitempty"`   // older output that may still show was left out
	Offset    int64    `json:"offset"`              // of the output behind it
}

// Size is that of a terminal, in cells.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Status is a supervisor's answer to what the agent does now.
type Status struct {
	Run     string           `json:"run"`
	Agent   string           `json:"agent"`
	PID     int              `json:"pid"`
	State   AgentState       `json:"state"`
	Since   time.Time        `json:"since"`
	Source  adapter.Evidence `json:"source"`
	Turn    int              `json:"turn"`
	Message string           `json:"message,omitempty"`
	Task    string           `json:"task,omitempty"`
	Queued  int              `json:"queued"`
	Held    bool             `json:"held,omitempty"`    // the next one waits for the person in the pane
	Waiting *WaitingInfo     `json:"waiting,omitempty"` // the turn waits for a person
	Limit   *LimitInfo       `json:"limit,omitempty"`   // its provider took no more, and no turn has gone well since
	Title   string           `json:"title,omitempty"`   // that the program gave itself last; foreign text
	Seq     int64            `json:"seq"`
	Output  int64            `json:"output"` // offset behind the last output

	Confidence adapter.Confidence `json:"confidence,omitempty"` // in the state, with the source screen

	Signals      []adapter.SignalKind `json:"signals,omitempty"`      // kinds of those that an outside agent has given
	Conversation string               `json:"conversation,omitempty"` // id of an outside agent's, where it is known
}

// A ReportKind names what the built-in agent tells its supervisor.
type ReportKind string

// What the built-in agent reports on its link.
const (
	ReportReady     ReportKind = "ready"
	ReportAccepted  ReportKind = "accepted"
	ReportRefused   ReportKind = "refused"
	ReportTurnStart ReportKind = "turn_start"
	ReportTool      ReportKind = "tool"
	ReportTurnEnd   ReportKind = "turn_end"
	ReportWaiting   ReportKind = "waiting"
	ReportLimit     ReportKind = "limit"
)

// A Report is one of the built-in agent's statements. Message is the id of the
// message it is about, empty for a turn that a person began in the pane.
type Report struct {
	Kind    ReportKind   `json:"kind"`
	Message string       `json:"message,omitempty"`
	Why     string       `json:"why,omitempty"` // refused
	Tool    *ToolInfo    `json:"tool,omitempty"`
	TurnEnd *TurnEndInfo `json:"turn_end,omitempty"`
	Waiting *WaitingInfo `json:"waiting,omitempty"`
	Limit   *LimitInfo   `json:"limit,omitempty"`
}

// encode makes one line of a frame.
func encode(f Frame) ([]byte, error) {
	line, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), nil
}
