package dash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	xterm "golang.org/x/term"

	"muntin/internal/rest"
	"muntin/internal/term"
)

// ErrQuit says that the person wants to leave the dashboard, and was asked again.
var ErrQuit = errors.New("the dashboard was left")

// Options are what Run needs.
type Options struct {
	In    io.Reader // the keys; nil: none
	Out   io.Writer // the terminal as it is, os.Stdout; anything else gets plain lines
	Views <-chan View
	Env   []string         // os.Environ(): TERM, NO_COLOR and their like
	Now   func() time.Time // nil: time.Now
	// OnKey gets the keys that the dashboard has no use for, by Bubble Tea's
	// names ("enter", "a"). It is called from the drawing goroutine and must
	// not block. May be nil.
	OnKey func(key string)
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
	m := &model{now: opts.Now, onKey: opts.OnKey}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(opts.In), tea.WithOutput(out),
		tea.WithEnvironment(opts.Env), tea.WithoutSignalHandler(),
		// The theme uses 16 colours. Left to itself the library asks the tmux
		// server for its abilities, at the price of a process.
		tea.WithColorProfile(colorprofile.Env(opts.Env)))
	m.pause = rest.New(p, out)
	defer m.pause.Close()

	feedCtx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { feed(feedCtx, opts.Views, p.Send) })
	_, err := p.Run()
	stop()
	wg.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
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

// model is the dashboard as Bubble Tea has it.
type model struct {
	view          View
	width, height int
	ask, left     bool
	now           func() time.Time
	onKey         func(string)
	pause         *rest.Pause
}

// Init does nothing: the views come by themselves.
func (m *model) Init() tea.Cmd { return nil }

// Update takes in a view, a key, a new size or a tick.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.pause.Wake()
	switch msg := msg.(type) {
	case View:
		m.view = msg
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *model) key(key string) tea.Cmd {
	if m.ask {
		m.ask = false
		m.left = key == "y" || key == "Y" || key == "enter" || key == "ctrl+c"
		if m.left {
			return tea.Quit
		}
		return nil
	}
	switch {
	case key == "q" || key == "ctrl+c":
		m.ask = true
	case m.onKey != nil:
		m.onKey(key)
	}
	return nil
}

// View draws.
func (m *model) View() tea.View {
	f := frame{View: m.view, width: m.width, height: m.height, now: m.now(), theme: term.DefaultTheme(), ask: m.ask}
	v := tea.NewView(f.render())
	v.AltScreen = true
	return v
}
