package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/checkpoint"
	"muntin/cmd/internal/cli/message"
	"muntin/cmd/internal/cli/run"
	"muntin/cmd/internal/cli/todo"
	"muntin/internal/term"
)

func newServe(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Offer the board, the agents and their checkpoints to an MCP client", Args: app.Args(0, 0, ""),
		Long: "Speaks the Model Context Protocol on standard input and output, until the input\n" +
			"ends. The tools do what the commands of the same names do, in this repository; in an\n" +
			"agent's pane they work on the board of its run, and in its name.",
		Example: "  claude mcp add muntin -- muntin mcp serve",
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			err := NewServer(a).Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(a.Streams.In), Writer: writer{a.Streams.Out}})
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}),
	}
}

// writer is standard output, which is not closed.
type writer struct{ io.Writer }

func (writer) Close() error { return nil }

// The parameters of the tools.
type (
	none   struct{}
	adding struct {
		Text string `json:"text" jsonschema:"what is to be done, in one line"`
	}
	naming struct {
		Task string `json:"task" jsonschema:"the task's id"`
	}
	claiming struct {
		Task string `json:"task" jsonschema:"the task's id"`
		As   string `json:"as,omitempty" jsonschema:"who takes it; in an agent's pane, the agent"`
	}
	sending struct {
		Agent string `json:"agent" jsonschema:"the agent's name"`
		Text  string `json:"text" jsonschema:"the message"`
		Run   string `json:"run,omitempty" jsonschema:"the run; else the living one"`
		Wait  bool   `json:"wait,omitempty" jsonschema:"wait for the end of the agent's turn, and give its answer"`
		Steer bool   `json:"steer,omitempty" jsonschema:"put it into the turn that runs"`
	}
	chain struct {
		Agent string `json:"agent,omitempty" jsonschema:"an agent of the run; else those taken by hand here"`
		Run   string `json:"run,omitempty" jsonschema:"the agent's run; else the living one"`
	}
)

// NewServer makes the server. Each tool is a command with --json, so that there is one
// way to do each thing.
func NewServer(a *app.App) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "muntin", Version: a.Version}, &mcp.ServerOptions{
		Instructions: "The task board and the agents of this repository. Claim a task before you work on it, and mark it done when it is.",
	})
	add(s, a, verb[none]{"todo_ls", "List the tasks of the board, with their states and who has them.", todo.NewCmd, func(none) []string {
		return []string{"ls", "--json"}
	}})
	add(s, a, verb[adding]{"todo_add", "Add a task to the board.", todo.NewCmd, func(p adding) []string { return []string{"add", "--json", "--", p.Text} }})
	add(s, a, verb[claiming]{"todo_claim", "Take a task, so that nobody else does.", todo.NewCmd, func(p claiming) []string {
		return append(given("--as", p.As, "claim", "--json"), "--", p.Task)
	}})
	add(s, a, verb[naming]{"todo_done", "Tick a task.", todo.NewCmd, func(p naming) []string { return []string{"done", "--json", "--", p.Task} }})
	add(s, a, verb[sending]{"send", "Send another agent a message. It is delivered exactly once.", message.NewSend, func(p sending) []string {
		args := given("--run", p.Run, "--json")
		if p.Wait {
			args = append(args, "--wait")
		}
		if p.Steer {
			args = append(args, "--steer")
		}
		return append(args, "--", p.Agent, p.Text)
	}})
	add(s, a, verb[none]{"status", "What the runs of this repository and their agents are doing.", run.NewLs, func(none) []string { return []string{"--json"} }})
	add(s, a, verb[chain]{"checkpoints", "List checkpoints of files, newest first.", checkpoint.NewCmd, func(p chain) []string {
		return given("--agent", p.Agent, given("--run", p.Run, "ls", "--json", "--lines", "50")...)
	}})
	return s
}

// given adds a flag to arguments when it has a value.
func given(flag, value string, args ...string) []string {
	if value == "" {
		return args
	}
	return append(args, flag+"="+value)
}

// a verb is a tool that is one of our commands.
type verb[P any] struct {
	name, description string
	cmd               func(*app.App) *cobra.Command
	args              func(P) []string
}

func add[P any](s *mcp.Server, a *app.App, v verb[P]) {
	mcp.AddTool(s, &mcp.Tool{Name: v.name, Description: v.description}, func(ctx context.Context, _ *mcp.CallToolRequest, p P) (*mcp.CallToolResult, any, error) {
		text, err := call(ctx, a, v.cmd, v.args(p))
		if err != nil {
			return nil, nil, err // it becomes a result that says so
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

// call runs a command and gives what it prints.
func call(ctx context.Context, a *app.App, makeCmd func(*app.App) *cobra.Command, args []string) (string, error) {
	var out, said bytes.Buffer
	own := &app.App{
		Streams: term.Streams{In: strings.NewReader(""), Out: &out, Err: &said}, Theme: a.Theme, Layout: a.Layout, Environ: a.Environ,
		Now: a.Now, Version: a.Version, Self: a.Self, Dir: a.Dir, Signals: context.WithCancel,
	}
	cmd := makeCmd(own)
	cmd.SetArgs(args)
	cmd.SetIn(own.Streams.In)
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	own.Background.Wait()
	if err == nil {
		return out.String(), nil
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		err = fmt.Errorf("%w\n%s", err, text)
	}
	if hint := app.HintOf(err); hint != "" {
		err = fmt.Errorf("%w\ntry: %s", err, hint)
	}
	if text := strings.TrimSpace(out.String()); text != "" { // as of send, which prints how far it came
		err = fmt.Errorf("%w\n%s", err, text)
	}
	return "", err
}
