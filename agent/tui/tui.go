// Package tui is the interactive front end of the coding agent, for a pane.
//
// On a terminal it draws on the main screen: the conversation goes into the
// terminal's own scrollback, once, and below it a small region shows what streams
// in, what runs and what waits, the editor and a status line. The plain display
// (Options.Live is false) writes lines and reads lines, for screen readers, dumb
// terminals and pipes; there a line holds at most what the terminal's line editing
// takes (4096 bytes on Linux), and a paste of several lines is several messages.
//
// Enter sends a prompt, or steers the turn that runs; /hotkeys and /help tell the
// rest. Prompts also come over a Link, from whoever supervises the pane. Nothing is
// written, and nothing wakes up, while nothing happens.
package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/internal/term"
)

// quitWindow is how soon a second Ctrl-C must follow the first one to leave.
const quitWindow = 2 * time.Second

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
	// matches harness.ErrAborted after an abort, and ErrEnding when the process
	// was told to end.
	TurnEnd(id string, o harness.Outcome, err error)
	// Waits says that a person is asked something; "" that this is over.
	Waits(question string)
}

// ErrEnding says that a turn was cut off because the process was told to end:
// nobody wanted the turn itself to stop.
var ErrEnding = errors.New("the agent's process was told to end")

// Options say how the front end looks and where it is. Out is needed; with Live
// also In, which must be a terminal, Tty and Size.
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
	Host       Host

	Live    bool                       // draw on the terminal; else write lines
	Tty     *os.File                   // what Out goes to
	Size    func() (width, height int) // of it, in cells
	Env     []string                   // os.Environ(), for TERM and for programs that are started
	History string                     // the file of what was sent before; "": none is kept

	commands func() []Command
}

// A UI is one interactive front end. Make it with New, Attach it to what
// harness.Open gets, then call Run, once. It implements harness.UI.
type UI struct {
	opts    Options
	display display
	turn    *turnLog
	cost    *purse
	asks    *asks
	sent    chan struct{}                   // an extension has sent messages
	present atomic.Pointer[harness.Harness] // exchanged by commands that need that no turn runs

	told     sync.Mutex // guards statuses
	statuses []harness.Status
}

// New makes a front end that has not written anything yet.
func New(opts Options) *UI {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Width == nil {
		opts.Width = func() int { return term.DefaultWidth }
	}
	u := &UI{opts: opts, turn: &turnLog{link: opts.Link}, cost: &purse{}, asks: newAsks(), sent: make(chan struct{}, 1)}
	if opts.Live {
		u.display = newFull(opts)
	} else {
		u.display = &screen{in: opts.In, out: opts.Out, theme: opts.Theme, width: opts.Width, terminal: opts.Terminal, echo: opts.Echo}
	}
	return u
}

// OnEvent shows an event and tells the link of it; see Attach.
func (u *UI) OnEvent(e agent.Event) {
	u.turn.on(e)
	u.cost.on(e)
	u.display.event(e)
}

// Agent is the agent of the present conversation; nil before Run. Whoever called Run
// closes it.
func (u *UI) Agent() *harness.Harness { return u.present.Load() }
