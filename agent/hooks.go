package agent

import (
	"context"
	"encoding/json"

	"muntin/agent/llm"
)

// Hooks are places where an embedder may step in. Any may be nil. All are called
// in turn by the run, none beside another or beside OnEvent. A hook must return
// soon after ctx ends; the run waits for it. A hook must not keep or change the
// slices it is given.
type Hooks struct {
	// PrepareTurn is called before every request, after the waiting messages
	// were delivered. It may return a new transcript, as compaction does; nil
	// keeps the present one. An error ends the run.
	PrepareTurn func(ctx context.Context, messages []llm.Message) ([]llm.Message, error)

	// TransformContext changes what one request shows to the model, and nothing
	// else. It is called after PrepareTurn. An error ends the run.
	TransformContext func(ctx context.Context, messages []llm.Message) ([]llm.Message, error)

	// BeforeTool is called for each call that is about to run, in the order of
	// the calls, after validation. An error becomes the call's error result.
	BeforeTool func(ctx context.Context, call ToolCall) (Verdict, error)

	// AfterTool may change the result of a call that ran, in the order in which
	// the calls end. An error becomes the call's error result.
	AfterTool func(ctx context.Context, call ToolCall, result ToolResult) (ToolResult, error)

	// FinishTurn is called before turn_end of a turn that did not fail.
	FinishTurn func(ctx context.Context, turn Turn) (Action, error)

	// Overflow is called when the request did not fit the model's window. It may
	// return a shorter transcript, with which the request is made again, or nil
	// to give up. It is called at most once between two good responses.
	Overflow func(ctx context.Context, cause error, messages []llm.Message) ([]llm.Message, error)
}

// A ToolCall is one call of the model.
type ToolCall struct {
	ID      string
	Name    string
	Args    json.RawMessage // validated
	Message llm.Message     // the message that holds the call
}

// A Verdict says what becomes of a call. The zero value lets it run.
type Verdict struct {
	Block     bool
	Reason    string          // for the model, when Block
	Terminate bool            // as in ToolResult, when Block
	Args      json.RawMessage // when not nil, used in place of the call's; not validated again
}

// A Turn is one response and the results of its tool calls.
type Turn struct {
	Message     llm.Message
	ToolResults []llm.Message
}

// An Action says how the run goes on after a turn.
type Action int

// What FinishTurn may decide.
const (
	ActionDefault  Action = iota // go on when there were tool calls or something is queued
	ActionContinue               // make at least one more request
	ActionEnd                    // end the run; queues are kept
)
