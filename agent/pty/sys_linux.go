package pty

import (
	"bytes"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	readQueue  = unix.TIOCINQ // FIONREAD

	// lineMax is how much of one line a terminal in line mode takes; the rest
	// is thrown away by the kernel (N_TTY_BUF_SIZE less the newline).
	lineMax = 4095
)

// childAttr makes the child a session leader with the pty as its terminal. It
// is killed when the thread that started it ends, and so with its supervisor:
// an agent without one would go on working unseen.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
}

// peerUID is the user at the other end of a unix socket.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	ctlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
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
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read is used
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// openFiles lists the paths that a process holds open.
func openFiles(pid int) []string {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	list, _ := os.ReadDir(dir) // a process of somebody else's, or one that has ended, has none
	var paths []string
	for _, fd := range list {
		if path, err := os.Readlink(dir + "/" + fd.Name()); err == nil && strings.HasPrefix(path, "/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// processes lists the processes of this machine.
func processes() []procInfo {
	pids := allPIDs()
	list := make([]procInfo, 0, len(pids))
	page := int64(os.Getpagesize())
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // it has ended
		}
		// proc_pid_stat(5): "pid (name) state ppid …", and a name may hold
		// anything; rss, in pages, is the 24th.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 22 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1]) // the kernel's own digits
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		if fields[0] == "Z" {
			continue // it holds nothing and waits for its parent
		}
		list = append(list, procInfo{pid: pid, parent: parent, memory: pages * page})
	}
	return list
}
