package tui

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/tui/editor"
	"muntin/agent/tui/live"
	"muntin/internal/rest"
	"muntin/internal/term"
)

// frameEvery is how often what streams in is drawn at most. What a person types is
// drawn at once.
const frameEvery = 40 * time.Millisecond

// full is the display of a terminal. Bubble Tea runs it and reads the keys; what
// its own renderer draws goes nowhere, because that renderer can neither put text
// above and redraw in one write, nor find its place again when the terminal has
// wrapped the lines anew. The package live draws.
type full struct {
	opts    Options
	ctx     context.Context // of Run, for what is begun here
	model   *model
	screen  *live.Screen
	program *tea.Program
	pause   *rest.Pause
	in      chan input
	done    chan struct{} // closed when the front end leaves
	news    chan struct{} // something was posted
	work    sync.WaitGroup

	mu     sync.Mutex // guards all below
	posted []any
	busy   bool // a turn or a command is at work: its time is shown
	err    error
}

// sink is the terminal as Bubble Tea has it: its size and modes are real, and what
// is written goes nowhere.
type sink struct{ *os.File }

func (sink) Write(b []byte) (int, error) { return len(b), nil }

func newFull(opts Options) *full {
	history, err := editor.LoadHistory(opts.History)
	m := newModel(opts, history)
	if err != nil {
		m.note(term.CleanLine(err.Error()))
	}
	return &full{opts: opts, model: m, in: make(chan input), done: make(chan struct{}), news: make(chan struct{}, 1)}
}

// The messages of the program.
type (
	wake   struct{} // something was posted
	second struct{} // while something is at work
	edited struct { // the external editor has ended
		text string
		err  error
	}
)

func (f *full) head(ctx context.Context, o Options, notices []string) {
	f.ctx = ctx
	width, height := o.Size()
	f.screen = live.New(o.Out, width)
	f.model.resize(width, height)
	f.model.head(o, notices)
	f.program = tea.NewProgram(program{f}, tea.WithInput(o.In), tea.WithOutput(sink{o.Tty}), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler())
	f.pause = rest.New(f.program, nil)
	f.fail(f.screen.Start())
	f.work.Go(func() {
		defer close(f.in)
		if _, err := f.program.Run(); err != nil {
			f.fail(fmt.Errorf("reading the terminal: %w", err))
		}
	})
	f.work.Go(f.pump)
	f.signal()
}

// pump wakes the program when something was posted, not too often, and each second
// while something is at work.
func (f *full) pump() {
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	for {
		if f.atWork() {
			tick.Reset(time.Second)
		} else {
			tick.Stop()
		}
		var msg tea.Msg = wake{}
		select {
		case <-f.done:
			return
		case <-f.news:
		case <-tick.C:
			msg = second{}
		}
		f.program.Send(msg)
		hold := time.NewTimer(frameEvery)
		select {
		case <-f.done:
			hold.Stop()
			return
		case <-hold.C:
		}
	}
}

func (f *full) atWork() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy
}

// post hands a change to the program's goroutine, without waiting for it.
func (f *full) post(change func(*model)) {
	f.mu.Lock()
	f.posted = append(f.posted, change)
	f.mu.Unlock()
	f.signal()
}

func (f *full) signal() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *full) fail(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	if f.err == nil {
		f.err = err
	}
	f.mu.Unlock()
}

func (f *full) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *full) inputs() <-chan input { return f.in }

func (f *full) event(e agent.Event) { f.post(func(m *model) { m.event(e) }) }
func (f *full) past(all []llm.Message) {
	f.post(func(m *model) { m.past(all) })
}
func (f *full) prompt(msg message, how string) { f.post(func(m *model) { m.prompt(msg, how) }) }
func (f *full) note(text string)               { f.post(func(m *model) { m.note(text) }) }
func (f *full) page(text string)               { f.post(func(m *model) { m.page(text) }) }
func (f *full) footer(o harness.Outcome, err error) {
	f.post(func(m *model) { m.footer(o, err) })
}
func (f *full) status(st state, msg string) { f.post(func(m *model) { m.status(st, msg) }) }
func (f *full) ready()                      {}
func (f *full) entered()                    {}
func (f *full) queued(texts []string)       { f.post(func(m *model) { m.queue = texts }) }
func (f *full) giveBack(texts []string)     { f.post(func(m *model) { m.giveBack(texts) }) }
func (f *full) facts(facts facts)           { f.post(func(m *model) { m.facts = facts }) }
func (f *full) ask(q *question)             { f.post(func(m *model) { m.dialog = newDialog(q) }) }
func (f *full) notice(n harness.Notice)     { f.post(func(m *model) { m.notice(n) }) }
func (f *full) statuses(texts []string)     { f.post(func(m *model) { m.statuses = texts }) }
func (f *full) recolour(t term.Theme)       { f.post(func(m *model) { m.theme = t }) }
func (f *full) copy(text string)            { f.post(func(m *model) { m.copy(text) }) }

// leave shows what is left to show and gives the terminal back.
func (f *full) leave() error {
	if f.program == nil {
		return nil
	}
	close(f.done)
	f.program.Quit()
	f.work.Wait()
	f.pause.Close()
	f.drain()
	f.model.leave()
	f.draw()
	f.fail(f.screen.Stop())
	return f.failed()
}

// drain makes the changes that were posted.
func (f *full) drain() {
	f.mu.Lock()
	posted := f.posted
	f.posted = nil
	f.mu.Unlock()
	for _, p := range posted {
		p.(func(*model))(f.model)
	}
	f.mu.Lock()
	f.busy = f.model.atWork()
	f.mu.Unlock()
}

func (f *full) draw() {
	for _, seq := range f.model.raw {
		f.fail(f.screen.Raw(seq))
	}
	f.model.raw = nil
	above := f.model.out
	f.model.out = nil
	f.fail(f.screen.Draw(above, f.model.view()))
}

// program is full as Bubble Tea's model.
type program struct{ *full }

// Init does nothing: what there is to do comes by itself.
func (p program) Init() tea.Cmd { return nil }

// View is empty: see full.
func (p program) View() tea.View { return tea.View{} }

// Update takes in what happened, draws, and hands on what the person wants.
func (p program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	p.pause.Wake()
	switch msg := msg.(type) {
	case wake, second:
		p.drain()
	case tea.WindowSizeMsg:
		p.screen.Resize(msg.Width)
		p.model.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		p.model.key(msg.Keystroke(), msg.Text)
	case tea.PasteMsg:
		p.model.paste(msg.Content)
	case edited:
		p.model.edited(msg.text, msg.err)
		p.fail(p.screen.Start())
	default:
		return p, nil
	}
	p.draw()
	p.send()
	return p, p.begin()
}

// send hands what the person did to the loop.
func (p program) send() {
	wants := p.model.wants
	p.model.wants = nil
	for _, in := range wants {
		select {
		case p.in <- in:
		case <-p.done:
		}
	}
	if p.failed() != nil { // the loop looks when something comes
		select {
		case p.in <- input{kind: inputAbort}:
		case <-p.done:
		}
	}
}

// begin starts what the model cannot do itself.
func (p program) begin() tea.Cmd {
	if p.model.wantFiles {
		p.model.wantFiles = false
		p.work.Go(func() {
			files := listFiles(p.ctx, p.opts.Dir, p.opts.Env)
			p.post(func(m *model) { m.takeFiles(files) })
		})
	}
	if p.model.wantEditor {
		p.model.wantEditor = false
		e := &externalEditor{full: p.full, text: p.model.edit.Text()}
		return tea.Exec(e, func(err error) tea.Msg { return edited{e.text, err} })
	}
	return nil
}
