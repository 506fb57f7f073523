package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/resource/settings"
	"muntin/agent/rpc"
	"muntin/agent/session"
	"muntin/agent/tool"
	"muntin/agent/tui"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/models"
	"muntin/cmd/internal/cli/plan"
	sessions "muntin/cmd/internal/cli/session"
	"muntin/cmd/internal/cli/todo"
	"muntin/internal/state"
	"muntin/internal/term"
)

// frontOptions say how the front end looks. It draws on the terminal where there is
// one that can be drawn on, and nobody asked for lines.
func frontOptions(o Options, first string) tui.Options {
	a := o.App
	ui := tui.Options{
		In: a.Streams.In, Out: a.Streams.Out, Terminal: a.Streams.OutTTY, Echo: a.Streams.InTTY,
		Width: func() int { w, _ := a.Streams.Size(); return w }, Size: a.Streams.Size, Tty: a.Streams.Terminal(), Env: a.Environ,
		Theme: a.Theme, Name: cmp.Or(o.Name, "muntin"), Dir: a.Dir, First: first, Now: a.Now,
	}
	terminal := a.Getenv("TERM")
	ui.Live = a.Streams.Interactive() && ui.Tty != nil && !o.Plain && terminal != "dumb" && terminal != ""
	return ui
}

// newHost is what the front end's slash commands reach.
func newHost(op *opener) tui.Host {
	a, dir := op.App, op.dir
	h := tui.Host{
		Open: func(ctx context.Context, at tui.Place, attach func(*harness.Options)) (*harness.Harness, error) {
			to := rpc.Place{File: at.File, Parent: at.Parent, Model: at.Model, Thinking: at.Thinking}
			return op.openAt(ctx, to, attach)
		},
		NewFile: func() (string, error) {
			return Conversation{None: op.Session.None, Dir: op.Session.Dir}.path(a, op.dir)
		},
		OpenModel: func(ctx context.Context, name string) (harness.Model, llm.Level, error) {
			return newModel(ctx, op.Options, op.ext, name)
		},
		Models: func() []llm.Model {
			shop, err := models.NewShop(a)
			if err != nil {
				return nil
			}
			return shop.Available()
		},
		Export:  exportTo(op.dir),
		Picture: tool.Picture,
		Branch:  func() string { return branch(dir) },
		Task:    func() string { return todo.Claimed(a, a.Getenv("MUNTIN_AGENT")) },
		Editor:  strings.Fields(cmp.Or(a.Getenv("VISUAL"), a.Getenv("EDITOR"), "vi")),
	}
	h.Checkpoints = newSavedFiles(a, dir, func() bool { return op.settings.Checkpoints != settings.CheckpointsOff })
	h.Settings, h.Trust = placeSettings{op}, placeTrust{op}
	h.Theme = func() term.Theme { return op.theme }
	if _, err := a.Repo(); err == nil {
		h.Commands = []tui.Command{
			{Name: "todo", Help: "the board", Run: func(context.Context, tui.Asker, string) (string, error) { return todo.Markdown(a) }},
			{Name: "plan", Help: "the plan", Run: func(context.Context, tui.Asker, string) (string, error) { return plan.Markdown(a) }},
		}
	}
	if !op.Session.None {
		h.Sessions = func() ([]session.Info, error) {
			all, err := session.List(sessions.Dir(a, op.Session.Dir))
			var here []session.Info
			for _, s := range all {
				if s.Cwd == op.dir && s.Messages > 0 {
					here = append(here, s)
				}
			}
			return here, err
		}
	}
	return h
}

// branch is the branch that is checked out in a folder, or the start of the commit;
// "" outside of a repository.
func branch(dir string) string {
	repo, err := state.FindRepo(dir)
	if err != nil {
		return ""
	}
	head, err := os.ReadFile(filepath.Join(repo.GitDir, "HEAD"))
	if err != nil {
		return ""
	}
	name := strings.TrimSpace(string(head))
	if ref, ok := strings.CutPrefix(name, "ref: refs/heads/"); ok {
		return ref
	}
	return name[:min(len(name), 8)]
}

// historyFile is where what was sent in a folder is remembered.
func historyFile(a *app.App, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(a.Layout.State, "history", hex.EncodeToString(sum[:8])+".jsonl")
}
