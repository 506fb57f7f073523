package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"muntin/recipes"
)

// The exit codes of muntin, the same for every command.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitPerson      = 3 // a conflict, an approval, a held message: a person is needed
	ExitDeadline    = 124
	ExitInterrupted = 130
)

// An ExitError carries an exit code of its own. An empty message prints nothing.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Usage marks an error of the command line: exit code 2.
func Usage(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// NeedsPerson marks something that only a person can settle: exit code 3.
func NeedsPerson(err error) error { return &ExitError{Code: ExitPerson, Err: err} }

// Exit leaves with a code and without a message, when all has been said.
func Exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &ExitError{Code: code}
}

type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

// Hint adds what the user can do to an error; it is printed on a line of its own.
func Hint(err error, format string, args ...any) error {
	return &hinted{error: err, hint: fmt.Sprintf(format, args...)}
}

// HintOf returns the hint of an error, if it has one.
func HintOf(err error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}

// Code is the exit code for an error.
func Code(err error) int {
	var exit *ExitError
	var recipe *recipes.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &recipe):
		return ExitUsage
	case errors.Is(err, context.DeadlineExceeded):
		return ExitDeadline
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitFailed
}

func goos() string { return runtime.GOOS }
