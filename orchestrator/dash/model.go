package dash

import (
	"context"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"muntin/internal/rest"
	"muntin/internal/term"
)

// model is the dashboard as Bubble Tea has it.
type model struct {
	ui
	ctx           context.Context
	opts          Options
	view          View
	theme         palette
	width, height int
	lay           layout
	left          bool
	pressed       bool // Options.Key was
	pause         *rest.Pause
	send          func(tea.Msg)

	wg       sync.WaitGroup // of the streams and the commands
	watching string         // the agent whose screen is followed
	unwatch  context.CancelFunc
	asked    time.Time // when the messages were read last
	reading  bool
}

// The messages of the goroutines that the model starts.
type (
	screenMsg struct {
		agent  string
		screen Screen
	}
	messagesMsg struct {
		list []Message
		err  error
	}
	doneMsg struct {
		act  act
		ran  []string
		line string
		out  string
		err  error
	}
)

func newModel(ctx context.Context, opts Options) *model {
	m := &model{ctx: ctx, opts: opts, theme: newPalette(term.DefaultTheme())}
	m.tab, m.agent = opts.Tab, opts.Agent
	m.canDo, m.owner = opts.Commands != nil, opts.Owner
	m.plain = !isUTF8(opts.Env)
	return m
}

// isUTF8 tells whether the locale's characters are UTF-8 (POSIX: LC_ALL before
// LC_CTYPE before LANG). Without a word on it they are.
func isUTF8(env []string) bool {
	set := map[string]string{}
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			set[k] = v
		}
	}
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(set[k]); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

// wait returns when all that the model has started has ended, which its ctx makes it do.
func (m *model) wait() {
	if m.unwatch != nil {
		m.unwatch()
	}
	m.wg.Wait()
}

// Init does nothing: the views come by themselves.
func (m *model) Init() tea.Cmd { return nil }

// Update takes in a view, a key, a new size, a tick, or what a goroutine found.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if m.pause != nil {
		m.pause.Wake()
	}
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case View:
		m.view = msg
		cmd = m.first()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseClickMsg:
		cmd = m.click(msg.Mouse())
	case tea.MouseWheelMsg:
		m.wheel(msg.Mouse())
	case screenMsg:
		if msg.agent == m.watching {
			m.screen = msg.screen
		}
	case messagesMsg:
		m.took(msg)
	case doneMsg:
		cmd = m.done(msg)
	}
	m.follow()
	return m, cmd
}

// first presses the key that the dashboard was started for.
func (m *model) first() tea.Cmd {
	if m.pressed || m.opts.Key == "" {
		return nil
	}
	m.pressed = true
	return m.press(m.opts.Key)
}

// follow has the agent's screen streamed, and the messages read, while they are
// looked at.
func (m *model) follow() {
	want := ""
	if m.tab == TabAgent && m.page == nil {
		if a, ok := m.frame().shownAgent(); ok {
			want = a.Name
		}
	}
	if m.opts.Live == nil {
		return
	}
	if want != m.watching {
		if m.unwatch != nil {
			m.unwatch()
			m.unwatch = nil
		}
		m.watching, m.screen = want, Screen{}
		if want != "" {
			ctx, cancel := context.WithCancel(m.ctx)
			m.unwatch = cancel
			m.wg.Go(func() {
				m.opts.Live.Screen(ctx, want, func(s Screen) { m.send(screenMsg{want, s}) })
			})
		}
	}
	const often = time.Second
	if m.tab == TabMessages && !m.reading && m.opts.Now().Sub(m.asked) >= often {
		m.reading, m.asked = true, m.opts.Now()
		m.wg.Go(func() {
			list, err := m.opts.Live.Messages(m.ctx)
			m.send(messagesMsg{list, err})
		})
	}
}

func (m *model) took(msg messagesMsg) {
	m.reading, m.msgErr = false, ""
	if msg.err != nil {
		m.msgErr = msg.err.Error()
	}
	m.messages = msg.list
}

// do carries an act out, after what it asks for was answered.
func (m *model) do(a act, text string) tea.Cmd {
	argv := a.with(text)
	if a.tty {
		return tea.ExecProcess(m.opts.Commands.Terminal(argv), func(err error) tea.Msg { return doneMsg{act: a, ran: argv, line: a.line(text), err: err} })
	}
	m.busy, m.status = a.line(text), ""
	m.wg.Go(func() {
		out, err := m.opts.Commands.Run(m.ctx, argv)
		m.send(doneMsg{act: a, ran: argv, line: a.line(text), out: out, err: err})
	})
	return nil
}

// done takes in what came of a command.
func (m *model) done(msg doneMsg) tea.Cmd {
	m.busy = ""
	out := strings.TrimRight(term.Clean(msg.out), "\n")
	lines := strings.Split(out, "\n")
	m.bad = msg.err != nil
	switch {
	case msg.err != nil && out != "":
		m.status = strings.TrimPrefix(lines[0], "muntin: ")
	case msg.err != nil:
		m.status = msg.err.Error()
	case msg.act.page && out == "":
		m.page = &page{title: msg.line, lines: []string{term.DefaultTheme().Dim.Render("nothing")}}
	case msg.act.page:
		m.page = &page{title: msg.line, lines: painted(lines)}
	case msg.act.tty:
	case out != "":
		m.status = lines[0]
	default:
		m.status = msg.line
	}
	m.asked = time.Time{}
	if m.opts.Once && m.page == nil && !m.bad {
		return m.quit()
	}
	return nil
}

// painted gives the lines of a diff their colours.
func painted(lines []string) []string {
	theme := term.DefaultTheme()
	diff := false
	for i, l := range lines {
		diff = diff || strings.HasPrefix(l, "diff --git ")
		text := strings.ReplaceAll(l, "\t", "    ")
		switch {
		case !diff:
		case strings.HasPrefix(l, "diff --git "):
			text = theme.Strong.Render(text)
		case strings.HasPrefix(l, "@@"):
			text = theme.Accent.Render(text)
		case strings.HasPrefix(l, "+"):
			text = theme.Good.Render(text)
		case strings.HasPrefix(l, "-"):
			text = theme.Bad.Render(text)
		}
		lines[i] = text
	}
	return lines
}

func (m *model) quit() tea.Cmd {
	m.left = true
	return tea.Quit
}

// frame is what there is to draw.
func (m *model) frame() frame {
	return frame{View: m.view, ui: m.ui, width: m.width, height: m.height, now: m.opts.Now(), theme: m.theme}
}

// View draws.
func (m *model) View() tea.View {
	text, lay := m.frame().render()
	m.lay = lay
	if m.page == nil && !m.help {
		m.places[m.tab].top = lay.first
	}
	v := tea.NewView(text)
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	return v
}
