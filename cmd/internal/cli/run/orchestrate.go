package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/logfile"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/board"
	"muntin/orchestrator/dash"
	"muntin/orchestrator/notify"
	"muntin/orchestrator/panes"
	"muntin/tmux"
)

// NewOrchestrate makes `muntin orchestrate`, the process in the board's pane.
func NewOrchestrate(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:    "orchestrate [run]",
		Short:  "The orchestrator and board of a run (started by muntin in a pane)",
		Long:   "Give a run's tasks to its agents, check and merge what they finish, and show the\nboard. It can be ended and started again at any time: agents go on without it.",
		Hidden: true,
		Args:   app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			run, err := a.Run(first(args))
			if err != nil {
				return err
			}
			return orchestrate(ctx, a, run)
		}),
	}
}

func orchestrate(ctx context.Context, a *app.App, run orchestrator.Run) error {
	log, file, err := logfile.Open(run.Dir.Log("orchestrate"), slog.LevelInfo)
	if err != nil {
		return err
	}
	defer file.Close()
	repo, err := state.FindRepo(run.Root)
	if err != nil {
		return err
	}
	env, err := orchestrator.ReadEnv(run.Dir, a.Environ)
	if err != nil {
		return err
	}
	recipe, err := run.Recipe()
	if err != nil {
		return err
	}
	told := notify.Options{Recipe: recipe, Run: run, Environ: env, Log: log, Now: a.Now, Terminal: terminalOf(a)}
	on := openTmux(ctx, a, run, log)
	if on.host != nil {
		told.Messenger = on.host
		on.starter = &orchestrator.FleetStarter{
			Run: run, Host: on.host, Fleet: orchestrator.NewFleet(run, recipe, orchestrator.FleetOptions{Self: a.Self, Environ: env}),
		}
	}
	shown, err := newScreen(ctx, a, run, on.onView)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error {
		defer stop()
		err := shown.show(ctx, dash.Options{Owner: true, Commands: commands{app: a, run: run}})
		if errors.Is(err, dash.ErrQuit) || ctx.Err() != nil {
			return nil // asked to end
		}
		return err
	})
	if on.signs != nil {
		group.Go(func() error { on.signs.Run(ctx); return nil })
	}
	group.Go(func() error {
		defer stop()
		return orchestrator.Serve(ctx, orchestrator.ServeOptions{
			Run: run, Repo: repo, Dir: a.Layout.Repo(repo), Environ: env, Panes: on.panes, Starter: on.starter, Notifier: notify.New(told), Now: a.Now,
			OnState: func(s orchestrator.State, problems []board.Problem) { shown.source.Update(s, problems) },
		})
	})
	if err := group.Wait(); err != nil {
		log.Error("the orchestrator ended", "error", err)
		if errors.Is(err, orchestrator.ErrServed) {
			return app.NeedsPerson(err)
		}
		return fmt.Errorf("orchestrating run %s: %w", run.Name, err)
	}
	log.Info("the orchestrator was ended")
	return nil
}

// terminalOf is where a bell rings; nil where there is no terminal.
func terminalOf(a *app.App) io.Writer {
	if !a.Streams.OutTTY {
		return nil
	}
	return a.Streams.Out
}

// onTmux is the tmux server that a run is on, as its orchestrator needs it. All is
// nil where there is none.
type onTmux struct {
	host    *panes.Host
	panes   orchestrator.Panes
	starter orchestrator.Starter
	signs   *panes.Signs
	onView  func(dash.View)
}

// openTmux finds the server, and binds our keys if it is ours.
func openTmux(ctx context.Context, a *app.App, run orchestrator.Run, log *slog.Logger) onTmux {
	server, err := a.Tmux(ctx, run.Socket)
	if err != nil {
		log.Warn("panes are not watched, and agents are not started again", "error", err)
		return onTmux{}
	}
	if server.Ours() {
		if err := server.BindPopups(ctx, leadKey, popupKeys(a)); err != nil {
			log.Warn("no keys open popups", "error", err)
		}
	}
	host := panes.New(server)
	signs := host.NewSigns(run.Session)
	return onTmux{host: host, panes: host, signs: signs, onView: func(v dash.View) { showSigns(a, signs, v) }}
}

// showSigns has tmux show what a view says.
func showSigns(a *app.App, signs *panes.Signs, v dash.View) {
	colour := a.Getenv("NO_COLOR") == ""
	agents := map[string]panes.Sign{}
	for _, agent := range v.Agents {
		s := dash.SignOf(agent, a.Now(), colour)
		agents[agent.Name] = panes.Sign{State: s.State, Mark: s.Mark, Style: s.Style, Task: agent.Task, Since: s.Since}
	}
	text, needs := dash.Words(v)
	segment := tmux.Escape(text)
	if needs != "" {
		segment += " #[" + term.TmuxStyle(a.Theme.Warn.Bold(true), colour) + "]" + tmux.Escape(needs) + "#[default]"
	}
	signs.Update(segment, agents)
}
