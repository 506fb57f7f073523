package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// kernel tells what the kernel enforces without help.
func kernel() (files, network string, err error) {
	const askVersion = 1
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, askVersion)
	if errno != 0 {
		return "", "", errno
	}
	files = "enforced, but sockets of other programs can be reached"
	if abi < 3 {
		files += ", and files that can be read can be cut short"
	}
	if _, ok := machine(); !ok {
		return files, NotEnforced, nil
	}
	return files, "enforced", nil
}

// Become confines this process and makes it another program. It only returns with
// an error. It must be called before anything that has to outlive it.
func Become(s Scope, argv, env []string) error {
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := os.Chdir(s.Home); err != nil {
		return err
	}
	rules := []landlock.Rule{
		landlock.RODirs("/proc", "/dev").IgnoreIfMissing(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").IgnoreIfMissing(),
		landlock.RODirs("/dev/fd").IgnoreIfMissing(),
	}
	for _, p := range s.Read {
		rules = append(rules, rule(p, landlock.RODirs, landlock.ROFiles))
	}
	for _, p := range s.Write {
		rules = append(rules, rule(p, landlock.RWDirs, landlock.RWFiles))
	}
	if err := landlock.V7.BestEffort().RestrictPaths(rules...); err != nil {
		return fmt.Errorf("restricting files: %w", err)
	}
	if !s.Network {
		runtime.LockOSThread() // the filter is this thread's, which becomes the program
		if err := denySockets(); err != nil {
			return fmt.Errorf("restricting the network: %w", err)
		}
	}
	return fmt.Errorf("starting %s: %w", program, syscall.Exec(program, argv, env))
}

func rule(path string, dirs, files func(...string) landlock.FSRule) landlock.Rule {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return files(path).IgnoreIfMissing()
	}
	return dirs(path).IgnoreIfMissing()
}

// machine is this processor as seccomp names it.
func machine() (arch uint32, ok bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

// denySockets keeps this thread, and what it becomes, from making sockets of any
// network: Landlock knows TCP only, and not all of that. See seccomp(2).
func denySockets() error {
	arch, ok := machine()
	if !ok {
		return errors.New("this processor is not known")
	}
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
		deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
		allow = unix.SECCOMP_RET_ALLOW

		offNumber, offArch, offFirst = 0, 4, 16 // in struct seccomp_data
		x32                          = 0x40000000
	)
	filter := []unix.SockFilter{
		{Code: load, K: offArch},
		{Code: equal, K: arch, Jf: 8}, // another architecture's numbers: deny
		{Code: load, K: offNumber},
		{Code: least, K: x32, Jt: 6},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 5}, // it makes sockets as well
		{Code: equal, K: unix.SYS_SOCKET, Jf: 3},
		{Code: load, K: offFirst},
		{Code: equal, K: unix.AF_UNIX, Jt: 1},
		{Code: equal, K: unix.AF_NETLINK, Jf: 1}, // names of interfaces
		{Code: ret, K: allow},
		{Code: ret, K: deny},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}
