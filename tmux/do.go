package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"muntin/internal/proc"
)

const (
	commandTimeout = 30 * time.Second // a tmux server that is well answers in milliseconds
	keepReply      = 64 << 20         // bytes; a whole history with its escapes
)

// A transport carries a list of commands to the server and brings back one
// reply a command: by one `tmux` process a list, or over a control-mode
// connection, with the same results.
type transport interface {
	// run carries out cmds in order and stops at the first that fails: the
	// replies of those before it come back with a *CommandError. With a
	// non-zero epoch nothing is done by any other server (ErrStale); with
	// the zero epoch a server is started if there is none.
	run(ctx context.Context, epoch Epoch, cmds []Cmd) ([]string, error)
}

// Do carries out a list of tmux commands in one step that no other client's
// commands come between (as long as none of them waits). It returns one reply
// for each command that was carried out, without its last line feed. The
// first command that fails ends the list; the error is then a *CommandError.
// A command that runs others (if-shell) can fail inside without ending the
// list: its error comes back with all replies.
//
// ErrNoServer, ErrStale: nothing was done.
func (s *Server) Do(ctx context.Context, cmds ...Cmd) ([]string, error) {
	epoch, err := s.bound(ctx)
	if err != nil {
		return nil, err
	}
	return s.transport.run(ctx, epoch, cmds)
}

// execTransport runs one tmux process for each list. The list goes in by
// standard input: argv has a limit of 16 KB, treats a last ';' as its own, and
// can be read by others in ps.
type execTransport struct {
	argv []string // the binary and its socket
	conf string
	env  []string
	dir  string

	timeout time.Duration // of one process; 0: none
}

func (t *execTransport) run(ctx context.Context, epoch Epoch, cmds []Cmd) ([]string, error) {
	nonce := rand.Text()
	script, err := script(nonce, epoch, cmds)
	if err != nil {
		return nil, err
	}
	tail := []string{"source-file", "-"}
	if epoch == (Epoch{}) {
		tail = []string{"-f", t.conf, "start-server", ";", "source-file", "-"}
	}
	out, errText, err := t.exec(ctx, tail, script)
	if err != nil {
		return nil, err
	}
	// What the parser says has the place in our own script in front.
	errText = strings.TrimPrefix(errText, "-:1: ")
	replies, stale := splitReplies(out, nonce)
	switch {
	case stale:
		return nil, ErrStale
	case len(replies) < len(cmds):
		if errText == "" {
			errText = "no reply"
		}
		return replies, &CommandError{Command: cmds[len(replies)][0], Text: errText}
	case errText != "":
		return replies, &CommandError{Command: cmds[len(cmds)-1][0], Text: errText}
	}
	return replies, nil
}

// exec runs tmux once. errText is what tmux said when it failed.
func (t *execTransport) exec(ctx context.Context, tail []string, stdin string) (out, errText string, err error) {
	spec := proc.Spec{
		Argv:    append(append([]string{}, t.argv...), tail...),
		Env:     t.env,
		Dir:     t.dir,
		Stdin:   strings.NewReader(stdin),
		Timeout: t.timeout,
		Keep:    keepReply,
	}
	res, err := proc.Run(ctx, spec)
	var exit *proc.ExitError
	switch {
	case err == nil:
		return string(res.Stdout), "", nil
	case errors.As(err, &exit) && !res.TimedOut:
		text := strings.TrimSpace(string(res.Stderr))
		if text == "" {
			text = fmt.Sprintf("exit status %d", res.Code)
		}
		return string(res.Stdout), text, nil
	case noBinary(err, t.argv[0]):
		return "", "", fmt.Errorf("running %s: %w", t.argv[0], ErrNoTmux)
	}
	return "", "", err
}

// noBinary tells a missing binary from a missing working folder, for which
// the operating system has the same error.
func noBinary(err error, bin string) bool {
	if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, lookErr := exec.LookPath(bin)
	return lookErr != nil
}

// script writes the list for source-file: each command is followed by a
// marker, because replies cannot be told apart otherwise. The epoch is
// compared by the server itself, in the same step as the commands.
func script(nonce string, epoch Epoch, cmds []Cmd) (string, error) {
	marked := make([]Cmd, 0, 2*len(cmds))
	for _, c := range cmds {
		marked = append(marked, c, Cmd{"display-message", "-p", nonce})
	}
	list, err := line(marked...)
	if err != nil {
		return "", err
	}
	if epoch == (Epoch{}) {
		return list + "\n", nil
	}
	same := fmt.Sprintf("#{==:#{pid}/#{start_time},%d/%d}", epoch.PID, epoch.Start)
	list, err = line(Cmd{"if-shell", "-F", same, list, "display-message -p " + nonce + ":stale"})
	return list + "\n", err
}

// splitReplies takes the output of a script apart at its markers. What
// follows the last marker is dropped: the command that wrote it failed.
func splitReplies(out, nonce string) (replies []string, stale bool) {
	for {
		reply, rest, ok := strings.Cut(out, nonce)
		if !ok {
			return replies, false
		}
		if len(replies) == 0 && strings.HasPrefix(rest, ":stale") {
			return nil, true
		}
		replies = append(replies, strings.TrimSuffix(reply, "\n"))
		out = strings.TrimPrefix(rest, "\n")
	}
}
