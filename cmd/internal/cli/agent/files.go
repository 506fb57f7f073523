package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/agent/tui"
	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
)

// savedFiles are the checkpoints that the front end shows and goes back to: those of
// the agent in a run's pane, else those that are taken by hand in the repository, to
// which it adds one before each turn.
type savedFiles struct {
	app        *app.App
	dir        string
	run, agent string      // "" outside of a run
	on         func() bool // whether one is added before each turn
}

// newSavedFiles is nil outside of a repository: nobody has said then that all that
// lies below the folder is one thing.
func newSavedFiles(a *app.App, dir string, on func() bool) tui.Checkpoints {
	if _, err := state.FindRepo(dir); err != nil {
		return nil
	}
	f := savedFiles{app: a, dir: dir, on: on}
	if a.Getenv("MUNTIN_SOCKET") != "" {
		f.run, f.agent = a.Getenv("MUNTIN_RUN"), a.Getenv("MUNTIN_AGENT")
	}
	return f
}

// with opens the store, which is closed when do has ended.
func (f savedFiles) with(ctx context.Context, do func(*checkpoint.Store) error) error {
	store, err := f.open(ctx)
	if err != nil {
		return fmt.Errorf("opening the checkpoints of %s: %w", f.dir, err)
	}
	return errors.Join(do(store), store.Close())
}

func (f savedFiles) open(ctx context.Context) (*checkpoint.Store, error) {
	if f.run != "" && f.agent != "" {
		store, err := runStore(ctx, f.app, f.run, f.agent)
		if err == nil && store == nil {
			err = fmt.Errorf("run %s has no agent %s", f.run, f.agent)
		}
		return store, err
	}
	repo, err := state.FindRepo(f.dir)
	if err != nil {
		return nil, err
	}
	ref, err := checkpoint.HandRef(f.dir)
	if err != nil {
		return nil, err
	}
	cache := filepath.Join(f.app.Layout.Repo(repo).Path, "checkpoints")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, checkpoint.Options{Worktree: f.dir, Ref: ref, CacheDir: cache, Now: f.app.Now})
}

// Save implements tui.Checkpoints.
func (f savedFiles) Save(ctx context.Context, entry, message string) error {
	if !f.on() {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return f.with(ctx, func(s *checkpoint.Store) error {
		_, _, err := s.Save(ctx, checkpoint.Meta{Cause: checkpoint.CauseManual, Entry: entry, Note: "before: " + term.Truncate(term.CleanLine(first), 60)})
		return err
	})
}

// List implements tui.Checkpoints. The states that a restore or an undo left are no
// places to go back to from a message.
func (f savedFiles) List(ctx context.Context) (all []tui.Checkpoint, err error) {
	err = f.with(ctx, func(s *checkpoint.Store) error {
		list, err := s.List(ctx)
		for _, c := range list {
			if c.Cause == checkpoint.CauseRestored || c.Cause == checkpoint.CauseUndo {
				continue
			}
			title := c.Note
			switch c.Cause {
			case checkpoint.CauseTurn:
				title = fmt.Sprintf("after turn %d", c.Turn)
			case checkpoint.CauseStart:
				title = "before the first turn"
			case checkpoint.CauseBetween:
				title = "between turns"
			case checkpoint.CauseManual, checkpoint.CauseRestored, checkpoint.CauseUndo:
			}
			all = append(all, tui.Checkpoint{ID: fmt.Sprint(c.ID), Title: title, Entry: c.Entry, Time: c.Time, Files: c.Files})
		}
		return err
	})
	slices.SortStableFunc(all, func(a, b tui.Checkpoint) int { return b.Time.Compare(a.Time) })
	return all, err
}

// Restore implements tui.Checkpoints.
func (f savedFiles) Restore(ctx context.Context, id string) (told string, err error) {
	err = f.with(ctx, func(s *checkpoint.Store) error {
		target, err := s.Find(ctx, "#"+id)
		if err != nil {
			return err
		}
		report, err := s.Restore(ctx, target)
		told = restoreText("The files are as in checkpoint #"+id, report)
		return err
	})
	return told, err
}

// Undo implements tui.Checkpoints.
func (f savedFiles) Undo(ctx context.Context) (told string, err error) {
	err = f.with(ctx, func(s *checkpoint.Store) error {
		report, err := s.Undo(ctx)
		told = restoreText("The files are as before the rollback", report)
		return err
	})
	return told, err
}

func restoreText(what string, r checkpoint.RestoreReport) string {
	if len(r.Written)+len(r.Deleted) == 0 {
		return what + ": nothing was to be changed."
	}
	text := fmt.Sprintf("%s: %d written, %d deleted.", what, len(r.Written), len(r.Deleted))
	if n := len(r.Protected) + len(r.Conflicts); n > 0 {
		text += fmt.Sprintf(" %d left alone.", n)
	}
	return text
}

// Patch implements tui.Checkpoints.
func (f savedFiles) Patch(ctx context.Context, id string) (string, error) {
	var b strings.Builder
	err := f.with(ctx, func(s *checkpoint.Store) error {
		spec := "latest"
		if id != "" {
			spec = "#" + strings.TrimPrefix(id, "#")
		}
		from, err := s.Find(ctx, spec)
		if err != nil {
			return err
		}
		now, err := s.Worktree(ctx)
		if err != nil {
			return err
		}
		return s.Patch(ctx, &b, from, now)
	})
	return b.String(), err
}
