package doctor

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"muntin/cmd/internal/cli/app"
)

const (
	readerReady = "reader-ready"
	readerEnd   = 0x04 // Ctrl-D, which no prompt holds
)

// newReader makes the hidden command that the doctor runs in a pane: it reads
// the terminal as an agent does, raw and with bracketed paste, and writes each
// byte it gets to a file. It tells its size at first and whenever it changes,
// and ends with Ctrl-D.
func newReader() *cobra.Command {
	return &cobra.Command{
		Use: "reader file", Hidden: true, Args: app.Args(1, 1, "file"),
		RunE: func(_ *cobra.Command, args []string) error { return read(args[0]) },
	}
}

func read(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	fd := int(os.Stdin.Fd())
	old, err := xterm.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("making the terminal raw: %w", err)
	}
	defer func() { _ = xterm.Restore(fd, old) }()
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH)
	defer signal.Stop(winch)
	fmt.Fprintf(os.Stdout, "\x1b[?2004h%s\r\n", readerReady)
	tell := func() {
		if cols, rows, err := xterm.GetSize(fd); err == nil {
			fmt.Fprintf(os.Stdout, "%s\r\n", sizeLine(cols, rows))
		}
	}
	tell()
	done := make(chan error, 1)
	go func() { done <- record(os.Stdin, f) }()
	for {
		select {
		case <-winch:
			tell()
		case err := <-done:
			return err
		}
	}
}

func sizeLine(cols, rows int) string { return fmt.Sprintf("size %dx%d.", cols, rows) }

// record copies bytes until readerEnd.
func record(from, to *os.File) error {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return fmt.Errorf("reading the terminal: %w", err)
		}
		end := n > 0 && buf[n-1] == readerEnd
		if end {
			n--
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
		if end {
			return nil
		}
	}
}
