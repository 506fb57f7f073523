package cast

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/vt"
)

// An Emulator is a terminal without one: it takes output and shows the screen.
type Emulator struct {
	emu     *vt.Emulator
	drained chan struct{} // closed when the emulator's answers are read no more
}

// NewEmulator makes a terminal of that size. Close must be called.
func NewEmulator(cols, rows int) *Emulator {
	e := &Emulator{emu: vt.NewEmulator(max(cols, 1), max(rows, 1)), drained: make(chan struct{})}
	e.emu.SetScrollbackSize(1)
	go func() { // it answers the program's queries, and waits for the answers to be read
		defer close(e.drained)
		_, _ = io.Copy(io.Discard, e.emu)
	}()
	return e
}

// Write takes output. Hostile output costs no more than its own picture: a
// panic of the emulator is an error, after which the Emulator is of no use.
func (e *Emulator) Write(data string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("drawing the screen: %v", p)
		}
	}()
	_, err = e.emu.WriteString(data)
	return err
}

// Resize changes the size.
func (e *Emulator) Resize(cols, rows int) {
	if cols > 0 && rows > 0 && (cols != e.emu.Width() || rows != e.emu.Height()) {
		e.emu.Resize(cols, rows)
	}
}

// Size is the present size.
func (e *Emulator) Size() (cols, rows int) { return e.emu.Width(), e.emu.Height() }

// Cursor is where the cursor is, and whether it is hidden.
func (e *Emulator) Cursor() (col, row int, hidden bool) {
	pos := e.emu.CursorPosition()
	return pos.X, pos.Y, e.emu.CursorHidden()
}

// Lines is the text of the screen without trailing blanks; with style it has
// SGR sequences.
func (e *Emulator) Lines(style bool) []string {
	if style {
		lines := strings.Split(e.emu.Render(), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " \r")
		}
		return lines
	}
	lines := make([]string, e.emu.Height())
	for y := range lines {
		var b strings.Builder
		for x := 0; x < e.emu.Width(); x++ {
			switch c := e.emu.CellAt(x, y); {
			case c == nil || c.Width > 0 && c.Content == "":
				b.WriteByte(' ')
			case c.Width > 0:
				b.WriteString(c.Content)
				x += c.Width - 1
			}
		}
		lines[y] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// Close gives the terminal up and waits for what it started.
func (e *Emulator) Close() {
	// The emulator's own Close writes what its Read reads, unguarded.
	if pipe, ok := e.emu.InputPipe().(io.Closer); ok {
		_ = pipe.Close()
		<-e.drained
	}
}

// A Screen is what a pane showed.
type Screen struct {
	Time   time.Time `json:"time"` // of the last event in it
	Cols   int       `json:"cols"`
	Rows   int       `json:"rows"`
	Lines  []string  `json:"lines"`  // foreign text
	Styled []string  `json:"styled"` // the same with SGR sequences
	Offset int64     `json:"offset"` // of the output behind it
}

// ErrNothing says that nothing was recorded by that time.
var ErrNothing = errors.New("nothing was recorded by then")

// At is the screen as the recording at path has it at a time, zero for its end.
// The error matches ErrNothing if the recording begins later.
func At(path string, at time.Time) (Screen, error) {
	var emu *Emulator
	defer func() {
		if emu != nil {
			emu.Close()
		}
	}()
	var sc Screen
	err := Read(path, func(e Event) error {
		if !at.IsZero() && e.Time.After(at) {
			return errLater
		}
		if emu == nil {
			emu = NewEmulator(e.Cols, e.Rows)
		}
		sc.Time, sc.Offset = e.Time, e.Offset
		emu.Resize(e.Cols, e.Rows)
		if e.Code != Output {
			return nil
		}
		sc.Offset += int64(len(e.Data))
		return emu.Write(e.Data)
	})
	if err != nil && !errors.Is(err, errLater) {
		return Screen{}, fmt.Errorf("replaying %s: %w", path, err)
	}
	if emu == nil {
		return Screen{}, ErrNothing
	}
	sc.Cols, sc.Rows = emu.Size()
	sc.Lines, sc.Styled = emu.Lines(false), emu.Lines(true)
	return sc, nil
}

var errLater = errors.New("it is later than that")
