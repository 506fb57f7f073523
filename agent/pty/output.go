package pty

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"muntin/internal/cast"
)

const (
	// recentSize is how much of the last output is kept in memory.
	recentSize = 64 << 10
	// outputChunk is the most that one output frame holds.
	outputChunk = 16 << 10
)

// The output that others can read is what the recording holds: text, with the
// secrets left out. Offsets count its bytes from the first start of the agent
// on, across restarts and files.

// errGone says that output at an offset is not in memory any more.
var errGone = errors.New("not in memory")

// A recent is the end of the output in memory.
type recent struct {
	buf    []byte
	total  int64         // the offset behind it
	grown  chan struct{} // closed with the next output, nil while nobody waits
	end    bool
	screen int      // that is shown
	fresh  [2]int64 // nothing before that offset is on each screen any more
}

// The screens of a terminal.
const (
	mainScreen = iota
	alternateScreen
)

func (r *recent) add(b []byte) {
	if len(r.buf)+len(b) > 2*recentSize {
		keep := min(len(r.buf), max(recentSize-len(b), 0))
		r.buf = append(r.buf[:0], r.buf[len(r.buf)-keep:]...)
	}
	r.buf = append(r.buf, b...)
	r.total += int64(len(b))
	r.wake()
}

func (r *recent) wake() {
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// since returns a copy of at most outputChunk bytes at the offset, cut between
// characters; or, where there are none yet, a channel that is closed when there
// are more, nil if nothing will come any more.
func (r *recorder) since(from int64) (data []byte, more <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.recent
	switch start := m.total - int64(len(m.buf)); {
	case from > m.total:
		return nil, nil, fmt.Errorf("offset %d is behind the end of the output, %d", from, m.total)
	case from < start:
		return nil, nil, errGone
	case from < m.total:
		b := m.buf[from-start:]
		if len(b) > outputChunk {
			b = b[:outputChunk]
			b = b[:len(b)-partialRune(b)]
		}
		return bytes.Clone(b), nil, nil
	case m.end:
		return nil, nil, nil
	}
	if m.grown == nil {
		m.grown = make(chan struct{})
	}
	return nil, m.grown, nil
}

// offset is the offset behind the last output.
func (r *recorder) offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recent.total
}

// shows says which screen is shown behind the present output, and where it was
// emptied last if that has changed; 0 if it has not.
func (r *recorder) shows(screen int, cleared bool, from int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent.screen = screen
	if cleared {
		r.recent.fresh[screen] = from
	}
}

// kept calls fn with the output from the offset on that the files hold, in
// pieces with their offsets. The first may lie behind from: what is between
// was rotated away.
func (r *recorder) kept(from int64, fn func(at int64, data string) error) error {
	r.mu.Lock()
	if r.err == nil && !r.recent.end {
		r.err = r.w.Flush()
	}
	files := r.files
	r.mu.Unlock()
	for _, path := range []string{cast.Aside(r.path), r.path} {
		err := cast.ReadFile(path, func(ev cast.Event) error {
			switch end := ev.Offset + int64(len(ev.Data)); {
			case ev.Code == cast.Begin && ev.Offset > from && r.rotated(files):
				return errGone // what is between is in the other file by now
			case ev.Code != cast.Output || end <= from:
				return nil
			default:
				data := ev.Data[max(from-ev.Offset, 0):]
				if err := fn(end-int64(len(data)), data); err != nil {
					return err
				}
				from = end
				return nil
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (r *recorder) rotated(files int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files != files
}

// oldest is the offset from which the output is in memory.
func (r *recorder) oldest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recent.total - int64(len(r.recent.buf))
}

// validText replaces each byte of b that is not UTF-8 by U+FFFD.
func validText(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for _, c := range string(b) { // an invalid byte comes as U+FFFD
		out = utf8.AppendRune(out, c)
	}
	return out
}

// followOutput sends the output from an offset on, as it comes, until the
// agent's end. What is not kept any more is counted as lost in the first frame
// behind it.
func (c *session) followOutput(f Frame) error {
	rec := c.v.s.rec
	from := f.Output.Offset
	if from < 0 {
		from = rec.offset()
	}
	if _, _, err := rec.since(from); err != nil && !errors.Is(err, errGone) {
		return c.reply(f, err)
	}
	if err := c.reply(Frame{ID: f.ID, OK: true, Output: &Output{Offset: from}}, nil); err != nil {
		return err
	}
	ctx, stop := c.untilGone()
	defer stop()
	next := from // where to read; from is behind what was sent
	send := func(at int64, data string) error {
		out := &Output{Offset: at, Data: data, Lost: max(at-from, 0)}
		from = at + int64(len(data))
		next = from
		return errors.Join(ctx.Err(), c.reply(Frame{Output: out}, nil))
	}
	for {
		data, more, err := rec.since(next)
		switch {
		case errors.Is(err, errGone):
			before := from
			if err := rec.kept(from, send); err != nil && !errors.Is(err, errGone) {
				return err
			}
			if from == before { // nothing of it is kept: go on with what is
				next = rec.oldest()
			}
		case err != nil:
			return err
		case len(data) > 0:
			if err := send(next, string(data)); err != nil {
				return err
			}
		case more == nil:
			return errors.Join(c.reply(Frame{Output: &Output{Offset: from, End: true}}, nil), io.EOF)
		default:
			select {
			case <-more:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
