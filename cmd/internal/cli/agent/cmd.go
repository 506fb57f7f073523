// Package agent holds the commands of a single agent: muntin's own coding
// agent, and the supervisor that every agent of a run lives in.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"muntin/agent/harness"
	"muntin/agent/llm/catalog"
	"muntin/agent/pty"
	"muntin/agent/resource/settings"
	"muntin/agent/rpc"
	"muntin/agent/tui"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/extension"
)

// Options are the agent's arguments.
type Options struct {
	App       *app.App
	Args      []string // prompts, and files by @
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
	Exclude   []string
	NoTools   bool
	NoContext bool
	Models    []string
	Record    string
	System    string // text or file
	Append    string // text or file
	Name      string
	Plain     bool
	Trust     bool
	NoTrust   bool
	Skills    []string // folders
	Prompts   []string // folders
	Theme     string

	Extensions     []string // folders
	ExtensionFlags []string // EXTENSION.NAME=VALUE
	NoExtensions   bool

	ACP bool

	settings settings.Settings // what none of these says
}

// NewCmd makes `muntin agent`.
func NewCmd(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use:   "agent [prompt...] [@file...]",
		Short: "muntin's own coding agent, in this terminal",
		Long: "A coding agent with the tools read, bash, edit and write. With -p it answers its\n" +
			"prompts and exits; without, it takes prompts from the keyboard and, in a run's\n" +
			"pane, from its supervisor. With --mode rpc another program drives it by commands\n" +
			"on standard input, one JSON object a line.\n\n" +
			"The first prompt is what comes on standard input, the files named by @ (pictures\n" +
			"are attached), and the first argument; each other argument is a prompt that\n" +
			"follows it.\n\n" +
			"Models: provider/id, and behind it a level of thinking, as in\n" +
			"anthropic/claude-opus-5:high. A part of the id will do where it means one model;\n" +
			"muntin models lists them. Keys come from muntin login, from models.json and from\n" +
			"variables such as $OPENAI_API_KEY. $OPENAI_BASE_URL names any compatible server.\n" +
			"scripted/<file> replays a conversation file.\n\n" +
			"What is not said here comes from the settings (muntin settings), those of the\n" +
			"project only where its folder is trusted (muntin trust). The agent has your\n" +
			"rights: it is in no sandbox, and trust is none.",
		Example: "  muntin agent -p \"what does this program do?\" --model openai/gpt-5\n" +
			"  muntin agent --continue\n" +
			"  muntin agent --model scripted/demo",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Args = args
			switch {
			case o.ACP:
				return runACP(cmd.Context(), o)
			case o.Mode == "rpc":
				return runServe(cmd.Context(), o)
			case o.Print || o.Mode != "":
				ctx, stop := a.Signals(cmd.Context())
				defer stop()
				return runPrint(ctx, o)
			}
			return runInteractive(cmd.Context(), o)
		},
	}
	o.flags(cmd)
	cmd.AddCommand(extension.NewCmd(a), newResources(a))
	return cmd
}

func (o *Options) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&o.Print, "print", "p", false, "answer one prompt on standard output and exit")
	f.StringVar(&o.Mode, "mode", "", "text, json for every event on a line, or rpc")
	f.BoolVar(&o.ACP, "acp", false, "let an editor drive the agent, by the Agent Client Protocol on standard input and output")
	f.StringVar(&o.Model, "model", "", "provider/id[:thinking] (default: $MUNTIN_MODEL)")
	f.StringVar(&o.Thinking, "thinking", "", "off, minimal, low, medium, high, xhigh or max (default: the model's)")
	f.StringVar(&o.BaseURL, "base-url", "", "another server that speaks the provider's API")
	f.StringVar(&o.APIKey, "api-key", "", "$NAME or !command, which keeps the key out of the process list, or the key")
	f.StringVar(&o.Deadlines, "deadlines", "", "such as connect=10s,firstEvent=10m,idle=2m,whole=none (default: $MUNTIN_DEADLINES, then the model's)")
	o.Session.flags(cmd)
	f.StringSliceVarP(&o.Tools, "tools", "t", nil, "tools to offer, by name or * pattern, or changes as in +grep,-bash (default: read, bash, edit, write; there are also grep, find, ls)")
	f.StringSliceVar(&o.Exclude, "exclude-tools", nil, "tools not to offer, by name or * pattern")
	f.BoolVar(&o.NoTools, "no-tools", false, "offer no tools")
	f.StringVar(&o.System, "system-prompt", "", "a text, or a file that holds it, in place of muntin's own")
	f.StringVar(&o.Append, "append-system-prompt", "", "a text, or a file that holds it, to add to the system prompt")
	f.BoolVar(&o.NoContext, "no-context-files", false, "do not read AGENTS.md and CLAUDE.md")
	f.StringSliceVar(&o.Models, "models", nil, "with --mode rpc: the models that cycle_model goes through")
	f.StringVar(&o.Record, "record", "", "a file to write what the model said to, as a conversation that --model scripted/FILE replays")
	f.IntVar(&o.Window, "context-window", 0, "tokens that the model takes (default: what the catalogue says)")
	f.BoolVar(&o.NoCompact, "no-auto-compact", false, "never summarise unasked, unless the model has no room left")
	f.StringArrayVar(&o.Extensions, "extension", nil, "the folder of an extension to load beside the others; may be repeated")
	f.StringArrayVar(&o.ExtensionFlags, "extension-flag", nil, "EXTENSION.NAME=VALUE, a setting of an extension; may be repeated")
	f.BoolVar(&o.NoExtensions, "no-extensions", false, "load no extensions and no MCP servers")
	f.BoolVar(&o.Plain, "plain", false, "lines only, for screen readers: nothing on the screen changes once it is written")
	f.BoolVar(&o.Trust, "trust", false, "load the project's settings, skills and prompts, for this once")
	f.BoolVar(&o.NoTrust, "no-trust", false, "do not load them, for this once")
	f.StringSliceVar(&o.Skills, "skill", nil, "a folder with a skill or with several")
	f.StringSliceVar(&o.Prompts, "prompt-template", nil, "a folder with prompt templates")
	f.StringVar(&o.Theme, "theme", "", "the colours: the name of a theme")
	cmd.MarkFlagsMutuallyExclusive("trust", "no-trust")
	f.StringVarP(&o.Name, "name", "n", "", "a name for the conversation, which is shown on the agent's screen too")
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

// runPrint answers the prompts.
func runPrint(ctx context.Context, o Options) (err error) {
	a := o.App
	prompts, err := inputs(a, o.Args)
	if err != nil {
		return err
	}
	if len(prompts) == 0 {
		return app.Usage("there is no prompt: give one as an argument or on standard input")
	}
	op, err := newOpener(ctx, o, false)
	if err != nil {
		return err
	}
	op.tellNotes()
	ui := &headless{app: a}
	switch o.Mode {
	case "", "text":
		h, err := op.open(ctx, func(opts *harness.Options) { opts.UI = ui })
		if err != nil {
			return err
		}
		defer h.Close()
		if prompts, err = expanded(h, prompts); err != nil {
			return err
		}
		return errors.Join(rpc.Print(ctx, h, prompts, a.Streams.Out), op.record())
	case "json":
		events := rpc.NewJSON(a.Streams.Out)
		h, err := op.open(ctx, func(opts *harness.Options) { opts.OnEvent, opts.UI = events.OnEvent, ui })
		if err != nil {
			return err
		}
		defer h.Close()
		if prompts, err = expanded(h, prompts); err != nil {
			return err
		}
		return errors.Join(events.Run(ctx, h, h.Header(), prompts), op.record())
	}
	return app.Usage("mode %q: want text, json or rpc", o.Mode)
}

// runInteractive is the agent in a terminal. In a run's pane it is linked to
// its supervisor, which the environment names.
func runInteractive(ctx context.Context, o Options) (err error) {
	a := o.App
	first, err := firstPrompt(a, o.Args)
	if err != nil {
		return err
	}
	socket := a.Getenv("MUNTIN_SOCKET")
	op, err := newOpener(ctx, o, a.Streams.Interactive() && socket == "") // nobody may sit before the pane of a run
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(told)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	ui := frontOptions(o, first)
	ui.Interrupts, ui.Theme = interrupts, op.theme
	if socket != "" {
		client, err := pty.Dial(ctx, socket)
		if err != nil {
			return fmt.Errorf("reaching the pane's supervisor: %w", err)
		}
		defer client.Close()
		link, err := newLink(ctx, client, a.Now)
		if err != nil {
			return err
		}
		defer link.close()
		ui.Link = link
	}
	var front *tui.UI
	h, err := op.open(ctx, func(opts *harness.Options) {
		ui.Model, ui.Dir = opts.Model, opts.Dir
		ui.Host, ui.History = newHost(op), historyFile(a, opts.Dir)
		front = tui.New(ui)
		front.Attach(opts)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cmp.Or(front.Agent(), h).Close(), op.record()) }()
	err = front.Run(ctx, h, slices.Concat(op.place.Notes, op.problems, h.Problems())...)
	if ctx.Err() != nil {
		return toldToEnd(told)
	}
	return err
}

// toldToEnd is the end of an agent that a signal ended: the status is what a
// shell makes of it, since it is not the end that a person who leaves chose.
func toldToEnd(told <-chan os.Signal) error {
	select {
	case s := <-told:
		if n, ok := s.(syscall.Signal); ok {
			return app.Exit(128 + int(n))
		}
	default:
	}
	return nil
}
