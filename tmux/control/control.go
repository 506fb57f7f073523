// Package control speaks tmux's control mode (tmux(1), CONTROL MODE): one
// client process stays attached, takes commands as lines on its standard input
// and sends replies and notifications as lines on its standard output.
//
// A Conn is one such client, from Dial to its end. Commands are pipelined: any
// number of goroutines may have commands under way, each gets the replies of
// its own. Replies cannot be told apart by counting, because if-shell and hooks
// add some, so every command is followed by a marker that nobody else knows;
// text that looks like the protocol in a reply is therefore only text.
//
// The reader never waits for anybody: notifications go into a bounded queue,
// and when that is full it is emptied and a Resync stands in its place. A
// Client keeps a Conn, and makes a new one when it is lost.
//
// The package needs tmux 3.2 or later.
package control

import (
	"errors"
	"time"
)

var (
	// ErrDown means: there is no connection; nothing was sent.
	ErrDown = errors.New("no control connection to tmux")
	// ErrLost means: the connection ended after the commands were sent and before
	// they were answered; they may have been carried out or not.
	ErrLost = errors.New("the control connection to tmux was lost before a reply")
	// ErrStalled means: the server has not answered for ten seconds.
	ErrStalled = errors.New("the tmux server does not answer")
)

// An Error is tmux's refusal of a command.
type Error struct {
	Command string // "split-window"
	Text    string // what tmux said
}

func (e *Error) Error() string { return "tmux " + e.Command + ": " + e.Text }

// A Kind says what an Event tells.
type Kind int

const (
	// Output means: the program in Pane wrote Data. It is raw: it may end within a
	// character or an escape sequence.
	Output Kind = iota + 1
	// Paused means: the client fell behind with Pane (flag pause-after); what it
	// wrote since is not coming.
	Paused
	// Continued means: output of Pane comes again.
	Continued
	// Subscription means: the value of the subscription Name is now Text.
	Subscription
	// Structure means: sessions, windows or panes came, went or changed; Name is
	// the notification without its '%', Text its arguments.
	Structure
	// Notice means: any other notification; Name and Text as with Structure.
	Notice
	// Reply means: commands that were sent with Queue are done; see Tag.
	Reply
	// Resync means: Dropped events were dropped, because nobody took them. What
	// they told must be looked up.
	Resync
	// Up means: a Client is connected again; what happened since Down must be
	// looked up.
	Up
	// Down means: a Client's connection was lost (Err); it tries again.
	Down
	// Gone means: a Client has given up (Err). It is the last event.
	Gone
)

// An Event is one thing that tmux told. Only the fields that its Kind names
// are set.
type Event struct {
	Kind    Kind
	Pane    string        // "%1"
	Age     time.Duration // how long the output lay in the server, where it says so
	Data    []byte
	Name    string
	Text    string
	Tag     int      // of Queue
	Replies []string // of Queue
	Dropped int
	Err     error
}

// Stats count what a Conn has seen.
type Stats struct {
	Unknown int // lines that are no part of the protocol, such as a hook's output
	Dropped int // events dropped because nobody took them
}
