package agent

import (
	"errors"
	"fmt"

	"muntin/agent/llm"
)

// Errors that a caller may test for.
var (
	// ErrBusy: the agent is running, and what was asked for needs it idle.
	ErrBusy = errors.New("the agent is running")
	// ErrAborted: the run was ended by Abort or by the caller's context.
	ErrAborted = errors.New("the run was aborted")
	// ErrNothingToContinue: the last message is a finished answer, and nothing is queued.
	ErrNothingToContinue = errors.New("nothing to continue from")
)

// A ModelError says that a run ended because no response could be had: the model
// failed and retries did not help, or a hook failed before the request. Message
// is the failed message as it stands in the transcript. llm.Classify tells the
// class of the cause.
type ModelError struct {
	Message llm.Message
	Err     error
}

// Error gives the cause.
func (e *ModelError) Error() string { return fmt.Sprintf("getting a response: %v", e.Err) }

// Unwrap gives the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// An EventError says that a run ended because OnEvent returned an error for an
// event of this type.
type EventError struct {
	Type EventType
	Err  error
}

// Error names the event and the cause.
func (e *EventError) Error() string { return fmt.Sprintf("handling event %s: %v", e.Type, e.Err) }

// Unwrap gives the cause.
func (e *EventError) Unwrap() error { return e.Err }
