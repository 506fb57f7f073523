package orchestrator

import "golang.org/x/sys/unix"

// measure asks the kernel by sysctl(3). What is free of the memory it does not
// tell; half of all stands for it.
func measure() Machine {
	m := Machine{
		Memory: -1, PTYs: -1, Processes: limitOf(unix.RLIMIT_NPROC), Files: limitOf(unix.RLIMIT_NOFILE), Watches: -1, Watchers: -1,
	}
	if all, err := unix.SysctlUint64("hw.memsize"); err == nil {
		m.Memory = bounded(all / 2)
	}
	if n, err := unix.SysctlUint32("kern.tty.ptmx_max"); err == nil {
		m.PTYs = int64(n)
	}
	return m
}
