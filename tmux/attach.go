package tmux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muntin/internal/proc"
)

// OutsideEnv is env without TMUX and TMUX_PANE: a program that sees them uses
// the server that it happens to be inside of.
func OutsideEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return strings.HasPrefix(kv, "TMUX=") || strings.HasPrefix(kv, "TMUX_PANE=")
	})
}

// AttachArgv is the command that shows a session on the terminal it is run on.
// It must be run with OutsideEnv; where this process may be inside tmux
// itself, Attach has both.
func (s *Server) AttachArgv(id SessionID) []string {
	return append(slices.Clone(s.exec.argv), "attach-session", "-t", string(id))
}

// Attach is the command, and its environment, that shows a session, or a pane of
// one with the keys going to it, to the person who runs this process with the
// environment env. Inside the same server the terminal is switched over (the
// command returns at once); inside another server, or none, it attaches (the
// command returns on detach).
func (s *Server) Attach(on Target, env []string) (argv, cmdEnv []string, err error) {
	if err := on.check(); err != nil {
		return nil, nil, err
	}
	target := fmt.Sprint(on)
	if s.Inside(env) {
		return append(slices.Clone(s.exec.argv), "switch-client", "-t", target), slices.Clone(env), nil
	}
	return append(slices.Clone(s.exec.argv), "attach-session", "-t", target), OutsideEnv(env), nil
}

// Overlaid is the command that runs argv in a popup over the terminal of the tmux
// server that this process, with the environment env, is in: so the keys,
// the prefix too, go to argv alone. ok is false outside of tmux, and where that
// server cannot do it (before 3.2, or nobody is attached to it).
func (s *Server) Overlaid(ctx context.Context, argv, env []string) (over []string, ok bool) {
	if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "TMUX=") && kv != "TMUX=" }) {
		return nil, false
	}
	bin := s.exec.argv[0]
	res, err := proc.Run(ctx, proc.Spec{
		Argv: []string{bin, "display-message", "-p", "#{version} #{client_name}"}, Env: env, Timeout: commandTimeout,
	})
	if err != nil {
		return nil, false
	}
	version, client, _ := strings.Cut(strings.TrimSpace(string(res.Stdout)), " ")
	v, err := ParseVersion("tmux " + version)
	if err != nil || v.check() != nil || client == "" {
		return nil, false
	}
	return slices.Concat(
		[]string{bin, "display-popup", "-E", "-c", client, "-w", "100%", "-h", "100%", "--", "env", "-u", "TMUX", "-u", "TMUX_PANE"}, argv), true
}

// Inside reports whether a process with the environment env runs in a pane of
// this server. TMUX holds socket, server pid and session (tmux(1), ENVIRONMENT).
func (s *Server) Inside(env []string) bool {
	epoch := s.Epoch()
	for _, kv := range env {
		v, ok := strings.CutPrefix(kv, "TMUX=")
		if !ok {
			continue
		}
		f := strings.Split(v, ",")
		if len(f) < 3 {
			return false
		}
		socket := strings.Join(f[:len(f)-2], ",")
		return epoch.PID > 0 && socket == epoch.Socket && f[len(f)-2] == strconv.Itoa(epoch.PID)
	}
	return false
}

// KillServer ends the server and everything on it, and returns when it no
// longer answers. ErrForeign: it was not started with our configuration, or a
// session on it is not ours; nothing was done. No server is no error.
func (s *Server) KillServer(ctx context.Context) error {
	epoch, err := s.bound(ctx)
	if errors.Is(err, ErrNoServer) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ending the tmux server: %w", err)
	}
	// The server itself judges, in the same step: no session can come between.
	foreign := "#{S:#{?" + sessionMark + ",,foreign}}"
	replies, err := s.transport.run(ctx, epoch, []Cmd{{
		"if-shell", "-F", "#{&&:#{" + ourMark + "},#{==:" + foreign + ",}}", "kill-server", "display-message -p foreign",
	}})
	if len(replies) > 0 && strings.HasPrefix(replies[0], "foreign") {
		return fmt.Errorf("ending the tmux server: %w", ErrForeign)
	}
	// It may have gone before it could answer: only its silence counts.
	if waitErr := s.waitSilent(ctx, epoch); waitErr != nil {
		return fmt.Errorf("ending the tmux server: %w", errors.Join(err, waitErr))
	}
	return nil
}

const silentPoll, silentDeadline = 10 * time.Millisecond, 5 * time.Second

// waitSilent waits until the server no longer answers. Its process id is no
// sign: an ended process keeps it until its parent has taken notice.
func (s *Server) waitSilent(ctx context.Context, epoch Epoch) error {
	ctx, cancel := context.WithTimeout(ctx, silentDeadline)
	defer cancel()
	tick := time.NewTicker(silentPoll)
	defer tick.Stop()
	for {
		_, err := s.transport.run(ctx, epoch, []Cmd{{"display-message", "-p", ""}})
		if errors.Is(err, ErrNoServer) || errors.Is(err, ErrStale) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it still answers: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}
