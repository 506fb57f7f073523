package tmux

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	ident "muntin/internal/id"
)

// hookIndex is the place of our commands in a hook's list: others keep theirs.
const hookIndex = 4100

// A Target is what a hook or an option is set on: a SessionID, WindowID or
// PaneID.
type Target interface {
	check() error
	scope() (flag, target string)
}

func (id SessionID) scope() (flag, target string) { return "", string(id) + ":" }
func (id WindowID) scope() (flag, target string)  { return "-w", string(id) }
func (id PaneID) scope() (flag, target string)    { return "-p", string(id) }

// SetHook makes the server carry out commands when something happens to a
// session, window or pane of ours: name is one of tmux(1), HOOKS, and says by
// its nature on what it can be set ("pane-died" on a pane or window,
// "client-attached" on a session). It replaces what SetHook has set before;
// commands of others in the same place stay. In the commands' arguments
// formats are expanded when the hook runs.
//
// ErrForeign: the session was not made by this package. A hook of a whole
// server, or on what is not ours, is never set.
func (s *Server) SetHook(ctx context.Context, on Target, name string, cmds ...Cmd) error {
	list, err := line(cmds...)
	if err != nil {
		return err
	}
	return s.hook(ctx, on, name, list)
}

// UnsetHook takes back what SetHook has set. None set is no error.
func (s *Server) UnsetHook(ctx context.Context, on Target, name string) error {
	return s.hook(ctx, on, name, "")
}

func (s *Server) hook(ctx context.Context, on Target, name, list string) error {
	wrap := func(err error) error { return fmt.Errorf("setting tmux hook %s: %w", name, err) }
	if err := on.check(); err != nil {
		return wrap(err)
	}
	if !ident.Word(name, ident.Lower, ident.Lower+"-", 40) {
		return wrap(fmt.Errorf("hook name %q: want a-z and '-'", name))
	}
	flag, target := on.scope()
	cmd := Cmd{"set-hook"}
	if flag != "" {
		cmd = append(cmd, flag)
	}
	place := name + "[" + strconv.Itoa(hookIndex) + "]"
	if list == "" {
		cmd = append(cmd, "-u", "-t", target, place)
	} else {
		cmd = append(cmd, "-t", target, place, list)
	}
	set, err := line(cmd)
	if err != nil {
		return wrap(err)
	}
	replies, err := s.Do(ctx,
		Cmd{"list-panes", "-t", target, "-F", ""},
		Cmd{"if-shell", "-F", "-t", target, "#{" + sessionMark + "}", set, "display-message -p foreign"})
	if err == nil && strings.HasPrefix(replies[1], "foreign") {
		err = ErrForeign
	}
	if err != nil {
		return wrap(err)
	}
	return nil
}
