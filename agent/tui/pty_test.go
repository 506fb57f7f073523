package tui

import (
	"os"
	"testing"

	"github.com/creack/pty"
)

// On a real terminal: its line editing makes lines, Ctrl-D ends the input, and a
// read that waits can be ended from outside.
func TestRealTerminal(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"ctrl-d", "signal"} {
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { master.Close(); tty.Close() })
		u := run(t, func(s *setup) { s.opts.In, s.opts.Echo, s.opts.Terminal = tty, true, true })
		if _, err := master.WriteString("helX\x7flo\n"); err != nil {
			t.Fatal(err)
		}
		u.see("hello yourself", "✓ ", "❯ ")
		if end == "ctrl-d" {
			if _, err := master.Write([]byte{4}); err != nil {
				t.Fatal(err)
			}
		} else {
			u.stops <- os.Interrupt
			u.stops <- os.Interrupt
		}
		if err := u.ended(); err != nil {
			t.Errorf("%s: %v", end, err)
		}
	}
}
