package tmux

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// idFormat is what commands that make something are asked to print.
const idFormat = "#{session_id} #{window_id} #{pane_id}"

type madeIDs struct {
	session SessionID
	window  WindowID
	pane    PaneID
}

// readIDs reads the first line. What follows is a hook's, which a person's own
// server may have.
func readIDs(reply string) (madeIDs, error) {
	first, _, _ := strings.Cut(reply, "\n")
	f := strings.Fields(first)
	if len(f) != 3 {
		return madeIDs{}, fmt.Errorf("reading ids from %q: %w", reply, errReply)
	}
	ids := madeIDs{SessionID(f[0]), WindowID(f[1]), PaneID(f[2])}
	for _, err := range []error{ids.session.check(), ids.window.check(), ids.pane.check()} {
		if err != nil {
			return madeIDs{}, err
		}
	}
	return ids, nil
}

// A plan is a list of panes to make in one step. Within the step their ids are
// not known yet, so the newest window is addressed as the last of its session
// ({end}) and the newest pane as the one before the first, which wraps around
// to the last: nothing else can come between, and every new pane is made last.
// What tmux says it made is compared with the plan afterwards.
type plan struct {
	session *SessionSpec // nil: the session is there already
	target  string       // "=name:" or "$1:"
	home    bool         // the first pane is the session's own
	size    Size         // of the windows, as tmux 3.2 has to be told; zero: not known
	windows []WindowSpec
	steps   []step
}

// A step is the making of one pane.
type step struct {
	window int // index into windows
	pane   PaneSpec
	reply  int // index of the reply with its ids
}

func newPlan(sp SessionSpec, windows []WindowSpec) (*plan, error) {
	sp, err := sp.normal()
	if err != nil {
		return nil, err
	}
	p := &plan{session: &sp, target: "=" + sp.Name + ":", home: len(sp.Argv) > 0, size: Size{sp.Cols, sp.Rows}}
	if p.home {
		own := WindowSpec{Name: sp.WindowName, Panes: []PaneSpec{{Argv: sp.Argv, Title: sp.Title}}}
		if err := p.add(own, sp.Dir); err != nil {
			return nil, err
		}
	}
	for _, w := range windows {
		if err := w.Layout.check(); err != nil {
			return nil, err
		}
		for _, part := range w.spill(Size{sp.Cols, sp.Rows}) {
			if err := p.add(part, sp.Dir); err != nil {
				return nil, err
			}
		}
	}
	if len(p.steps) == 0 {
		return nil, fmt.Errorf("making tmux session %s: no panes given", sp.Name)
	}
	return p, nil
}

func (p *plan) add(w WindowSpec, dir string) error {
	if err := w.Layout.check(); err != nil {
		return err
	}
	if w.Layout == "" {
		w.Layout = Tiled
	}
	for _, pane := range w.Panes {
		pane, err := pane.normal(dir)
		if err != nil {
			return err
		}
		p.steps = append(p.steps, step{window: len(p.windows), pane: pane})
	}
	p.windows = append(p.windows, w)
	return nil
}

// commands are the whole plan in tmux's words. mark goes on the session.
func (p *plan) commands(s *Server, mark string) []Cmd {
	last := p.target + "{end}"
	var cmds []Cmd
	for i := range p.steps {
		st := &p.steps[i]
		newWindow := i == 0 || p.steps[i-1].window != st.window
		ends := i+1 == len(p.steps) || p.steps[i+1].window != st.window
		w := p.windows[st.window]
		st.reply = len(cmds)
		switch {
		case i == 0 && p.session != nil:
			cmds = append(cmds, p.newSession(st.pane, w))
			cmds = append(cmds, p.afterSession(st.pane, mark)...)
		case newWindow:
			cmds = append(cmds, append(append(Cmd{"new-window", "-d", "-a", "-t", last}, w.named(st.pane)...), st.pane.make()...))
		default:
			cmds = append(cmds, append(Cmd{"split-window", "-d", "-t", last + ".-"}, st.pane.make()...))
		}
		if newWindow {
			cmds = append(cmds, s.sizeCmds(last, p.size)...)
		}
		cmds = append(cmds, dress(last+".-", st.pane)...)
		switch {
		case newWindow && ends:
		case newWindow && w.titled():
			cmds = append(cmds, Cmd{"set-option", "-w", "-t", last, "pane-border-status", "top"})
		case ends:
			cmds = append(cmds, Cmd{"select-layout", "-t", last, string(w.Layout)})
		case !newWindow:
			cmds = append(cmds, Cmd{"select-layout", "-t", last, string(Tiled)})
		}
	}
	return cmds
}

// newSession makes the session with its first pane. The pane's environment
// enters the session's here, which afterSession takes back.
func (p *plan) newSession(first PaneSpec, w WindowSpec) Cmd {
	sp := p.session
	cmd := Cmd{"new-session", "-d", "-s", sp.Name, "-x", fmt.Sprint(sp.Cols), "-y", fmt.Sprint(sp.Rows)}
	cmd = append(cmd, w.named(first)...)
	both := maps.Clone(sp.Env)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, first.Env)
	first.Env = both
	return append(cmd, first.make()...)
}

func (p *plan) afterSession(first PaneSpec, mark string) []Cmd {
	sp := p.session
	cmds := []Cmd{
		{"set-option", "-t", p.target, sessionMark, mark},
		// A person may have it on, and the session is made without a terminal.
		{"set-option", "-t", p.target, "destroy-unattached", "off"},
	}
	for _, k := range sorted(first.Env) {
		if v, ok := sp.Env[k]; ok {
			cmds = append(cmds, Cmd{"set-environment", "-t", p.target, "--", k, v})
			continue
		}
		cmds = append(cmds, Cmd{"set-environment", "-t", p.target, "-u", k})
	}
	return append(cmds, metaCmds("", p.target, sessionMeta, sp.Meta)...)
}

// sizeCmds give a new window its size where tmux itself has made it as small
// as the client that asked for it. Without the option it follows terminals.
func (s *Server) sizeCmds(target string, size Size) []Cmd {
	if s.Version().sizesWindows() || size == (Size{}) {
		return nil
	}
	return []Cmd{
		{"resize-window", "-t", target, "-x", strconv.Itoa(size.Cols), "-y", strconv.Itoa(size.Rows)},
		{"set-option", "-w", "-u", "-t", target, "window-size"},
	}
}

// named is the option with the window's name.
func (w WindowSpec) named(first PaneSpec) []string {
	name := Escape(w.Name)
	if name == "" {
		name = Escape(first.program())
	}
	return []string{"-n", name}
}

func (w WindowSpec) titled() bool {
	return slices.ContainsFunc(w.Panes, func(p PaneSpec) bool { return p.Title != "" })
}

// make are the arguments common to the commands that make a pane.
func (p PaneSpec) make() []string {
	return append(append(p.place(), "-P", "-F", idFormat), p.command()...)
}

func (p PaneSpec) place() []string {
	args := []string{"-c", escapePath(p.Dir)}
	for _, k := range sorted(p.Env) {
		args = append(args, "-e", k+"="+p.Env[k])
	}
	return args
}

func (p PaneSpec) command() []string { return append([]string{"--"}, p.Argv...) }

// dress sets what belongs to a new pane besides its program. It comes in the
// same step, before tmux can see the program end.
func dress(target string, p PaneSpec) []Cmd {
	var cmds []Cmd
	keep := "on"
	if p.CloseOnExit {
		keep = "off"
	}
	cmds = append(cmds, Cmd{"set-option", "-p", "-t", target, "remain-on-exit", keep})
	if p.Title != "" {
		cmds = append(cmds, titleCmds(target, p.Title)...)
	}
	return append(cmds, metaCmds("-p", target, paneMeta, p.Meta)...)
}

// read takes the ids from the replies and compares them with the plan.
func (p *plan) read(replies []string, epoch Epoch) (Spawned, error) {
	var out Spawned
	var window WindowID
	for i, st := range p.steps {
		ids, err := readIDs(replies[st.reply])
		if err != nil {
			return Spawned{}, err
		}
		newWindow := i == 0 || p.steps[i-1].window != st.window
		if i == 0 {
			out.Session = ids.session
		}
		if newWindow {
			window = ids.window
			out.Windows = append(out.Windows, window)
		}
		if ids.session != out.Session || ids.window != window {
			return Spawned{}, fmt.Errorf("pane %s was made in %s %s and not in %s %s: %w",
				ids.pane, ids.session, ids.window, out.Session, window, errReply)
		}
		ref := PaneRef{Epoch: epoch, ID: ids.pane}
		if i == 0 && p.home {
			out.Home = ref
			continue
		}
		out.Panes = append(out.Panes, ref)
	}
	return out, nil
}

// started is a pane that was made, and what it was to run.
type started struct {
	ref  PaneRef
	spec PaneSpec
}

func (p *plan) pairs(out Spawned) []started {
	refs := out.Panes
	if p.home {
		refs = append([]PaneRef{out.Home}, refs...)
	}
	list := make([]started, len(refs))
	for i, ref := range refs {
		list[i] = started{ref, p.steps[i].pane}
	}
	return list
}

func (p *plan) keys() []string {
	var keys []string
	if p.session != nil {
		keys = sorted(p.session.Meta)
	}
	for _, st := range p.steps {
		keys = append(keys, sorted(st.pane.Meta)...)
	}
	return keys
}
