// Package tui is the interactive front end of the coding agent, for a pane.
//
// It is line-oriented: it writes the conversation into the terminal's scrollback
// and reads prompts as lines, which the terminal itself lets one edit. There is no
// full-screen editor yet. What follows from that: a line holds at most what the
// terminal's line editing takes (4096 bytes on Linux), a paste of several lines is
// several messages, and what was typed but not sent is not shown again after other
// output came between.
//
// Enter sends a prompt, or steers the turn that runs. Ctrl-C aborts that turn;
// while nothing runs, twice within two seconds leaves. Ctrl-D leaves when the
// prompts that wait are done.
//
// Prompts also come over a Link, from whoever supervises the pane. Nothing is
// written, and nothing wakes up, while nothing happens.
package tui

import (
	"context"
	"io"
	"os"
	"time"

	"muntin/agent/harness"
	"muntin/agent/session"
	"muntin/internal/term"
)

// quitWindow is how soon a second Ctrl-C must follow the first one to leave.
const quitWindow = 2 * time.Second

// An Agent is what the front end needs of the coding agent. *harness.Harness is
// one; its comments say what the methods do.
type Agent interface {
	PromptFrom(ctx context.Context, from session.Origin, text string) (harness.Outcome, error)
	Continue(ctx context.Context) (harness.Outcome, error)
	SteerFrom(from session.Origin, text string)
	Queued() int
	Knows(originID string) bool
	Expand(text string) (string, error)
	Abort()
}

// A Kind says what an incoming message wants.
type Kind string

// The kinds of messages. A prompt and a followup wait for the end of the turn
// that runs and begin one of their own; a steer goes into the turn that runs, or
// begins one; an abort ends it.
const (
	KindPrompt   Kind = "prompt"
	KindSteer    Kind = "steer"
	KindFollowUp Kind = "followup"
	KindAbort    Kind = "abort"
)

// An Incoming is a message that came over the Link.
type Incoming struct {
	ID   string // of the message; it is taken once only
	Kind Kind
	Text string
	From string // who sent it
}

// A ToolReport tells of one tool call that ended.
type ToolReport struct {
	Name     string
	Summary  string // one line: the command, the path
	IsError  bool
	Duration time.Duration
}

// A Link leads to whoever supervises the agent. Its methods may be called from
// several goroutines and should return soon: the agent waits for them. An empty id
// stands for a turn that a person began in the pane.
type Link interface {
	// Messages is where messages come from. When it is closed, there are no more,
	// and the front end goes on without.
	Messages() <-chan Incoming
	// Ready says that messages are taken from now on. It is called once.
	Ready(ctx context.Context) error
	// Accepted says that the message stands in the session, or was carried out.
	Accepted(id string)
	// Refused says that the message will not be taken.
	Refused(id, why string)
	// TurnStart says that a turn began with the message.
	TurnStart(id string)
	// Tool tells of the running turn's tool calls.
	Tool(t ToolReport)
	// TurnEnd says that the turn is over. err is why it did not end well; it
	// matches harness.ErrAborted after an abort.
	TurnEnd(id string, o harness.Outcome, err error)
}

// Options say how the front end looks and where it is. Out is needed.
type Options struct {
	In         io.Reader        // prompts, a line each; nil: none
	Out        io.Writer        // colours are brought down by this writer, see term.Streams
	Terminal   bool             // Out is a terminal: show a prompt mark and report the state to it
	Echo       bool             // In is a terminal: it has shown what was typed
	Width      func() int       // cells; nil: 80
	Interrupts <-chan os.Signal // Ctrl-C; nil: none
	Link       Link             // nil: none
	Theme      term.Theme
	Name       string // the agent's
	Model      string
	Dir        string
	First      string // a prompt to begin with; "": none
	Now        func() time.Time
}

// A UI is one interactive front end. Make it with New, give its OnEvent to
// harness.Open, then call Run, once.
type UI struct {
	opts   Options
	screen *screen
	turn   *turnLog
}

// New makes a front end that has not written anything yet.
func New(opts Options) *UI {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Width == nil {
		opts.Width = func() int { return term.DefaultWidth }
	}
	s := &screen{out: opts.Out, theme: opts.Theme, width: opts.Width, terminal: opts.Terminal, echo: opts.Echo}
	return &UI{opts: opts, screen: s, turn: &turnLog{link: opts.Link}}
}
