// Package proc is the one way muntin runs a child process to its end: argv
// and never a shell string, a context, a session and process group of its own
// (so that it cannot reach our terminal), a time limit, bounded output, and a
// bounded kill that leaves nothing behind.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	defaultGrace = 2 * time.Second
	defaultKeep  = 1 << 20
)

// A Spec says what to run. Only Argv is needed.
type Spec struct {
	Argv    []string
	Dir     string
	Env     []string      // nil: this process's environment
	Stdin   io.Reader     // nil: /dev/null
	Stdout  io.Writer     // nil: kept in Result.Stdout
	Stderr  io.Writer     // nil: kept in Result.Stderr; may be the same as Stdout
	Merge   bool          // both streams are kept in Result.Stdout, as they come; Stdout and Stderr must be nil
	Timeout time.Duration // 0: none but the context's
	Grace   time.Duration // from SIGTERM to SIGKILL, and for draining pipes after the exit; 0: 2 s
	Keep    int           // bytes kept of each captured stream, its end; 0: 1 MiB
	Reap    bool          // kill what is left of the process group after the exit

	// Terminal leaves the process in our session and process group, so that a
	// pager or another program for a person can read keys. The end of the context ends it
	// alone, not what it started. It is for streams that are files of our own.
	Terminal bool
}

// A Result tells how the process ended.
type Result struct {
	Stdout, Stderr []byte
	Code           int            // exit status; 128+signal when a signal ended it
	Signal         syscall.Signal // 0 unless a signal ended it
	Duration       time.Duration
	CPU            time.Duration // used by the process and the children it waited for, user and system
	TimedOut       bool          // Spec.Timeout ended it
}

// ExitError is returned when the process ran and did not exit with 0.
type ExitError struct {
	Name   string
	Result Result
}

func (e *ExitError) Error() string {
	text := e.Name + ": " + e.Result.Ending()
	if msg := strings.TrimSpace(string(e.Result.Stderr)); msg != "" {
		text += ": " + msg
	}
	return text
}

// Ending says in words how the process ended: "exit status 3".
func (r Result) Ending() string {
	switch {
	case r.TimedOut:
		return fmt.Sprintf("stopped after %s", r.Duration.Round(time.Millisecond))
	case r.Signal != 0:
		return fmt.Sprintf("ended by signal %s", r.Signal)
	}
	return fmt.Sprintf("exit status %d", r.Code)
}

// Run runs spec to its end. The error is an *ExitError if the process ran and
// failed, ctx's error (wrapped) if ctx ended it, else the reason why it could
// not be started. Result is filled as far as it is known in each case.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if len(spec.Argv) == 0 {
		return Result{}, errors.New("running a process: no command given")
	}
	runCtx := ctx
	if spec.Timeout > 0 {
		var cancel context.CancelFunc
		runCtx, cancel = context.WithTimeout(ctx, spec.Timeout)
		defer cancel()
	}
	cmd := exec.CommandContext(runCtx, spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = spec.Dir, spec.Env, spec.Stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !spec.Terminal}
	cmd.WaitDelay = spec.Grace
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = defaultGrace
	}
	cmd.Cancel = func() error { return kill(cmd, spec, syscall.SIGTERM) }
	stdout, stderr := newTail(spec.Keep), newTail(spec.Keep)
	cmd.Stdout, cmd.Stderr = spec.Stdout, spec.Stderr
	if cmd.Stdout == nil {
		cmd.Stdout = stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = stderr
	}
	if spec.Merge {
		cmd.Stderr = cmd.Stdout
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Result{}, fmt.Errorf("starting %s: %w", spec.Argv[0], err)
	}
	err := cmd.Wait()
	if runCtx.Err() != nil || spec.Reap {
		_ = kill(cmd, spec, syscall.SIGKILL)
	}
	res := Result{Stdout: stdout.bytes(), Stderr: stderr.bytes(), Duration: time.Since(start)}
	res.Code, res.Signal = status(cmd)
	res.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case ctx.Err() != nil:
		return res, fmt.Errorf("running %s: %w", spec.Argv[0], context.Cause(ctx))
	case runCtx.Err() != nil:
		res.TimedOut = true
		return res, &ExitError{Name: spec.Argv[0], Result: res}
	case res.Code != 0:
		return res, &ExitError{Name: spec.Argv[0], Result: res}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return res, fmt.Errorf("running %s: %w", spec.Argv[0], err)
	}
	return res, nil
}

// kill signals the process group, or the process alone where the group is ours.
func kill(cmd *exec.Cmd, spec Spec, sig syscall.Signal) error {
	pid := -cmd.Process.Pid
	if spec.Terminal {
		if cmd.ProcessState != nil {
			return nil // it was waited for: the number may be another's
		}
		pid = cmd.Process.Pid
	}
	err := syscall.Kill(pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func status(cmd *exec.Cmd) (int, syscall.Signal) {
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal()
	}
	return cmd.ProcessState.ExitCode(), 0
}
