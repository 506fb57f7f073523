package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/checkpoint"
	"muntin/checkpoint/watch"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/logfile"
	"muntin/internal/state"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// paneOptions say how an outside agent is started, beside its recipe.
type paneOptions struct {
	app     *app.App
	outside outside
}

// NewPane makes `muntin pane`, the process that a run's panes run.
func NewPane(a *app.App) *cobra.Command {
	o := paneOptions{app: a}
	cmd := &cobra.Command{
		Use:    "pane <run> <agent>",
		Short:  "The supervisor of one agent (started by muntin in a pane)",
		Hidden: true,
		Args:   app.Args(2, 2, "a run and an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := a.Run(args[0])
			if err != nil {
				return err
			}
			return supervise(cmd.Context(), o, run, args[1])
		},
	}
	cmd.Flags().StringVar(&o.outside.adapter, "adapter", "", "the adapter of the agent's command, by name")
	cmd.Flags().StringVar(&o.outside.fork, "fork", "", "begin with a copy of the CLI's conversation of that id, if the agent has none yet")
	cmd.Flags().StringVar(&o.outside.wants.Approval, "approval", "", "the CLI's approval mode: ask, edits, all (see muntin adapter show)")
	cmd.Flags().StringVar(&o.outside.wants.Sandbox, "sandbox", "", "the CLI's sandbox (see muntin adapter show)")
	cmd.Flags().StringVar(&o.outside.wants.Thinking, "thinking", "", "how hard the CLI's model thinks, in the CLI's words")
	cmd.Flags().StringSliceVar(&o.outside.wants.Tools, "tools", nil, "the CLI's tools, in its words")
	return cmd
}

// supervise runs an agent of a run on a pty of its own until it ends.
func supervise(ctx context.Context, o paneOptions, run orchestrator.Run, name string) error {
	a := o.app
	recipe, err := run.Recipe()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(recipe.Agents, func(r recipes.Agent) bool { return r.Name == name })
	if i < 0 {
		_, err := app.Agent(run, name)
		return err
	}
	agent, dir := recipe.Agents[i], run.Dir.Agent(name)
	log, file, err := logfile.Open(run.Dir.Log("pane-"+name), slog.LevelInfo)
	if err != nil {
		return err
	}
	defer file.Close()
	env, err := orchestrator.ReadEnv(run.Dir, a.Environ)
	if err != nil {
		return err
	}
	ports, err := orchestrator.PortsEnv(run.Dir, name)
	if err != nil {
		return err
	}
	workDir := orchestrator.WorkDir(run.Dir, run.Root, agent)
	argv := argvOf(a, agent, dir.Session())
	saver := &checkpoints{dir: workDir, ref: orchestrator.CheckpointRef(run.Name, name), cache: dir.Path, app: a, log: log}
	opt := pty.Options{
		Run: run.Name, Agent: name, Dir: dir, Argv: argv, WorkDir: filepath.Join(workDir, agent.Dir),
		Env: append(agentEnv(a, run, agent, env), ports...),
		In:  os.Stdin, Out: os.Stdout, Redact: secrets(env, agent.Env), Now: a.Now, Log: log,
		Checkpoints: saver, Limits: orchestrator.Measured(recipe),
	}
	o.outside.take(agent)
	opt.Limits = agent.Limits != (recipes.Limits{}) || recipe.Limits != (recipes.Limits{})
	opt.Ready = readiness(agent.Ready, opt)
	if err := prepare(a, &opt, o.outside); err != nil {
		return err
	}
	held := showHeld(ctx, a, run.Socket, log)
	opt.OnHeld = held.set
	exit, err := pty.Run(ctx, opt)
	held.close()
	if err := saver.Close(); err != nil {
		log.Warn("the watcher of the worktree did not end well", "error", err)
	}
	if err != nil {
		log.Error("the supervisor ended", "error", err)
		return &app.ExitError{Code: exit.Code, Err: err}
	}
	exit.Die()
	return app.Exit(exit.Code)
}

// argvOf is the command of an agent: its own, or muntin's coding agent.
func argvOf(a *app.App, agent recipes.Agent, session string) []string {
	if !agent.BuiltIn() {
		return orchestrator.Program(agent)
	}
	argv := []string{a.Self, "agent", "--name", agent.Name, "--model", agent.Model, "--session", session}
	if agent.Thinking != "" {
		argv = append(argv, "--thinking", agent.Thinking)
	}
	if len(agent.Tools) > 0 {
		argv = append(argv, "--tools", strings.Join(agent.Tools, ","))
	}
	if agent.System != "" {
		argv = append(argv, "--append-system-prompt", agent.System)
	}
	return argv
}

// agentEnv is the environment of an agent: that of the person who started the
// run, and where the agent finds its run. muntin itself is in its PATH.
func agentEnv(a *app.App, run orchestrator.Run, agent recipes.Agent, env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "MUNTIN_") && name != "MUNTIN_SCRIPT_SPEED" || name == "TERM" || name == "COLORTERM"
	})
	// What the program sees is the pane, not the terminal muntin up was typed in.
	env = append(env, "TERM="+a.Getenv("TERM"), "COLORTERM=truecolor")
	for i, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			env[i] = "PATH=" + path + string(os.PathListSeparator) + filepath.Dir(a.Self)
		}
	}
	return append(env,
		"MUNTIN_RUN="+run.Name, "MUNTIN_AGENT="+agent.Name, "MUNTIN_REPO="+run.Root,
		"MUNTIN_BOARD="+run.Todo, "MUNTIN_PLAN="+run.Plan, "MUNTIN_SOCKET="+run.Dir.Agent(agent.Name).Socket,
	)
}

// secrets are the values that must not be in a recording: those of variables
// the recipe passes on by name, and of variables whose name says key, token,
// secret or password.
func secrets(env, named []string) []string {
	var values []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		looks := slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}, func(w string) bool { return strings.Contains(upper, w) })
		if len(value) >= 8 && (looks || slices.Contains(named, name)) {
			values = append(values, value)
		}
	}
	return values
}

// checkpoints takes an agent's checkpoints. The store is opened with the
// first, so that the agent does not wait for it.
type checkpoints struct {
	app             *app.App
	log             *slog.Logger
	dir, ref, cache string
	store           *checkpoint.Store
	tree            string         // of the last one taken here
	watcher         *watch.Watcher // nil if the worktree cannot be watched
	unwatched       string         // why the watcher does not see all of it, as the newest checkpoint has it
}

// watchFrom is the number of tracked files from which on a worktree is
// watched: a look at all of fewer costs a few milliseconds.
const watchFrom = 5000

// open opens the store. Without a watcher it works as well, in more time.
func (c *checkpoints) open(ctx context.Context) error {
	opts := checkpoint.Options{Worktree: c.dir, Ref: c.ref, CacheDir: c.cache, Now: c.app.Now, WatchFrom: watchFrom}
	if repo, err := state.FindRepo(c.dir); err == nil {
		if c.watcher, err = watch.New(watch.Options{Root: repo.Root, Dir: c.cache}); err != nil {
			c.log.Debug("checkpoints look at the whole worktree", "reason", err)
		} else {
			opts.Watcher = c.watcher
		}
	}
	store, err := checkpoint.Open(ctx, opts)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	c.store = store
	return nil
}

// Close ends the watching.
func (c *checkpoints) Close() error {
	w := c.watcher
	if c.watcher = nil; w == nil {
		return nil
	}
	return w.Close()
}

// Save implements pty.Checkpointer.
func (c *checkpoints) Save(ctx context.Context, req pty.CheckpointRequest) (pty.CheckpointInfo, error) {
	if c.store == nil {
		if err := c.open(ctx); err != nil {
			return pty.CheckpointInfo{}, err
		}
	}
	if req.Cause == pty.CauseBetween && c.tree != "" {
		now, err := c.store.Worktree(ctx)
		if err != nil {
			return pty.CheckpointInfo{}, err
		}
		if now.Tree == c.tree {
			return pty.CheckpointInfo{}, pty.ErrUnchanged
		}
	}
	saved, report, err := c.store.Save(ctx, checkpoint.Meta{
		Run: req.Run, Agent: req.Agent, Turn: req.Turn, Message: req.Message, Entry: req.Entry, Cause: checkpoint.Cause(req.Cause),
	})
	if err != nil {
		return pty.CheckpointInfo{}, fmt.Errorf("taking a checkpoint of %s: %w", c.dir, err)
	}
	c.tree = saved.Tree
	merging, err := worktree.MergeHeads(c.dir)
	if err != nil {
		return pty.CheckpointInfo{}, fmt.Errorf("taking a checkpoint of %s: %w", c.dir, err)
	}
	if report.Unwatched != c.unwatched && report.Unwatched != "" {
		c.log.Warn("checkpoints look at the whole worktree", "reason", report.Unwatched)
	}
	c.unwatched = report.Unwatched
	return pty.CheckpointInfo{
		ID: saved.ID, Commit: saved.Commit, Tree: saved.Tree, Ref: saved.Ref, Files: saved.Files, Cause: string(req.Cause),
		Head: saved.Head, Merging: merging,
	}, nil
}

// Maintain implements pty.Maintainer: it folds the small packs of many turns.
func (c *checkpoints) Maintain(ctx context.Context) error {
	if c.store == nil {
		return nil // nothing was saved
	}
	_, err := c.store.Maintain(ctx)
	return err
}
