package sandbox

import "strings"

// bwrapArgs are bubblewrap and its arguments for a scope. What is not named does not
// exist for the program; see bwrap(1).
func bwrapArgs(bwrap string, s Scope) []string {
	args := []string{bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}
	if !s.Network {
		args = append(args, "--unshare-net")
	}
	for _, p := range s.Read {
		if p != "/" {
			args = append(args, "--ro-bind-try", p, p)
			continue
		}
		args = []string{bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"}
		if !s.Network {
			args = append(args, "--unshare-net")
		}
		break
	}
	for _, p := range s.Write {
		args = append(args, "--bind-try", p, p)
	}
	return append(args, "--chdir", s.Home, "--")
}

const seatbelt = "/usr/bin/sandbox-exec"

// profile is the scope in the language of sandbox-exec(1).
func profile(s Scope) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(deny default)\n(allow process*)\n(allow sysctl-read)\n(allow mach-lookup)\n(allow signal (target same-sandbox))\n")
	b.WriteString("(allow file-read-metadata)\n(allow file-read* (literal \"/\"))\n(allow file-read* file-write* (subpath \"/dev\"))\n")
	for _, p := range s.Read {
		b.WriteString("(allow file-read* (subpath " + quote(p) + "))\n")
	}
	for _, p := range s.Write {
		b.WriteString("(allow file-read* file-write* (subpath " + quote(p) + "))\n")
	}
	if s.Network {
		b.WriteString("(allow network*)\n")
	}
	return b.String()
}

// quote writes a string of the profile's language.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
