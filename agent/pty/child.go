package pty

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A child is the agent's process: the leader of a session of its own on the
// inner pty.
type child struct {
	pid  int
	done chan struct{} // closed when it has been waited for
	exit ExitInfo      // valid after done
}

// startChild starts the command and waits for it on one thread that lives as
// long as the child: on Linux the child's death signal is bound to it.
func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		cmd.SysProcAttr = childAttr()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		c.pid = cmd.Process.Pid
		started <- nil
		c.exit = waitChild(c.pid)
		_ = cmd.Process.Release()
	}()
	if err := <-started; err != nil {
		<-c.done
		return nil, err
	}
	return c, nil
}

// waitChild waits for the end of the process. A child that stops itself is
// continued, as tmux does: its group is orphaned, so nobody else could. A stop
// for reading or writing the terminal in the background is its own affair.
func waitChild(pid int) ExitInfo {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return ExitInfo{Code: 1, Signal: fmt.Sprintf("unknown: %v", err)}
		case ws.Stopped():
			if s := ws.StopSignal(); s != syscall.SIGTTIN && s != syscall.SIGTTOU {
				_ = syscall.Kill(-pid, syscall.SIGCONT)
			}
		case ws.Signaled():
			return ExitInfo{Code: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
		case ws.Exited():
			return ExitInfo{Code: ws.ExitStatus()}
		}
	}
}

// end ends the child: first, then SIGTERM after half of grace, then SIGKILL
// after all of it, each to everything in its session. It returns when the
// child has been waited for.
func (c *child) end(first syscall.Signal, grace time.Duration) {
	timer := time.NewTimer(grace / 2)
	defer timer.Stop()
	for _, sig := range []syscall.Signal{first, syscall.SIGTERM} {
		c.signalSession(sig)
		select {
		case <-c.done:
			return
		case <-timer.C:
			timer.Reset(grace - grace/2)
		}
	}
	c.signalSession(syscall.SIGKILL)
	<-c.done
}

// Die ends this process by the signal that ended the agent, so that whoever
// waits for it sees the same, tmux for one. It returns if the agent ended
// otherwise, or by a signal that would leave more than an end behind (a core, a
// trace).
func (e ExitInfo) Die() {
	sig := syscall.Signal(e.Code - 128)
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGPIPE:
	default:
		return
	}
	if e.Signal != unix.SignalName(sig) {
		return
	}
	signal.Reset(sig)
	if syscall.Kill(os.Getpid(), sig) == nil {
		<-time.After(time.Second) // it comes in a moment
	}
}

// signalSession sends sig to every process of the child's session, wherever
// its groups are. Stopped ones are continued, or they could not act on it.
func (c *child) signalSession(sig syscall.Signal) (found int) {
	for _, pid := range allPIDs() {
		if pid == os.Getpid() {
			continue
		}
		if sid, err := unix.Getsid(pid); err != nil || sid != c.pid {
			continue
		}
		if syscall.Kill(pid, sig) == nil {
			found++
		}
		if sig != syscall.SIGKILL {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	return found
}
