package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/tmux"
)

// leadKey follows tmux's prefix and comes before our keys. tmux binds nothing
// to it by itself.
const leadKey = "u"

// A popup is what one of our keys opens.
type popup struct {
	key, name, note string
	view, press     string // of the dashboard
}

func popups() []popup {
	return []popup{
		{"d", "diff", "what the pane's agent has changed", "agent", "d"},
		{"l", "log", "what it did", "agent", "l"},
		{"s", "send", "send it a prompt", "agent", "s"},
		{"t", "todo", "the board", "board", ""},
		{"n", "needs", "what needs you", "needs", ""},
		{"w", "watch", "the dashboard", "fleet", ""},
	}
}

func popupKeys(a *app.App) []tmux.PopupKey {
	var keys []tmux.PopupKey
	for _, p := range popups() {
		keys = append(keys, tmux.PopupKey{Key: p.key, Note: "muntin: " + p.note, Argv: []string{a.Self, "popup", p.name}})
	}
	return keys
}

// KeysOptions are keys' arguments.
type KeysOptions struct {
	App             *app.App
	Lead            string
	Install, Remove bool
	Conf, JSON      bool
}

// keyJSON is one line of `keys --json`.
type keyJSON struct {
	Keys string `json:"keys"` // behind the prefix, in their order
	Does string `json:"does"`
}

// NewKeys makes `muntin keys`.
func NewKeys(a *app.App) *cobra.Command {
	o := KeysOptions{App: a}
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "The tmux keys that open muntin's popups",
		Long: "List the keys that open a popup over a run: tmux's prefix, " + leadKey + ", then a letter. They are\n" +
			"bound on muntin's own tmux server only. --install binds them on the server that\n" +
			"this terminal is in, until it ends; --conf prints the lines for a tmux.conf.",
		Example: "  muntin keys\n  muntin keys --install --lead @\n  muntin keys --conf >>~/.tmux.conf",
		Args:    app.Args(0, 0, ""),
		RunE:    a.Interruptible(func(ctx context.Context, _ []string) error { return runKeys(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.Lead, "lead", leadKey, "the key behind the prefix")
	f.BoolVar(&o.Install, "install", false, "bind them on the tmux server that this terminal is in")
	f.BoolVar(&o.Remove, "remove", false, "take that back")
	f.BoolVar(&o.Conf, "conf", false, "print the lines for a tmux.conf")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("install", "remove", "conf", "json")
	return cmd
}

func runKeys(ctx context.Context, o KeysOptions) error {
	a := o.App
	switch {
	case o.Install || o.Remove:
		return changeKeys(ctx, o)
	case o.Conf:
		lines, err := tmux.PopupBindings(o.Lead, popupKeys(a))
		if err != nil {
			return &app.ExitError{Code: app.ExitUsage, Err: err}
		}
		_, err = fmt.Fprintln(a.Streams.Out, strings.Join(lines, "\n"))
		return err
	}
	list := []keyJSON{}
	for _, p := range popups() {
		list = append(list, keyJSON{Keys: o.Lead + " " + p.key, Does: p.note})
	}
	if o.JSON {
		return a.PrintJSON(list)
	}
	table := term.NewTable("PREFIX AND", "OPENS")
	for _, k := range list {
		table.Row(a.Theme.Strong.Render(k.Keys), k.Does)
	}
	return table.Write(a.Streams.Out, a.Theme, 0)
}

// changeKeys binds or unbinds the keys on the server that this process is in.
func changeKeys(ctx context.Context, o KeysOptions) error {
	a := o.App
	socket, _, _ := strings.Cut(a.Getenv("TMUX"), ",")
	if socket == "" {
		return app.Hint(errors.New("this terminal is in no tmux"), "run it in a pane of the server that is meant; muntin's own has the keys")
	}
	server, err := a.Tmux(ctx, socket)
	if err != nil {
		return err
	}
	bound, err := server.BoundKey(ctx, o.Lead)
	if err != nil {
		return err
	}
	ours := bound == "switch-client -T "+tmux.KeyTable
	switch {
	case o.Remove && !ours:
		return fmt.Errorf("prefix %s is not muntin's on this server", o.Lead)
	case o.Remove:
		return server.UnbindPopups(ctx, o.Lead)
	case bound != "" && !ours:
		return app.Hint(fmt.Errorf("prefix %s does something else on this server: %s", o.Lead, term.CleanLine(bound)), "take another with --lead")
	}
	if err := server.BindPopups(ctx, o.Lead, popupKeys(a)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Streams.Out, "bound until this tmux server ends; for the next, put what `muntin keys --conf` prints into your tmux.conf\n")
	return err
}

// NewPopup makes `muntin popup`, what the keys run.
func NewPopup(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "popup <what> <pane>", Short: "What muntin's tmux keys run", Hidden: true, Args: app.Args(2, 2, "what to open and a pane's id"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			for _, p := range popups() {
				if p.name == args[0] {
					return showPopup(ctx, a, p, args[1])
				}
			}
			return app.Usage("there is no popup %q", args[0])
		}),
	}
}

// showPopup shows what a key is for, of the agent in the pane; in a pane that is
// no agent's, the dashboard of the run there, or of the folder's.
func showPopup(ctx context.Context, a *app.App, p popup, pane string) error {
	o := WatchOptions{App: a, View: p.view, Key: p.press}
	run, agent, err := paneRun(ctx, a, pane)
	if err != nil {
		return err
	}
	if agent == "" && p.view == "agent" {
		o.View, o.Key = "fleet", ""
	}
	o.Agent = agent
	return watchRun(ctx, run, o)
}

// paneRun finds the run and the agent of a pane of the server that this process
// is in.
func paneRun(ctx context.Context, a *app.App, pane string) (orchestrator.Run, string, error) {
	socket, _, _ := strings.Cut(a.Getenv("TMUX"), ",")
	server, err := a.Tmux(ctx, socket)
	if err != nil {
		return orchestrator.Run{}, "", err
	}
	sn, err := server.Snapshot(ctx)
	if err != nil {
		return orchestrator.Run{}, "", err
	}
	for _, p := range sn.Panes {
		if string(p.Ref.ID) != pane || !p.Ours {
			continue
		}
		runs, err := orchestrator.AllRuns(a.Layout)
		for _, run := range runs {
			if run.Session != p.SessionName {
				continue
			}
			agent := p.Meta["name"]
			if agent == orchestrator.BoardPane {
				agent = ""
			}
			return run, agent, nil
		}
		if err != nil {
			return orchestrator.Run{}, "", err
		}
	}
	run, err := a.Run("")
	return run, "", err
}
