// Package tmux drives one tmux server through typed commands that check what
// they did. Targets are ids and never names' prefixes, indexes or "the active
// pane"; a target that is not there is an error; text from outside is escaped
// before tmux sees it, and no shell takes part.
//
// A Server is bound to one server process (its Epoch) as soon as one is known.
// When that process is gone or another has taken its socket, every method
// says so (ErrNoServer, ErrStale) and touches nothing; Reopen starts anew. A
// Server may be used by several goroutines at once.
//
// Strings handed to tmux must not hold secrets: user options, environments
// and titles can be read by every process of the same user.
package tmux

import (
	"errors"
	"fmt"
	"strings"

	ident "muntin/internal/id"
)

// Errors that a caller may test for with errors.Is.
var (
	// ErrNoTmux: the tmux binary is not there.
	ErrNoTmux = errors.New("tmux is not installed")
	// ErrTooOld: the binary or the running server is older than 3.2.
	ErrTooOld = errors.New("tmux is older than 3.2")
	// ErrNoServer: no server answers on the socket.
	ErrNoServer = errors.New("no tmux server is running")
	// ErrStale: another server process than the one meant answers on the socket.
	ErrStale = errors.New("the tmux server was restarted since")
	// ErrNoSuchSession, ErrNoSuchWindow, ErrNoSuchPane: the target is not there.
	ErrNoSuchSession = errors.New("no such tmux session")
	ErrNoSuchWindow  = errors.New("no such tmux window")
	ErrNoSuchPane    = errors.New("no such tmux pane")
	// ErrExists: a session of that name is there already.
	ErrExists = errors.New("a tmux session of that name exists")
	// ErrNoSpace: the window is too small for one more pane.
	ErrNoSpace = errors.New("no space for a new pane")
	// ErrDeadPane: the pane's program has ended, so it takes no input.
	ErrDeadPane = errors.New("the program in the pane has ended")
	// ErrInputOff: the pane was set not to take input (select-pane -d).
	ErrInputOff = errors.New("the pane's input is switched off")
	// ErrForeign: the server, or a session on it, was not made by this package.
	ErrForeign = errors.New("not ours")
)

type (
	// A SessionID is a session's id as tmux prints it: "$1". Like the other
	// ids it means something only within one Epoch.
	SessionID string
	// A WindowID is a window's id: "@1".
	WindowID string
	// A PaneID is a pane's id: "%1".
	PaneID string
)

// An Epoch is the identity of one server process. Ids restart at 0 with the
// server, so an id without its epoch can name the wrong pane.
type Epoch struct {
	Socket string `json:"socket"` // absolute path, as the server reports it
	PID    int    `json:"pid"`
	Start  int64  `json:"start"` // Unix seconds
}

// A PaneRef is a pane of one server process: the only address of a pane that
// is safe to keep and to hand to another process.
type PaneRef struct {
	Epoch Epoch  `json:"epoch"`
	ID    PaneID `json:"id"`
}

func (id SessionID) check() error { return checkID(string(id), '$', ErrNoSuchSession) }
func (id WindowID) check() error  { return checkID(string(id), '@', ErrNoSuchWindow) }
func (id PaneID) check() error    { return checkID(string(id), '%', ErrNoSuchPane) }

func checkID(id string, sigil byte, kind error) error {
	if len(id) < 2 || id[0] != sigil || !ident.Word(id[1:], ident.Digits, ident.Digits, 10) {
		return fmt.Errorf("id %q: %w", id, kind)
	}
	return nil
}

// A CommandError is tmux's refusal of one command. Its text names the command
// but not its arguments, which may be a person's words. It unwraps to one of
// the package's sentinels where tmux's message tells which.
type CommandError struct {
	Command string // "split-window"
	Text    string // what tmux said
}

func (e *CommandError) Error() string { return "tmux " + e.Command + ": " + e.Text }

// Unwrap returns the sentinel that the message stands for, or nil.
func (e *CommandError) Unwrap() error {
	for _, m := range messages {
		if strings.Contains(e.Text, m.part) {
			return m.err
		}
	}
	return nil
}

// messages maps parts of tmux's messages (3.2 to 3.7) to what they mean. The
// last part of each target message is the target, which we know.
//
//nolint:gochecknoglobals // a constant table
var messages = []struct {
	part string
	err  error
}{
	{"no server running on", ErrNoServer},
	{"error connecting to", ErrNoServer},
	{"server exited", ErrNoServer},
	{"lost server", ErrNoServer},
	{noSessions, ErrNoServer},
	{"no current target", ErrNoServer}, // it has no session left and is about to exit
	{"can't find pane", ErrNoSuchPane},
	{"no such pane", ErrNoSuchPane},
	{"can't find window", ErrNoSuchWindow},
	{"no such window", ErrNoSuchWindow},
	{"can't find session", ErrNoSuchSession},
	{"no such session", ErrNoSuchSession},
	{"duplicate session", ErrExists},
	{"can't find client", ErrNoSuchClient},
	{"no buffer", ErrNoSuchBuffer},
	{"unknown buffer", ErrNoSuchBuffer},
	{"no space for", ErrNoSpace},
	{"pane too small", ErrNoSpace},
}
