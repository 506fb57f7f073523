package llm

import (
	"errors"
	"fmt"
	"time"
)

// A Class says what can be done about a failure.
type Class string

// The classes of failure. Only ClassRetryable is worth the same request again;
// ClassOverflow is worth a shorter one.
const (
	ClassRetryable Class = "retryable" // rate limit, overload, network, a silent or cut stream
	ClassOverflow  Class = "overflow"  // the request does not fit the model's window
	ClassAuth      Class = "auth"      // no key, a bad key, or one without the right
	ClassQuota     Class = "quota"     // money or a plan's allowance is used up
	ClassInvalid   Class = "invalid"   // the request or the set-up is wrong
	ClassAborted   Class = "aborted"   // the caller's context ended
	ClassOther     Class = "other"     // nothing is known; treated as not retryable
)

// An Error is a classified failure of a provider. Message is for people and
// never holds a key.
type Error struct {
	Class      Class
	Status     int           // HTTP status; 0 when there was none
	RetryAfter time.Duration // what the server asked for; 0 when it asked for nothing
	Message    string
	Err        error // the cause, when there is one
}

// Error gives the message, with the HTTP status when there is one.
func (e *Error) Error() string {
	text := e.Message
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	if text == "" {
		text = "no reason given"
	}
	if e.Status != 0 {
		return fmt.Sprintf("HTTP %d: %s", e.Status, text)
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// RetryAfter gives how long the server asked to wait, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
