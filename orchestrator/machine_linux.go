package orchestrator

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// measure reads what the kernel tells in /proc and /sys (proc(5), cgroups(7)).
func measure() Machine {
	m := Machine{
		Memory:    availableMemory(),
		PTYs:      less(number("/proc/sys/kernel/pty/max"), number("/proc/sys/kernel/pty/nr")),
		Processes: less(limitOf(unix.RLIMIT_NPROC), ownProcesses()),
		Files:     limitOf(unix.RLIMIT_NOFILE),
		Watches:   number("/proc/sys/fs/inotify/max_user_watches"),
		Watchers:  number("/proc/sys/fs/inotify/max_user_instances"),
	}
	if os.Geteuid() == 0 {
		m.Processes = -1 // the limit does not hold for root
	}
	group := cgroup()
	if free := less(number(filepath.Join(group, "memory.max")), number(filepath.Join(group, "memory.current"))); free >= 0 {
		m.Memory = min(m.Memory, free)
	}
	if free := less(number(filepath.Join(group, "pids.max")), number(filepath.Join(group, "pids.current"))); free >= 0 && (m.Processes < 0 || free < m.Processes) {
		m.Processes = free
	}
	return m
}

// number reads a file with one number in it; -1: there is none.
func number(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return -1 // "max"
	}
	return n
}

// availableMemory is the kernel's estimate of what can be had without swapping.
func availableMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return -1
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemAvailable:" {
			if kb, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return kb * 1024
			}
		}
	}
	return -1
}

// cgroup is the folder of this process's group in the unified hierarchy.
func cgroup() string {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "/sys/fs/cgroup"
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join("/sys/fs/cgroup", path)
		}
	}
	return "/sys/fs/cgroup"
}

// ownProcesses counts the user's processes.
func ownProcesses() int64 {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return -1
	}
	n := int64(0)
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it has ended
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Geteuid() {
			n++
		}
	}
	return n
}
