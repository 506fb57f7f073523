package tmux

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// onPane carries out commands if ref is of the server that the client is
// bound to and the pane is there.
func (s *Server) onPane(ctx context.Context, ref PaneRef, cmds ...Cmd) ([]string, error) {
	if err := ref.ID.check(); err != nil {
		return nil, err
	}
	epoch, err := s.bound(ctx)
	if err != nil {
		return nil, err
	}
	if ref.Epoch != epoch {
		return nil, ErrStale
	}
	// Some commands answer for the active pane when their target is not
	// there. This one fails.
	there := Cmd{"list-panes", "-t", string(ref.ID), "-F", ""}
	replies, err := s.transport.run(ctx, epoch, append([]Cmd{there}, cmds...))
	if len(replies) > 0 {
		replies = replies[1:]
	}
	return replies, err
}

// KillPane ends a pane and its program (SIGHUP). ErrNoSuchPane; ErrStale.
func (s *Server) KillPane(ctx context.Context, ref PaneRef) error {
	if _, err := s.onPane(ctx, ref, Cmd{"kill-pane", "-t", string(ref.ID)}); err != nil {
		return fmt.Errorf("killing pane %s: %w", ref.ID, err)
	}
	return nil
}

// KillSession ends a session, if it still has the name that the caller knows
// it by. ErrNoSuchSession: there is no such session, or it has another name.
func (s *Server) KillSession(ctx context.Context, id SessionID, name string) error {
	if err := id.check(); err != nil {
		return err
	}
	if err := CheckName("session", name); err != nil {
		return err
	}
	kill, err := line(Cmd{"kill-session", "-t", string(id)})
	if err != nil {
		return err
	}
	replies, err := s.Do(ctx,
		Cmd{"has-session", "-t", string(id)},
		Cmd{"if-shell", "-F", "-t", string(id) + ":", "#{==:#{session_name}," + name + "}", kill, "display-message -p renamed"})
	if err == nil && strings.HasPrefix(replies[1], "renamed") {
		err = ErrNoSuchSession
	}
	if err != nil {
		return fmt.Errorf("killing tmux session %s (%s): %w", name, id, err)
	}
	return nil
}

// CaptureOptions say what of a pane's screen to read.
type CaptureOptions struct {
	Escapes bool // keep colours and attributes as escape sequences
	History int  // lines above the screen; -1: all
	Join    bool // wrapped lines as one
	Blanks  bool // keep the blanks that programs wrote at the ends of lines
	// Range asks for the lines From to To instead, both included: 0 is the
	// screen's first line, negative ones are above it.
	Range    bool
	From, To int
}

// Capture reads a pane's text: the screen, or also lines above it.
func (s *Server) Capture(ctx context.Context, ref PaneRef, o CaptureOptions) (string, error) {
	cmd := Cmd{"capture-pane", "-p", "-t", string(ref.ID)}
	if o.Escapes {
		cmd = append(cmd, "-e")
	}
	if o.Join {
		cmd = append(cmd, "-J")
	}
	if o.Blanks {
		cmd = append(cmd, "-N")
	}
	switch {
	case o.Range:
		cmd = append(cmd, "-S", strconv.Itoa(o.From), "-E", strconv.Itoa(o.To))
	case o.History < 0:
		cmd = append(cmd, "-S", "-")
	case o.History > 0:
		cmd = append(cmd, "-S", strconv.Itoa(-o.History))
	}
	replies, err := s.onPane(ctx, ref, cmd)
	if err != nil {
		return "", fmt.Errorf("reading pane %s: %w", ref.ID, err)
	}
	if o.Join && !o.Blanks { // -J keeps them, and 3.2 fills lines up with them
		return trimLines(replies[0]), nil
	}
	return replies[0], nil
}

// trimLines drops the blanks at the ends of lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// SetTitle sets a pane's title: any text, control characters are dropped.
func (s *Server) SetTitle(ctx context.Context, ref PaneRef, title string) error {
	if _, err := s.onPane(ctx, ref, titleCmds(string(ref.ID), title)...); err != nil {
		return fmt.Errorf("setting the title of pane %s: %w", ref.ID, err)
	}
	return nil
}

// titleCmds set the title twice: as the terminal's title, which the program
// may change, and as an option of ours, which the border shows.
func titleCmds(target, title string) []Cmd {
	return []Cmd{
		{"select-pane", "-t", target, "-T", Escape(title)},
		// The border draws the option, so "#[" must not be a style in it.
		{"set-option", "-p", "-t", target, "--", titleOption, strings.ReplaceAll(plain(title), "#[", "##[")},
	}
}
