package tmux

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ident "muntin/internal/id"
)

// KeyTable is the key table that BindPopups fills: its keys follow one key of
// the prefix table.
const KeyTable = "muntin"

// A PopupKey is a key that runs a program in a popup over the terminal it was
// pressed on, in the folder of the pane there.
type PopupKey struct {
	Key  string // one printable character
	Note string // what it does, for list-keys
	Argv []string
}

// BindPopups makes keys run programs in popups: first the prefix, then lead, then
// the key. Each program gets the id of the pane it was pressed in as its last
// argument. No shell takes part, and a popup holds up nobody else.
func (s *Server) BindPopups(ctx context.Context, lead string, keys []PopupKey) error {
	cmds, err := popupBindings(lead, keys)
	if err == nil {
		_, err = s.Do(ctx, cmds...)
	}
	if err != nil {
		return fmt.Errorf("binding tmux keys: %w", err)
	}
	return nil
}

// PopupBindings are the lines of a tmux.conf that do what BindPopups does.
func PopupBindings(lead string, keys []PopupKey) ([]string, error) {
	cmds, err := popupBindings(lead, keys)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, c := range cmds {
		text, err := line(c)
		if err != nil {
			return nil, err
		}
		lines = append(lines, text)
	}
	return lines, nil
}

func popupBindings(lead string, keys []PopupKey) ([]Cmd, error) {
	if err := checkKey(lead); err != nil {
		return nil, err
	}
	cmds := []Cmd{{"bind-key", "-N", "muntin", "-T", "prefix", lead, "switch-client", "-T", KeyTable}}
	for _, k := range keys {
		if err := checkKey(k.Key); err != nil {
			return nil, err
		}
		var argv []string
		for _, w := range k.Argv {
			argv = append(argv, escapePath(w))
		}
		// run-shell -C expands formats in the whole line and then reads it: only
		// what cannot hold a quote is expanded there. display-popup expands the
		// folder by itself. -b, or the popup would hold up the client's keys.
		popup, err := line(slices.Concat(
			Cmd{"display-popup", "-E", "-c", "#{client_name}", "-d", "##{pane_current_path}", "-w", "90%", "-h", "85%", "--"},
			argv, Cmd{"#{pane_id}"}))
		if err != nil {
			return nil, err
		}
		cmds = append(cmds, Cmd{"bind-key", "-N", k.Note, "-T", KeyTable, k.Key, "run-shell", "-b", "-C", popup})
	}
	return cmds, nil
}

func checkKey(key string) error {
	const letters = ident.Lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@+=_^"
	if !ident.Word(key, letters, letters, 1) {
		return fmt.Errorf("tmux key %q: want one letter, digit, or one of @ + = _ ^", key)
	}
	return nil
}

// BoundKey is what a key behind the prefix does now, "" for nothing.
func (s *Server) BoundKey(ctx context.Context, key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	replies, err := s.Do(ctx, Cmd{"list-keys", "-T", "prefix"})
	if err != nil {
		return "", fmt.Errorf("reading tmux keys: %w", err)
	}
	for l := range strings.Lines(replies[0]) {
		words := strings.Fields(l) // bind-key [-r] -T prefix KEY COMMAND…
		i := slices.Index(words, "prefix")
		if i >= 0 && len(words) > i+2 && strings.TrimPrefix(words[i+1], `\`) == key {
			return strings.Join(words[i+2:], " "), nil
		}
	}
	return "", nil
}

// UnbindPopups takes back what BindPopups has bound.
func (s *Server) UnbindPopups(ctx context.Context, lead string) error {
	if err := checkKey(lead); err != nil {
		return err
	}
	_, err := s.Do(ctx,
		Cmd{"unbind-key", "-T", "prefix", lead},
		Cmd{"if-shell", "-F", "1", "unbind-key -a -q -T " + KeyTable})
	if err != nil {
		return fmt.Errorf("unbinding tmux keys: %w", err)
	}
	return nil
}
