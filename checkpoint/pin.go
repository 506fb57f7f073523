package checkpoint

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Others may keep checkpoints by commits on refs of theirs, as the orchestrator
// does with its fleet points.
const (
	// PointRefs is the prefix of the refs that are looked at. Each is a chain of commits by
	// their first parents.
	PointRefs = namespace + "points/"
	// PinTrailer is the key of a line in such a commit's message that keeps a
	// checkpoint: its number, a space and the ref of its chain. Numbers do not change.
	PinTrailer = trailer + "Pin"
)

// pinned are the numbers of this chain's checkpoints that others keep.
func (s *Store) pinned() (map[int]bool, error) {
	names, err := listRefs(s.where.Path, PointRefs)
	if err != nil {
		return nil, err
	}
	pins := map[int]bool{}
	for _, name := range names {
		h, err := s.readRef(name)
		for err == nil && !h.IsZero() {
			h, err = s.readPins(h, pins)
		}
		if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, err
		}
	}
	return pins, nil
}

// readPins takes the pins of one commit and returns its first parent, if that is
// another of its kind.
func (s *Store) readPins(h plumbing.Hash, pins map[int]bool) (next plumbing.Hash, err error) {
	data, err := s.odb.content(plumbing.CommitObject, h)
	if err != nil {
		return next, err
	}
	head, message, _ := strings.Cut(string(data), "\n\n")
	if !strings.HasPrefix(message, "fleet point ") {
		return next, nil
	}
	for line := range strings.Lines(message) {
		number, ref, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), PinTrailer+": "), " ")
		if n, err := strconv.Atoi(number); err == nil && ref == s.opts.Ref {
			pins[n] = true
		}
	}
	for line := range strings.Lines(head) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "parent "); ok {
			next, _ = parseHash(text)
			return next, nil
		}
	}
	return next, nil
}
