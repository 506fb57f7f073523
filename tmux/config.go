package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"muntin/internal/durable"
	"muntin/internal/proc"
)

// ourMark is the global user option by which a server started with our
// configuration is known.
const ourMark = "@muntin_server"

// BorderFormat is what a pane's border shows: its title, then what an agent in it
// is doing, by the user options that orchestrator/panes sets. The mark needs more
// than ASCII. Nothing in it runs a command.
const BorderFormat = " #{?#{@muntin_title},#{@muntin_title},#{pane_title}}" +
	"#{?#{@muntin_state}, #[#{@muntin_style}]#{?client_utf8,#{@muntin_mark} ,}#{@muntin_state}#[default]" +
	"#{?#{@muntin_since}, #[dim]#{@muntin_since}#[nodim],}#{?#{@muntin_task}, ^#{@muntin_task},},}" +
	"#{?@muntin_held, (held: you are typing),}#{?pane_dead, (ended),} "

// config is the configuration of a server that we start. It is read before
// the first session exists, so that it holds for the first pane too (tmux
// reads history-limit only when it makes a pane).
//
// exit-empty is on: nothing of ours stays when the last session has gone.
func (s *Server) config(v Version, terminal string) (string, error) {
	lines := []string{
		"# Written by muntin for its own tmux server; changes are lost.",
		"set-option -g " + ourMark + " 1",
		"set-option -s exit-empty on",
		"set-option -s exit-unattached off",
		"set-option -s escape-time 10",
		"set-option -s focus-events on",
		"set-option -s extended-keys on",
		"set-option -s set-clipboard on",
		"set-option -s default-terminal " + terminal,
		"set-option -g history-limit 5000",
		"set-option -g destroy-unattached off",
		`set-option -g update-environment ""`,
		"set-option -g mouse on",
		"set-option -g set-titles off",
		"set-option -g window-size latest",
		fmt.Sprintf("set-option -g default-size %dx%d", defaultCols, defaultRows),
		"set-option -g automatic-rename off",
		"set-option -g allow-rename off",
		"set-option -g remain-on-exit off",
		"set-option -g monitor-bell on",
		"set-option -g base-index 1",
		"set-option -g renumber-windows on",
		// The status line: session, windows, the way out. Nothing in it runs a command.
		"set-option -g status on",
		"set-option -g status-interval 15",
		"set-option -g status-style fg=default,bg=default",
		`set-option -g status-left "#[bold]#{session_name}#[nobold]  "`,
		"set-option -g status-left-length 42",
		`set-option -g window-status-format "#[dim]#{window_index} #{window_name}#{?#{@muntin_window}, #{@muntin_window},}#{?window_bell_flag,!,}#[nodim]"`,
		`set-option -g window-status-current-format "#[reverse] #{window_index} #{window_name}#{?#{@muntin_window}, #{@muntin_window},}#{?window_zoomed_flag, zoomed,} #[noreverse]"`,
		`set-option -g window-status-separator "  "`,
		`set-option -g status-right "#{?#{@muntin},#{@muntin}  ,}#[dim]#{prefix} d detaches#[nodim]"`,
		"set-option -g status-right-length 80",
		// Borders carry a pane's title where a window asks for it.
		"set-option -g pane-border-status off",
		`set-option -g pane-border-format "` + BorderFormat + `"`,
		"set-option -g pane-border-style fg=default,dim",
		"set-option -g pane-active-border-style fg=default,bold",
	}
	if v.passthrough() {
		lines = append(lines, "set-option -g allow-passthrough on")
	}
	if v.mainShare() {
		lines = append(lines, "set-option -g main-pane-width 50%", "set-option -g main-pane-height 50%")
	}
	if path := s.opts.UserConfig; path != "" {
		source, err := line(Cmd{"source-file", globLiteral(path)})
		if err != nil {
			return "", err
		}
		lines = append(lines, source)
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// globLiteral makes a path literal for source-file, which takes patterns.
func globLiteral(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// writeConfig writes the configuration unless it is there already.
func (s *Server) writeConfig(ctx context.Context, v Version) error {
	text, err := s.config(v, s.terminal(ctx))
	if err != nil {
		return err
	}
	data := []byte(text)
	old, err := os.ReadFile(s.conf)
	if err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the tmux configuration: %w", err)
	}
	return durable.WriteFile(s.conf, data, 0o600)
}

// terminal is the best terminal description for panes that this machine has.
func (s *Server) terminal(ctx context.Context) string {
	_, err := proc.Run(ctx, proc.Spec{Argv: []string{"infocmp", "tmux-256color"}, Env: s.env, Timeout: commandTimeout})
	if err != nil {
		return "screen-256color"
	}
	return "tmux-256color"
}
