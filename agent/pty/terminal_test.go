package pty

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// What was written and not read is counted at once, so that a single zero is a
// proof.
func TestUnreadIsExact(t *testing.T) {
	t.Parallel()
	tm, err := openTerminal(unix.Winsize{Row: 24, Col: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer tm.close()
	if _, err := term.MakeRaw(int(tm.slave.Fd())); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8<<10)
	for i := range 2000 {
		want := 1 + i*7%3000
		if _, err := tm.master.Write(bytes.Repeat([]byte("x"), want)); err != nil {
			t.Fatal(err)
		}
		for want > 0 {
			if got := tm.unread(); got == 0 || got > want {
				t.Fatalf("round %d: %d bytes unread, want %d", i, got, want)
			}
			n, err := tm.slave.Read(buf[:min(want, len(buf))])
			if err != nil {
				t.Fatal(err)
			}
			want -= n
		}
		if got := tm.unread(); got != 0 {
			t.Fatalf("round %d: %d bytes unread when all was read", i, got)
		}
	}
}
