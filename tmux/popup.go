package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A PopupSpec is a program that runs in a box over what a terminal shows.
type PopupSpec struct {
	Argv       []string // run as it is, without a shell
	Dir        string   // absolute, existing
	Env        map[string]string
	Cols, Rows int    // with its border; 0: half of the terminal
	Title      string // not shown by tmux 3.2
}

// Popup runs a program in a box on a terminal that is attached and returns
// when it has ended, which closes the box. A status other than 0 is an error
// of type *CommandError. When ctx ends, the box is closed and the program is
// hung up. ErrNoSuchClient.
//
// It waits on a client of its own: other commands of s go on meanwhile.
func (s *Server) Popup(ctx context.Context, client string, p PopupSpec) error {
	wrap := func(err error) error { return fmt.Errorf("showing a popup on tmux client %s: %w", client, err) }
	pane, err := PaneSpec{Argv: p.Argv, Dir: p.Dir, Env: p.Env}.normal("")
	if err != nil {
		return wrap(err)
	}
	c, err := s.onClient(ctx, client)
	if err != nil {
		return wrap(err)
	}
	if c.Control {
		return wrap(errors.New("it is in control mode, where nothing is drawn"))
	}
	cmd := Cmd{"display-popup", "-E", "-c", client, "-d", escapePath(pane.Dir)}
	for flag, n := range map[string]int{"-w": p.Cols, "-h": p.Rows} {
		if n > 0 {
			cmd = append(cmd, flag, strconv.Itoa(n))
		}
	}
	argv := pane.Argv
	if s.Version().popupDress() {
		for _, k := range sorted(pane.Env) {
			cmd = append(cmd, "-e", k+"="+pane.Env[k])
		}
		cmd = append(cmd, "-T", Escape(p.Title))
	} else if len(pane.Env) > 0 {
		set := []string{"env"}
		for _, k := range sorted(pane.Env) {
			set = append(set, k+"="+pane.Env[k])
		}
		argv = append(set, argv...)
	}
	err = s.patient(ctx, append(append(cmd, "--"), argv...))
	if ctx.Err() != nil {
		err = errors.Join(err, s.closePopup(ctx, client))
	}
	if err != nil {
		return wrap(err)
	}
	return nil
}

func (s *Server) closePopup(ctx context.Context, client string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	_, err := s.Do(ctx, Cmd{"display-popup", "-C", "-c", client})
	return err
}

// A MenuItem is a line of a menu. The zero value is a separator.
type MenuItem struct {
	Name string
	Key  rune // chooses it; 0: none
	Cmds []Cmd
}

// Menu shows a menu on a terminal that is attached and returns when a person
// has chosen from it, which the server carries out by itself, or has closed
// it. When ctx ends the menu stays for the person to close. ErrNoSuchClient.
func (s *Server) Menu(ctx context.Context, client, title string, items ...MenuItem) error {
	wrap := func(err error) error { return fmt.Errorf("showing a menu on tmux client %s: %w", client, err) }
	cmd := Cmd{"display-menu", "-c", client, "-T", Escape(title), "--"}
	for _, it := range items {
		if it.Name == "" {
			cmd = append(cmd, "")
			continue
		}
		list, err := line(it.Cmds...)
		if err != nil {
			return wrap(err)
		}
		key := ""
		if it.Key != 0 {
			if it.Key <= ' ' || it.Key == 0x7f || !utf8.ValidRune(it.Key) {
				return wrap(fmt.Errorf("item %q: %q is no key", it.Name, it.Key))
			}
			key = string(it.Key)
		}
		// A name that begins with '-' is drawn as one that cannot be chosen,
		// and both are formats.
		name := Escape(it.Name)
		if name != "" && name[0] == '-' {
			name = " " + name
		}
		cmd = append(cmd, name, key, escapePath(list))
	}
	if _, err := s.onClient(ctx, client); err != nil {
		return wrap(err)
	}
	if err := s.patient(ctx, cmd); err != nil {
		return wrap(err)
	}
	return nil
}
