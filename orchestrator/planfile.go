package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aymanbagabas/go-udiff"

	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/orchestrator/board"
)

// A PlanFile is the plan of a repository or a run. Seen is where the text is kept
// that agents were told of last; "" keeps none.
type PlanFile struct {
	File board.File
	Seen string
}

// NewPlanFile names the plan at path and what belongs to it in the repository's
// state folder. seen may be empty.
func NewPlanFile(dir state.RepoDir, path, seen string) PlanFile {
	return PlanFile{File: board.File{Path: path, LockPath: dir.BoardLock(path), Versions: dir.BoardVersions(path)}, Seen: seen}
}

// Read gives the plan as it is and how it differs from what was seen last, without
// its front matter. A missing file is a draft.
func (p PlanFile) Read() (Plan, error) {
	text, err := os.ReadFile(p.File.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return Plan{}, nil
	}
	if err != nil {
		return Plan{}, fmt.Errorf("reading the plan: %w", err)
	}
	status, err := board.PlanStatus(text)
	if err != nil || p.Seen == "" {
		return Plan{Status: status}, err
	}
	plan := Plan{Status: status}
	body := board.PlanBody(text)
	seen, err := os.ReadFile(p.Seen)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Plan{}, fmt.Errorf("reading the plan as it was seen: %w", err)
	case string(seen) == string(body):
		return plan, nil
	default:
		name := filepath.Base(p.File.Path)
		plan.Diff = udiff.Unified(name, name, string(seen), string(body))
	}
	return plan, durable.WriteFile(p.Seen, body, 0o600)
}

// SetStatus writes a status into the plan's front matter.
func (p PlanFile) SetStatus(ctx context.Context, status board.Status) error {
	if _, err := os.Stat(p.File.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no plan: %s does not exist", p.File.Path)
	}
	_, _, err := p.File.Update(ctx, func(b *board.Board) error {
		text, err := board.SetPlanStatus(b.Bytes(), status)
		if err != nil {
			return err
		}
		return b.Replace(text)
	})
	return err
}
