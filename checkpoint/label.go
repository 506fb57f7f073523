package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// labelSpace is where the labels are: a ref of its own each, so that git's gc
// keeps what a label points to whatever happens to its chain.
const labelSpace = namespace + "labels/"

// ErrExists says that a name is taken.
var ErrExists = errors.New("exists already")

// A Label is a checkpoint with a name. It is kept by every gc.
type Label struct {
	Name       string     `json:"name"`
	Checkpoint Checkpoint `json:"checkpoint"` // its Ref is the label's
}

// Label gives a checkpoint a name, under which Find knows it on every chain
// of the repository. A name is one that git takes for a ref, without slashes, and one that
// is not a number, a commit or another way to name a checkpoint. The error
// matches ErrExists if the name is taken by another checkpoint.
func (s *Store) Label(ctx context.Context, c Checkpoint, name string) error {
	ref, err := labelRef(name)
	if err != nil {
		return err
	}
	end, err := s.beginChange(ctx)
	if err != nil {
		return err
	}
	defer end()
	r, _, err := s.load(c)
	if err != nil {
		return fmt.Errorf("labelling checkpoint: %w", err)
	}
	old, err := s.readRef(ref)
	if err != nil || old == r.hash {
		return err
	}
	if !old.IsZero() {
		return fmt.Errorf("label %s: %w", name, ErrExists)
	}
	err = s.moveRef(ctx, refMove{name: ref, next: r.hash})
	if errors.Is(err, errMoved) {
		return fmt.Errorf("label %s: %w", name, ErrExists)
	}
	return err
}

// Unlabel takes a name away. The error matches ErrNotFound if there is no such label.
func (s *Store) Unlabel(ctx context.Context, name string) error {
	ref, err := labelRef(name)
	if err != nil {
		return err
	}
	end, err := s.beginChange(ctx)
	if err != nil {
		return err
	}
	defer end()
	old, err := s.readRef(ref)
	if err != nil {
		return err
	}
	if old.IsZero() {
		return fmt.Errorf("label %s: %w", name, ErrNotFound)
	}
	return deleteRef(ctx, s.where.Path, ref, old)
}

// Labels lists the labels of the repository by name.
func (s *Store) Labels(ctx context.Context) ([]Label, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := listRefs(s.where.Path, labelSpace)
	if err != nil {
		return nil, fmt.Errorf("listing labels: %w", err)
	}
	var labels []Label
	for _, ref := range names {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("listing labels: %w", context.Cause(ctx))
		}
		c, err := s.atRef(ref)
		if errors.Is(err, ErrNotFound) {
			continue // removed just now
		}
		if err != nil {
			return nil, fmt.Errorf("listing labels: %s: %w", ref, err)
		}
		labels = append(labels, Label{Name: strings.TrimPrefix(ref, labelSpace), Checkpoint: c})
	}
	return labels, nil
}

// atRef is the checkpoint that a ref points to.
func (s *Store) atRef(ref string) (Checkpoint, error) {
	h, err := s.readRef(ref)
	if err != nil {
		return Checkpoint{}, err
	}
	if h == plumbing.ZeroHash {
		return Checkpoint{}, ErrNotFound
	}
	r, err := s.record(h)
	if err != nil {
		return Checkpoint{}, err
	}
	return r.checkpoint(ref), nil
}

// byLabel finds a checkpoint by its label; unknown is the error for a spec
// that is none.
func (s *Store) byLabel(spec string, unknown error) (Checkpoint, error) {
	ref, err := labelRef(spec)
	if err != nil {
		return Checkpoint{}, unknown
	}
	c, err := s.atRef(ref)
	if errors.Is(err, ErrNotFound) {
		return c, unknown
	}
	return c, err
}

func labelRef(name string) (string, error) {
	ref := labelSpace + name
	if strings.Contains(name, "/") || strings.HasPrefix(name, "-") || checkRef(ref) != nil {
		return "", fmt.Errorf("label %q: not a name that git takes for a ref", name)
	}
	if _, err := parseSpec(name); err == nil {
		return "", fmt.Errorf("label %q: it would be taken for a number, a commit or a turn", name)
	}
	return ref, nil
}
