package history

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"muntin/orchestrator"
	"muntin/orchestrator/watch"
)

// settle is how long an event is kept back, so that what other processes wrote
// at the same time can come before it.
const settle = 150 * time.Millisecond

// A Sink takes a stream.
type Sink struct {
	// Event is called for each event, from one goroutine. Its error ends the stream.
	Event func(Event) error
	// Caught is called once all of the past has been told; nil: it is not.
	Caught func() error
}

// Follow tells of what has happened in a run from the cursor on, and then of
// what happens, until ctx ends, which is no error. Nothing is polled. An event
// whose log was written more than a moment late comes out of order; none is
// left out or told twice.
func Follow(ctx context.Context, run orchestrator.Run, from Cursor, to Sink) error {
	r, err := open(run, from)
	if err != nil {
		return err
	}
	past, err := r.past(ctx)
	if err != nil {
		return err
	}
	for _, e := range past {
		if err := to.Event(e); err != nil {
			return err
		}
	}
	if to.Caught != nil {
		if err := to.Caught(); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	events := make(chan []Event)
	group.Go(func() error { return r.tail(ctx, events) })
	group.Go(func() error { return r.watchRefs(ctx, events) })
	group.Go(func() error { return inOrder(ctx, events, to.Event) })
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// tail tells of lines that come to the logs.
func (r *reader) tail(ctx context.Context, to chan<- []Event) error {
	byPath := map[string]*source{}
	tail, err := watch.Follow(ctx, watch.Options{}, func(line watch.Line) error {
		if line.Err != nil {
			return line.Err
		}
		return send(ctx, to, byPath[line.Path].take(line.Data, line.Next))
	})
	if err != nil {
		return err
	}
	defer tail.Close()
	for _, s := range r.logs {
		byPath[s.path] = s
	}
	for _, s := range r.logs {
		if err := tail.Add(s.path, s.read); err != nil {
			return errors.Join(err, tail.Close())
		}
	}
	if err := tail.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// watchRefs tells of checkpoints that people take and put back.
func (r *reader) watchRefs(ctx context.Context, to chan<- []Event) error {
	refs := r.refFiles()
	w, err := watch.New(ctx, watch.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	for path := range refs {
		if err := w.Add(path); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.Events():
			if !ok {
				return ctx.Err()
			}
			for path, ref := range refs {
				if !e.Resync && path != e.Path {
					continue
				}
				list, err := r.chain(ctx, ref)
				if err != nil {
					return err
				}
				if err := send(ctx, to, list); err != nil {
					return err
				}
			}
		}
	}
}

func send(ctx context.Context, to chan<- []Event, list []Event) error {
	if len(list) == 0 {
		return nil
	}
	select {
	case to <- list:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inOrder gives events on in the order of their times, as far as they come
// within a moment of each other.
func inOrder(ctx context.Context, events <-chan []Event, fn func(Event) error) error {
	var held []Event
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case list := <-events:
			if len(held) == 0 {
				timer.Reset(settle)
			}
			held = append(held, list...)
		case now := <-timer.C:
			sortEvents(held)
			n := 0
			for n < len(held) && !held[n].at.Add(settle).After(now) {
				n++
			}
			if n == 0 { // of a clock that goes ahead of ours
				n = len(held)
			}
			for _, e := range held[:n] {
				if err := fn(e); err != nil {
					return err
				}
			}
			if held = append(held[:0:0], held[n:]...); len(held) > 0 {
				timer.Reset(held[0].at.Add(settle).Sub(now))
			}
		}
	}
}
