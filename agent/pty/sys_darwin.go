package pty

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	readQueue  = 0x4004667f // FIONREAD, sys/filio.h

	// lineMax is how much of one line a terminal in line mode takes (MAX_CANON
	// less the newline).
	lineMax = 1023
)

// childAttr makes the child a session leader with the pty as its terminal.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

// peerUID is the user at the other end of a unix socket.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	ctlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if ctlErr != nil {
		return 0, ctlErr
	}
	if err != nil {
		return 0, os.NewSyscallError("getsockopt", err)
	}
	return int(cred.Uid), nil
}

// allPIDs lists the processes of this machine.
func allPIDs() []int {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	pids := make([]int, 0, len(procs))
	for i := range procs {
		pids = append(pids, int(procs[i].Proc.P_pid))
	}
	return pids
}

// openFiles tells nothing: only lsof could.
func openFiles(int) []string { return nil }

// processes lists the processes of this machine. Their memory would be told by
// proc_pid_rusage only, which no call without cgo reaches.
func processes() []procInfo {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	list := make([]procInfo, 0, len(procs))
	for i := range procs {
		list = append(list, procInfo{pid: int(procs[i].Proc.P_pid), parent: int(procs[i].Eproc.Ppid)})
	}
	return list
}
