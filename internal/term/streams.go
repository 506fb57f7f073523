// Package term is what muntin knows about the terminal it prints to: streams
// with their size and colours, the theme, tables, and the cleaning of foreign
// text before it is shown.
package term

import (
	"io"
	"os"

	"github.com/charmbracelet/colorprofile"
	xterm "golang.org/x/term"
)

// Streams are a command's standard streams. Out and Err bring colours down to
// what the terminal can show, to none at all when it is a file or NO_COLOR is
// set, so everything may be written with full styles.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	InTTY  bool
	OutTTY bool
	ErrTTY bool
	file   *os.File // what Out goes to, where it is a terminal
}

// DefaultWidth and DefaultHeight are used where no terminal tells its size.
const (
	DefaultWidth  = 80
	DefaultHeight = 24
)

// System wraps the process's own streams. environ is os.Environ().
func System(environ []string) Streams {
	s := Streams{
		In:     os.Stdin,
		InTTY:  xterm.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: xterm.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: xterm.IsTerminal(int(os.Stderr.Fd())),
	}
	s.Out = profiled(os.Stdout, s.OutTTY, environ)
	s.Err = profiled(os.Stderr, s.ErrTTY, environ)
	if s.OutTTY {
		s.file = os.Stdout
	}
	return s
}

// profiled brings styles down to what a file or a terminal can show, by the
// environment alone: asking terminfo and the tmux server, as the library does
// by itself, would cost a process at every start and could tell no more about
// the 16 colours that the theme uses.
func profiled(f *os.File, tty bool, environ []string) io.Writer {
	profile := colorprofile.NoTTY
	if tty {
		profile = colorprofile.Env(environ)
	}
	return &colorprofile.Writer{Forward: f, Profile: profile}
}

// Through sends what is written to Out through another writer first, a pager,
// with the colours that it has now.
func (s Streams) Through(w io.Writer) Streams {
	profile := colorprofile.NoTTY
	if out, ok := s.Out.(*colorprofile.Writer); ok {
		profile = out.Profile
	}
	s.Out = &colorprofile.Writer{Forward: w, Profile: profile}
	return s
}

// Raw is Out without anything between: for bytes that must come out as they are.
func (s Streams) Raw() io.Writer {
	if out, ok := s.Out.(*colorprofile.Writer); ok {
		return out.Forward
	}
	return s.Out
}

// Plain makes streams without a terminal from any reader and writers, for
// tests and pipes.
func Plain(in io.Reader, out, err io.Writer) Streams {
	return Streams{In: in, Out: out, Err: err}
}

// Size is the terminal's present size in cells, with defaults where it has none.
func (s Streams) Size() (width, height int) {
	if s.file != nil {
		width, height, _ = xterm.GetSize(int(s.file.Fd()))
	}
	if width <= 0 {
		width = DefaultWidth
	}
	if height <= 0 {
		height = DefaultHeight
	}
	return width, height
}

// Terminal is the terminal that Out goes to; nil where it is none.
func (s Streams) Terminal() *os.File { return s.file }

// Interactive reports whether a person can answer questions and watch a screen.
func (s Streams) Interactive() bool { return s.InTTY && s.OutTTY }
