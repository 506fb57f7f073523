// Package agent holds the commands of a single agent: muntin's own coding
// agent, and the supervisor that every agent of a run lives in.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"muntin/agent/compact"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/llm/catalog"
	"muntin/agent/pty"
	"muntin/agent/rpc"
	"muntin/agent/tui"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/session"
)

// Options are the agent's arguments.
type Options struct {
	App       *app.App
	Prompt    string
	Print     bool
	Mode      string
	Model     string
	Thinking  string
	BaseURL   string
	APIKey    string
	Deadlines string
	Session   Conversation
	Window    int
	NoCompact bool
	Tools     []string
	System    string
	Name      string
}

// NewCmd makes `muntin agent`.
func NewCmd(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use:   "agent [prompt]",
		Short: "muntin's own coding agent, in this terminal",
		Long: "A coding agent with the tools read, bash, edit and write. With -p it answers one\n" +
			"prompt and exits; without, it takes prompts from the keyboard and, in a run's\n" +
			"pane, from its supervisor.\n\n" +
			"Models: provider/id, and behind it a level of thinking, as in\n" +
			"anthropic/claude-opus-5:high. A part of the id will do where it means one model;\n" +
			"muntin models lists them. Keys come from muntin login, from models.json and from\n" +
			"variables such as $OPENAI_API_KEY. $OPENAI_BASE_URL names any compatible server.\n" +
			"scripted/<file> replays a conversation file.",
		Example: "  muntin agent -p \"what does this program do?\" --model openai/gpt-5\n" +
			"  muntin agent --continue\n" +
			"  muntin agent --model scripted/demo",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return app.Usage("want one prompt, got %d arguments: put it in quotes", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Prompt = strings.Join(args, " ")
			if o.Print || o.Mode != "" {
				ctx, stop := a.Signals(cmd.Context())
				defer stop()
				return runPrint(ctx, o)
			}
			return runInteractive(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.Print, "print", "p", false, "answer one prompt on standard output and exit")
	f.StringVar(&o.Mode, "mode", "", "with -p: text, or json for every event on a line")
	f.StringVar(&o.Model, "model", "", "provider/id[:thinking] (default: $MUNTIN_MODEL)")
	f.StringVar(&o.Thinking, "thinking", "", "off, minimal, low, medium, high, xhigh or max (default: the model's)")
	f.StringVar(&o.BaseURL, "base-url", "", "another server that speaks the provider's API")
	f.StringVar(&o.APIKey, "api-key", "", "$NAME or !command, which keeps the key out of the process list, or the key")
	f.StringVar(&o.Deadlines, "deadlines", "", "such as connect=10s,firstEvent=10m,idle=2m,whole=none (default: $MUNTIN_DEADLINES, then the model's)")
	o.Session.flags(cmd)
	f.StringSliceVar(&o.Tools, "tools", nil, "tools to offer (default: read, bash, edit, write; there are also grep, find, ls)")
	f.StringVar(&o.System, "append-system-prompt", "", "text to add to the system prompt")
	f.IntVar(&o.Window, "context-window", 0, "tokens that the model takes (default: not known; room is made when it says so)")
	f.BoolVar(&o.NoCompact, "no-auto-compact", false, "never summarise unasked, unless the model has no room left")
	f.StringVar(&o.Name, "name", "muntin", "the agent's name on its screen")
	return cmd
}

// open makes the coding agent that the options describe.
func open(ctx context.Context, o Options, withEvents func(*harness.Options)) (*harness.Harness, error) {
	a := o.App
	if o.Thinking != "" && !slices.Contains(llm.Levels(), llm.Level(o.Thinking)) {
		return nil, app.Usage("thinking %q: want one of %v", o.Thinking, llm.Levels())
	}
	provider, model, err := newProvider(ctx, o)
	if err != nil {
		return nil, err
	}
	dir, err := app.Confirmed(a.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the working folder: %w", err)
	}
	path, err := o.Session.path(a, dir)
	if err != nil {
		return nil, err
	}
	opts := harness.Options{
		Provider: provider, Model: model, Dir: dir, Session: path, Tools: o.Tools,
		AppendSystem: o.System, Env: toolEnv(a.Environ), SpillDir: spillDir(a, path), Now: a.Now,
		Compaction: compact.Settings{Off: o.NoCompact, Window: o.Window},
	}
	withEvents(&opts)
	h, err := harness.Open(ctx, opts)
	return h, session.Explain(err)
}

// toolEnv is what the commands that the model runs get: not the supervisor's
// socket, on which they could speak for the agent, and not our own keys.
func toolEnv(environ []string) []string {
	keys := catalog.KeyVariables()
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "MUNTIN_SOCKET" || slices.Contains(keys, name)
	})
}

func spillDir(a *app.App, session string) string {
	if session == "" {
		return filepath.Join(a.Layout.State, "outputs")
	}
	return filepath.Join(filepath.Dir(session), "blobs")
}

// runPrint answers one prompt. What comes on standard input is put before it.
func runPrint(ctx context.Context, o Options) error {
	a := o.App
	prompt, err := withStdin(a, o.Prompt)
	if err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" {
		return app.Usage("there is no prompt: give one as an argument or on standard input")
	}
	switch o.Mode {
	case "", "text":
		h, err := open(ctx, o, func(*harness.Options) {})
		if err != nil {
			return err
		}
		defer h.Close()
		return rpc.Print(ctx, h, prompt, a.Streams.Out)
	case "json":
		events := rpc.NewJSON(a.Streams.Out)
		h, err := open(ctx, o, func(opts *harness.Options) { opts.OnEvent = events.OnEvent })
		if err != nil {
			return err
		}
		defer h.Close()
		return events.Run(ctx, h, h.Header(), prompt)
	}
	return app.Usage("mode %q: want text or json", o.Mode)
}

func withStdin(a *app.App, prompt string) (string, error) {
	if a.Streams.InTTY {
		return prompt, nil
	}
	b, err := io.ReadAll(a.Streams.In)
	if err != nil {
		return "", fmt.Errorf("reading standard input: %w", err)
	}
	return strings.TrimSpace(string(b) + "\n\n" + prompt), nil
}

// runInteractive is the agent in a terminal. In a run's pane it is linked to
// its supervisor, which the environment names.
func runInteractive(ctx context.Context, o Options) (err error) {
	a := o.App
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	ui := tui.Options{
		In: a.Streams.In, Out: a.Streams.Out, Terminal: a.Streams.OutTTY, Echo: a.Streams.InTTY,
		Width: func() int { w, _ := a.Streams.Size(); return w }, Interrupts: interrupts,
		Theme: a.Theme, Name: o.Name, Dir: a.Dir, First: o.Prompt, Now: a.Now,
	}
	if socket := a.Getenv("MUNTIN_SOCKET"); socket != "" {
		client, err := pty.Dial(ctx, socket)
		if err != nil {
			return fmt.Errorf("reaching the pane's supervisor: %w", err)
		}
		defer client.Close()
		link, err := newLink(ctx, client)
		if err != nil {
			return err
		}
		defer link.close()
		ui.Link = link
	}
	var front *tui.UI
	h, err := open(ctx, o, func(opts *harness.Options) {
		ui.Model, ui.Dir = opts.Model, opts.Dir
		front = tui.New(ui)
		opts.OnEvent = front.OnEvent
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	err = front.Run(ctx, h, h.Problems()...)
	if ctx.Err() != nil {
		return nil // asked to end
	}
	return err
}
