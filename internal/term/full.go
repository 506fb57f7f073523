package term

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	xterm "golang.org/x/term"
)

// ErrNoTerminal says that the streams are no terminal.
var ErrNoTerminal = errors.New("this needs a terminal")

// A Full is the whole terminal, for a simple view: its alternate screen, drawn
// in one piece, and its keys as they are typed. What the screen was comes back
// with Close.
type Full struct {
	out     io.Writer
	streams Streams
	old     *xterm.State
	source  Source
	keys    chan byte
	resized chan os.Signal
	done    chan struct{} // the reader has ended
}

// OpenFull takes the terminal. The error matches ErrNoTerminal if there is none.
func OpenFull(ctx context.Context, s Streams) (*Full, error) {
	in, ok := s.In.(*os.File)
	if !ok || !s.Interactive() {
		return nil, ErrNoTerminal
	}
	old, err := xterm.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	f := &Full{out: s.Out, streams: s, old: old, source: NewSource(in), keys: make(chan byte), resized: make(chan os.Signal, 1), done: make(chan struct{})}
	signal.Notify(f.resized, syscall.SIGWINCH)
	go func() {
		defer close(f.done)
		defer close(f.keys)
		buf := make([]byte, 64)
		for {
			n, err := f.source.Read(buf)
			if err != nil {
				return
			}
			for _, b := range buf[:n] {
				select {
				case f.keys <- b:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	_, err = io.WriteString(s.file, "\x1b[?1049h\x1b[?25l\x1b[2J")
	return f, err
}

// Keys are the bytes that are typed; Ctrl-C is 3. It is closed at the end.
func (f *Full) Keys() <-chan byte { return f.keys }

// Resized tells that the terminal has another size.
func (f *Full) Resized() <-chan os.Signal { return f.resized }

// Draw shows lines, cut to the terminal's size, in one write.
func (f *Full) Draw(lines []string) error {
	width, height := f.streams.Size()
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[H")
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(Truncate(line, width) + "\x1b[m\x1b[K")
	}
	b.WriteString("\x1b[J\x1b[?2026l")
	_, err := io.WriteString(f.out, b.String())
	return err
}

// Close gives the terminal back as it was. ctx of OpenFull must have ended, or
// nobody may be waiting for keys.
func (f *Full) Close() error {
	signal.Stop(f.resized)
	f.source.Cancel()
	for range f.keys { // until the reader has ended
	}
	<-f.done
	f.source.Close()
	_, err := io.WriteString(f.streams.file, "\x1b[m\x1b[?25h\x1b[?1049l")
	in, ok := f.streams.In.(*os.File)
	if ok {
		err = errors.Join(err, xterm.Restore(int(in.Fd()), f.old))
	}
	return err
}
