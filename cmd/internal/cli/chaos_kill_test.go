package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is one of the fleet's.
type process struct {
	pid  int
	kind string
	argv []string
}

// The kinds of processes that are killed.
const (
	killOrchestrator = "orchestrator"
	killSupervisor   = "supervisor"
	killAgent        = "agent"
	killCheck        = "check"
	killGit          = "git"
	killTmux         = "tmux server"
	killAll          = "all at once"
)

// processes lists those of the fleet, by what is in their environment and
// arguments.
func (f *chaosFleet) processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		f.t.Fatal(err)
	}
	var list []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if len(line) == 0 || !strings.Contains(string(line)+"\x00"+string(environ), f.home+"/") {
			continue
		}
		p := process{pid: pid, argv: strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")}
		p.kind = p.classify()
		list = append(list, p)
	}
	return list
}

func (p process) classify() string {
	has := func(word string) bool { return len(p.argv) > 1 && p.argv[1] == word }
	switch name := filepath.Base(p.argv[0]); {
	case name == "muntin" && has("orchestrate"):
		return killOrchestrator
	case name == "muntin" && has("pane"):
		return killSupervisor
	case name == "muntin" && has("agent"):
		return killAgent
	case name == "git":
		return killGit
	case strings.HasPrefix(name, "tmux"):
		return killTmux
	case strings.Contains(strings.Join(p.argv, " "), "chaoscheck"):
		return killCheck
	}
	return ""
}

// kill kills something at random, and tells whether it found it.
func (f *chaosFleet) kill() bool {
	kinds := []string{
		killOrchestrator, killOrchestrator, killSupervisor, killSupervisor, killAgent, killAgent,
		killCheck, killCheck, killGit, killGit, killTmux, killAll,
	}
	kind := kinds[f.random.IntN(len(kinds))]
	limit := time.Now().Add(300 * time.Millisecond) // some live only for moments
	for time.Now().Before(limit) {
		var those []process
		for _, p := range f.processes() {
			if p.kind == kind || kind == killAll && p.kind != "" {
				those = append(those, p)
			}
		}
		if len(those) == 0 {
			f.pause(time.Millisecond)
			continue
		}
		if kind != killAll {
			those = []process{those[f.random.IntN(len(those))]}
		}
		killed := false
		for _, p := range those {
			killed = syscall.Kill(p.pid, syscall.SIGKILL) == nil || killed
		}
		if killed {
			f.kills[kind]++
		}
		return killed
	}
	return false
}
