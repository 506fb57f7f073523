// Command record runs a program on a pty and writes what it shows as an asciicast v3:
//
//	record -until "all done" -keys '\x02d' -o demo.cast -- program argument...
//
// When the screen shows what -until matches, it records for -hold more, stops, types
// -keys and waits for the program to end. It fails when the program ends earlier.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/creack/pty"

	"muntin/script/tools/cast"
	"muntin/script/tools/screen"
)

type options struct {
	argv       []string
	out        string
	cols, rows int
	until      *regexp.Regexp
	hold       time.Duration
	timeout    time.Duration
	keys       string
	title      string
	grace      time.Duration // for the program's end after its keys, then after a hang-up
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{grace: 5 * time.Second}
	f := flag.NewFlagSet("record", flag.ContinueOnError)
	f.StringVar(&o.out, "o", "demo.cast", "the file to write")
	f.IntVar(&o.cols, "cols", 120, "columns of the terminal")
	f.IntVar(&o.rows, "rows", 34, "rows of the terminal")
	f.DurationVar(&o.hold, "hold", 3*time.Second, "how long to record on when -until was seen")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "when to give up")
	f.StringVar(&o.title, "title", "", "the title in the file")
	until := f.String("until", "", "regular expression (RE2) against the text of the screen; without it the program's end is waited for")
	keys := f.String("keys", "", `what to type at the end, escaped as in Go: \x02d`)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	var err error
	if *until != "" {
		if o.until, err = regexp.Compile(*until); err != nil {
			return o, err
		}
	}
	if o.keys, err = strconv.Unquote(`"` + *keys + `"`); err != nil {
		return o, fmt.Errorf("reading -keys: %w", err)
	}
	if o.argv = f.Args(); len(o.argv) == 0 {
		return o, errors.New("no program given")
	}
	return o, nil
}

func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	file, err := os.Create(o.out)
	if err != nil {
		return err
	}
	err = record(ctx, file, o)
	return errors.Join(err, file.Close())
}

func record(ctx context.Context, file io.Writer, o options) error {
	cmd := exec.Command(o.argv[0], o.argv[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(o.cols), Rows: uint16(o.rows)})
	if err != nil {
		return fmt.Errorf("starting %s: %w", o.argv[0], err)
	}
	r := &recorder{options: o, terminal: terminal, screen: screen.New(o.cols, o.rows, terminal), start: time.Now()}
	r.writer, err = cast.NewWriter(file, cast.Header{
		Term:  cast.Term{Cols: o.cols, Rows: o.rows, Type: "xterm-256color"},
		Title: o.title, Timestamp: r.start.Unix(),
	})
	chunks := read(terminal)
	if err == nil {
		err = r.follow(ctx, chunks)
	}
	status, endErr := finish(cmd, chunks, o.grace)
	if err == nil && !r.stopped {
		err = r.writer.Exit(time.Since(r.start), status)
	}
	return errors.Join(err, endErr, terminal.Close(), r.screen.Close())
}

// read sends what the terminal shows until it ends; then the channel is closed.
func read(terminal io.Reader) <-chan []byte {
	chunks := make(chan []byte)
	go func() {
		defer close(chunks)
		for {
			p := make([]byte, 32<<10)
			n, err := terminal.Read(p)
			if n > 0 {
				chunks <- p[:n]
			}
			if err != nil { // Linux says EIO when the last program has gone
				return
			}
		}
	}()
	return chunks
}

type recorder struct {
	options  options
	terminal io.Writer
	screen   *screen.Screen
	writer   *cast.Writer
	start    time.Time
	stopped  bool // the keys were typed; nothing more is recorded
}

// follow records until the program has shown what it should, or has ended.
func (r *recorder) follow(ctx context.Context, chunks <-chan []byte) error {
	var held <-chan time.Time
	for {
		select {
		case p, ok := <-chunks:
			if !ok {
				return r.ended(held != nil)
			}
			seen, err := r.show(p)
			if err != nil {
				return err
			}
			if held == nil && seen {
				held = time.After(r.options.hold)
			}
		case <-held:
			r.stopped = true
			_, err := io.WriteString(r.terminal, r.options.keys)
			return err
		case <-ctx.Done():
			return fmt.Errorf("giving up: %w; the screen shows\n%s", ctx.Err(), r.screen.Text())
		}
	}
}

// ended says whether the program may have ended by itself.
func (r *recorder) ended(seen bool) error {
	if r.options.until == nil || seen {
		return nil
	}
	return fmt.Errorf("the program ended before the screen showed %q; it showed\n%s", r.options.until, r.screen.Text())
}

// show records what the program wrote and tells whether the screen shows what is
// waited for.
func (r *recorder) show(p []byte) (bool, error) {
	if err := r.writer.Output(time.Since(r.start), p); err != nil {
		return false, err
	}
	if _, err := r.screen.Write(p); err != nil {
		return false, err
	}
	return r.options.until != nil && r.options.until.MatchString(r.screen.Text()), nil
}

// finish waits for the program, and hangs up on it, then kills it, if it stays.
func finish(cmd *exec.Cmd, chunks <-chan []byte, grace time.Duration) (status int, err error) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	patience := time.NewTimer(grace)
	defer patience.Stop()
	signals := []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL}
	for {
		select {
		case _, ok := <-chunks:
			if !ok {
				chunks = nil
			}
		case waitErr := <-ended:
			drain(chunks)
			var exit *exec.ExitError
			if waitErr != nil && !errors.As(waitErr, &exit) {
				return 0, fmt.Errorf("waiting for %s: %w", cmd.Path, waitErr)
			}
			return cmd.ProcessState.ExitCode(), err
		case <-patience.C:
			if len(signals) == 0 {
				return 0, fmt.Errorf("%s does not end", cmd.Path)
			}
			err = fmt.Errorf("%s had to be ended by signal %s", cmd.Path, signals[0])
			// The program leads a session of its own; a failure means that it has gone.
			_ = syscall.Kill(-cmd.Process.Pid, signals[0])
			signals = signals[1:]
			patience.Reset(grace)
		}
	}
}

// drain waits for the reader, which must not be left behind; nil has ended already.
func drain(chunks <-chan []byte) {
	if chunks == nil {
		return
	}
	for range chunks {
	}
}
