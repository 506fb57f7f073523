package panes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"muntin/orchestrator"
	"muntin/tmux"
)

// A Sign is what tmux shows of one agent: on its pane's border, and in the name
// of its window where it is alone in it. All of it is plain text but Style.
type Sign struct {
	State string
	Mark  string // one character; only where the terminal has more than ASCII
	Style string // of state and mark, as tmux(1), STYLES, has it
	Task  string
	Since string // when the state began, as it is shown
}

// Signs keep what tmux shows of a run up to date: user options of its session,
// windows and panes, which borders and status lines name. They are set when
// they change and never asked for, so a fleet at rest costs nothing, and no
// process is ever started for them:
//
//	@muntin                     session: the run in a few words, for #{@muntin}
//	@muntin_window              window: its agents in a few words
//	@muntin_agent, _state, _mark, _style, _task, _since   pane
type Signs struct {
	host    *Host
	session string
	wake    chan struct{} // holds one

	mu      sync.Mutex // guards the fields below
	segment string
	agents  map[string]Sign

	last  map[option]string // what was set; of the goroutine of Run
	panes []tmux.Pane
	id    tmux.SessionID
}

// An option is a user option of a session, window or pane.
type option struct{ scope, target, name string }

// signsEvery is how often options are set at most: each time makes tmux draw
// its clients' borders and status lines anew.
const signsEvery = 500 * time.Millisecond

// NewSigns makes the signs of a run's tmux session.
func (h *Host) NewSigns(session string) *Signs {
	return &Signs{host: h, session: session, wake: make(chan struct{}, 1), last: map[option]string{}}
}

// Update takes what is to be shown: segment is the whole run's, with styles,
// whose text the caller has escaped; agents are by name. It does not block.
func (s *Signs) Update(segment string, agents map[string]Sign) {
	s.mu.Lock()
	same := s.segment == segment && maps.Equal(s.agents, agents)
	s.segment, s.agents = segment, agents
	s.mu.Unlock()
	if same {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sets what has changed until ctx ends. A server that is gone, or a pane,
// is no error: the next change tries again.
func (s *Signs) Run(ctx context.Context) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		if err := s.set(ctx); err != nil && ctx.Err() == nil {
			s.panes = nil // panes have come or gone
			if !isGone(err) {
				_ = s.set(ctx)
			}
		}
		rest.Reset(signsEvery)
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
	}
}

// set sets the options that differ from what was set.
func (s *Signs) set(ctx context.Context) error {
	s.mu.Lock()
	segment, agents := s.segment, s.agents
	s.mu.Unlock()
	if s.stale(agents) {
		if err := s.look(ctx); err != nil {
			return err
		}
	}
	want := s.want(segment, agents)
	var cmds []tmux.Cmd
	for _, o := range slices.SortedFunc(maps.Keys(want), option.compare) {
		if have, ok := s.last[o]; !ok || have != want[o] {
			cmds = append(cmds, o.cmd(want[o]))
		}
	}
	if len(cmds) == 0 {
		return nil
	}
	if _, err := s.host.server.Do(ctx, cmds...); err != nil {
		clear(s.last) // some were set
		return fmt.Errorf("setting what tmux shows of session %s: %w", s.session, err)
	}
	s.last = want
	return nil
}

// stale tells whether an agent's pane is not known.
func (s *Signs) stale(agents map[string]Sign) bool {
	if len(s.panes) == 0 {
		return true
	}
	for name := range agents {
		if !slices.ContainsFunc(s.panes, func(p tmux.Pane) bool { return p.Meta["name"] == name }) {
			return true
		}
	}
	return false
}

// look finds the panes, and has their borders show the signs where the server's
// configuration is not ours.
func (s *Signs) look(ctx context.Context) error {
	sn, err := s.host.server.Snapshot(ctx)
	if err != nil {
		return err
	}
	s.panes = slices.DeleteFunc(sn.Panes, func(p tmux.Pane) bool { return p.SessionName != s.session || p.Meta["name"] == "" })
	if len(s.panes) == 0 {
		return errors.New("the session has no panes of ours")
	}
	s.id = s.panes[0].Session
	clear(s.last)
	if s.host.server.Ours() {
		return nil
	}
	var cmds []tmux.Cmd
	for _, p := range s.panes {
		cmd := tmux.Cmd{"set-option", "-w", "-t", string(p.Window), "pane-border-format", tmux.BorderFormat}
		if !slices.ContainsFunc(cmds, func(c tmux.Cmd) bool { return slices.Equal(c, cmd) }) {
			cmds = append(cmds, cmd)
		}
	}
	_, err = s.host.server.Do(ctx, cmds...)
	return err
}

// want are the options as they are to be.
func (s *Signs) want(segment string, agents map[string]Sign) map[option]string {
	want := map[option]string{{"", string(s.id) + ":", "@muntin"}: segment}
	windows := map[tmux.WindowID][]Sign{}
	for _, p := range s.panes {
		name := p.Meta["name"]
		a, ok := agents[name]
		if !ok || name == orchestrator.BoardPane {
			continue
		}
		windows[p.Window] = append(windows[p.Window], a)
		for key, value := range map[string]string{
			"agent": name, "state": a.State, "mark": a.Mark, "style": a.Style, "task": a.Task, "since": a.Since,
		} {
			want[option{"-p", string(p.Ref.ID), "@muntin_" + key}] = tmux.Escape(value)
		}
	}
	for id, list := range windows {
		want[option{"-w", string(id), "@muntin_window"}] = windowSign(list)
	}
	return want
}

// windowSign is the state of the one agent of a window, or how many of several
// are in the states that matter.
func windowSign(list []Sign) string {
	if len(list) == 1 {
		return tmux.Escape(list[0].State)
	}
	by := map[string]int{}
	var order []string
	for _, a := range list {
		if a.State == "idle" || a.State == "" {
			continue
		}
		if by[a.State]++; by[a.State] == 1 {
			order = append(order, a.State)
		}
	}
	slices.Sort(order)
	text := ""
	for i, state := range order {
		if i > 0 {
			text += " "
		}
		text += fmt.Sprintf("%d %s", by[state], state)
	}
	return tmux.Escape(text)
}

func (o option) compare(p option) int {
	return slices.Compare([]string{o.scope, o.target, o.name}, []string{p.scope, p.target, p.name})
}

func (o option) cmd(value string) tmux.Cmd {
	cmd := tmux.Cmd{"set-option"}
	if o.scope != "" {
		cmd = append(cmd, o.scope)
	}
	return append(cmd, "-t", o.target, "--", o.name, value)
}
