// Package recording holds the commands about what the panes showed: replay,
// export and grep.
package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/know"
	"muntin/internal/cast"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// ReplayOptions are replay's arguments.
type ReplayOptions struct {
	App   *app.App
	Run   string
	Agent string
	All   bool
	At    string
	Speed float64
	Idle  time.Duration
	JSON  bool
}

// NewReplay makes `muntin replay`.
func NewReplay(a *app.App) *cobra.Command {
	o := ReplayOptions{App: a}
	cmd := &cobra.Command{
		Use:   "replay <agent> | --all",
		Short: "What the panes showed, as it was",
		Long: "Play the recording of a pane again, with the time of the run and what happened in it.\n" +
			"--all plays all panes on one clock, one above the other, the end of each.\n" +
			"Keys: space stops and goes on, left and right 5 s, [ and ] a turn, + and - the speed,\n" +
			"q ends. Without a terminal the recorded bytes are written as they were, in their time;\n" +
			"--speed 0 writes them at once.\n\n" +
			"--at prints the screen of one moment: a time, or turn:3 for the end of a turn.",
		Example: "  muntin replay ada\n  muntin replay ada --at turn:3\n  muntin replay --all --at 14:02:30",
		Args:    app.Args(0, 1, "an agent, or --all"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				o.Agent = args[0]
			}
			return replay(ctx, o)
		}),
		ValidArgsFunction: completeAgent(a, &o.Run),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.BoolVar(&o.All, "all", false, "all agents")
	f.StringVar(&o.At, "at", "", "print the screen at this time: 10m (ago), 14:02:30, RFC 3339, turn:3")
	f.Float64Var(&o.Speed, "speed", 1, "how fast: 2 is twice as fast, 0 at once")
	f.DurationVar(&o.Idle, "idle", 2*time.Second, "pause at most this long where nothing happened")
	f.BoolVar(&o.JSON, "json", false, "with --at: print JSON")
	return cmd
}

func completeAgent(a *app.App, run *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, err := a.Run(*run)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, _ := r.AgentNames()
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func replay(ctx context.Context, o ReplayOptions) error {
	if o.Agent == "" && !o.All || o.Agent != "" && o.All {
		return app.Usage("name an agent, or say --all")
	}
	if o.Speed < 0 || o.JSON && o.At == "" {
		return app.Usage("want --speed 0 or more, and --json with --at only")
	}
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	names, err := agentsOf(run, o.Agent)
	if err != nil {
		return err
	}
	if o.At != "" {
		return still(ctx, o, run, names)
	}
	if !o.App.Streams.Interactive() {
		if o.All {
			return app.Hint(app.Usage("--all needs a terminal to play on"), "name one agent, or a moment with --at")
		}
		return raw(ctx, o, run.Dir.Agent(o.Agent).Screen())
	}
	return play(ctx, o, run, names)
}

// agentsOf is the one agent that is named, or all.
func agentsOf(run orchestrator.Run, name string) ([]string, error) {
	if name == "" {
		return run.AgentNames()
	}
	_, err := app.Agent(run, name)
	return []string{name}, err
}

// raw writes the recorded bytes in their time.
func raw(ctx context.Context, o ReplayOptions, path string) error {
	var last time.Time
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	return cast.Read(path, func(e cast.Event) error {
		if wait := pause(o, last, e.Time); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		last = e.Time
		if e.Code != cast.Output {
			return ctx.Err()
		}
		_, err := io.WriteString(o.App.Streams.Raw(), e.Data)
		return err
	})
}

// pause is how long to wait between two events.
func pause(o ReplayOptions, last, next time.Time) time.Duration {
	if o.Speed == 0 || last.IsZero() {
		return 0
	}
	wait := next.Sub(last)
	if o.Idle > 0 {
		wait = min(wait, o.Idle)
	}
	return time.Duration(float64(wait) / o.Speed)
}

// A shown is a screen as `replay --at --json` prints it.
type shown struct {
	Agent string    `json:"agent"`
	At    time.Time `json:"at"` // what was asked for
	Turn  int       `json:"turn,omitempty"`
	cast.Screen
}

// still prints the screens of one moment.
func still(ctx context.Context, o ReplayOptions, run orchestrator.Run, names []string) error {
	events, err := history.Load(ctx, run, nil)
	if err != nil {
		return err
	}
	list := []shown{}
	for _, name := range names {
		at, err := moment(o, events, name)
		if err != nil && o.All {
			continue // it had no such turn
		}
		if err != nil {
			return err
		}
		sc, err := cast.At(run.Dir.Agent(name).Screen(), at)
		if errors.Is(err, cast.ErrNothing) && o.All {
			continue
		}
		if err != nil {
			return fmt.Errorf("replaying agent %s at %s: %w", name, at.Local().Format("15:04:05"), err)
		}
		list = append(list, shown{Agent: name, At: at, Turn: turnAt(events, name, at), Screen: sc})
	}
	if o.JSON {
		return o.App.PrintJSON(list)
	}
	if len(list) == 0 {
		return fmt.Errorf("replaying run %s at %s: %w", run.Name, o.At, cast.ErrNothing)
	}
	t, out := o.App.Theme, o.App.Streams.Out
	for _, s := range list {
		fmt.Fprintln(out, t.Dim.Render(fmt.Sprintf("── %s  %s  turn %d  %dx%d", s.Agent, s.At.Local().Format("2006-01-02 15:04:05.000"), s.Turn, s.Cols, s.Rows)))
		end := len(s.Lines)
		for end > 0 && s.Lines[end-1] == "" {
			end--
		}
		for i := range end {
			fmt.Fprintln(out, safeStyled(s.Styled, s.Lines, i))
		}
	}
	return nil
}

// safeStyled is a line of the emulator's: its cells hold text and its styles
// are the emulator's own SGR sequences, so that foreign sequences are gone.
func safeStyled(styled, plain []string, i int) string {
	if i < len(styled) {
		return styled[i] + "\x1b[m"
	}
	return term.CleanLine(plain[i])
}

// moment reads --at for an agent.
func moment(o ReplayOptions, events []history.Event, agent string) (time.Time, error) {
	text, isTurn := strings.CutPrefix(o.At, "turn:")
	if !isTurn {
		return know.ParseTime(o.At, o.App.Now())
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return time.Time{}, app.Usage("%q is no turn: want turn:1 or more", o.At)
	}
	for _, e := range slices.Backward(events) {
		if e.Agent == agent && e.Turn == n && e.Log != nil {
			return e.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("agent %s has had no turn %d", agent, n)
}

// turnAt is the last turn that an agent had begun by a time.
func turnAt(events []history.Event, agent string, at time.Time) int {
	turn := 0
	for _, e := range events {
		if e.Agent == agent && e.Kind == history.KindTurn && e.What == "started" && !e.Time.After(at) {
			turn = e.Turn
		}
	}
	return turn
}
