package dash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	xterm "golang.org/x/term"

	"muntin/internal/rest"
)

// ErrQuit says that the person wants to leave the dashboard, and was asked again.
var ErrQuit = errors.New("the dashboard was left")

// Options are what Run needs.
type Options struct {
	In    io.Reader // the keys; nil: none
	Out   io.Writer // the terminal as it is, os.Stdout; anything else gets plain lines
	Views <-chan View
	Env   []string         // os.Environ(): TERM, NO_COLOR, LANG and their like
	Now   func() time.Time // nil: time.Now

	Commands Commands // nil: nothing can be done, only looked at
	Live     Live     // nil: agents' screens and messages are not shown
	Owner    bool     // to leave is to stop the orchestrator: it is asked for
	Tab      Tab      // what is shown first
	Agent    string   // of the agent tab, "" for the first
	Key      string   // a key of Tab's first row, or of Agent, that is pressed when the first View is there; "" for none
	Once     bool     // it is a popup: to leave what Key has begun is to leave
}

// Commands carries out what a person does in the dashboard. All its argv are
// without the program's name.
type Commands interface {
	// Run carries a command line out, without a terminal, and returns what it
	// printed on both streams. It is called from a goroutine of its own, and
	// ends soon after ctx does.
	Run(ctx context.Context, argv []string) (string, error)
	// Terminal is the process of a command line that takes the terminal for
	// itself while it runs.
	Terminal(argv []string) *exec.Cmd
}

// Live is what is asked for only while somebody looks at it.
type Live interface {
	// Screen calls fn, from one goroutine, with what an agent's terminal shows,
	// at once and whenever it has changed, until ctx ends.
	Screen(ctx context.Context, agent string, fn func(Screen))
	// Messages are those of all agents, the newest last.
	Messages(ctx context.Context) ([]Message, error)
}

// Run shows the views as they arrive until Views is closed (nil), ctx ends
// (its error), or the person leaves (ErrQuit). It draws on Out when that is a
// terminal, else it writes a line for each change. The sender may block while
// a view is taken in, not while it is drawn.
func Run(ctx context.Context, opts Options) error {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	out, ok := opts.Out.(*os.File)
	if !ok || !xterm.IsTerminal(int(out.Fd())) {
		return runPlain(ctx, opts)
	}
	return runLive(ctx, opts, out)
}

func runPlain(ctx context.Context, opts Options) error {
	var prev View
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case v, ok := <-opts.Views:
			if !ok {
				return nil
			}
			if err := Plain(opts.Out, prev, v); err != nil {
				return fmt.Errorf("writing the run's changes: %w", err)
			}
			prev = v
		}
	}
}

func runLive(ctx context.Context, opts Options, file *os.File) error {
	out := &rest.Output{File: file}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := newModel(ctx, opts)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(opts.In), tea.WithOutput(out),
		tea.WithEnvironment(opts.Env), tea.WithoutSignalHandler(),
		// The theme uses 16 colours. Left to itself the library asks the tmux
		// server for its abilities, at the price of a process.
		tea.WithColorProfile(colorprofile.Env(opts.Env)))
	m.pause, m.send = rest.New(p, out), p.Send
	defer m.pause.Close()

	var wg sync.WaitGroup
	wg.Go(func() { feed(ctx, opts.Views, p.Send) })
	_, err := p.Run()
	ended := context.Cause(ctx)
	stop()
	m.wait()
	wg.Wait()
	switch {
	case ended != nil:
		return ended
	case err != nil:
		return fmt.Errorf("drawing the dashboard: %w", err)
	case m.left:
		return ErrQuit
	}
	return nil
}

type tick struct{}

// drawEvery is how often views are drawn at most: of those that come faster
// only the newest counts.
const drawEvery = 50 * time.Millisecond

// feed hands the views to the program, and a tick every second while some
// agent is working.
func feed(ctx context.Context, views <-chan View, send func(tea.Msg)) {
	second, hold := time.NewTicker(time.Second), time.NewTimer(0)
	defer second.Stop()
	defer hold.Stop()
	second.Stop()
	hold.Stop()
	var newest *View
	var ticking, holding bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			send(tick{})
		case <-hold.C:
			holding = false
		case v, ok := <-views:
			if !ok && newest != nil {
				send(*newest)
			}
			if !ok {
				send(tea.Quit())
				return
			}
			newest = &v
			working := v.working()
			switch {
			case working && !ticking:
				second.Reset(time.Second)
			case !working:
				second.Stop()
			}
			ticking = working
		}
		if newest != nil && !holding {
			send(*newest)
			newest, holding = nil, true
			hold.Reset(drawEvery)
		}
	}
}
