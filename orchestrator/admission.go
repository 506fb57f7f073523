package orchestrator

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"muntin/internal/state"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// What agents take, idle after their first turn, in bytes of main memory. Ours
// and the supervisor are measured by BenchmarkIdle; those of others were measured
// once with the versions of autumn 2026, with the helpers that they start. They
// are the least that is needed: a turn's tools and builds come on top.
const (
	memorySupervisor = 14 << 20
	memoryOurs       = 12 << 20
	memoryOther      = 64 << 20 // a command that is not known
)

// memoryOf is what the program of an agent takes, by the name of its command or
// adapter.
func memoryOf(name string) int64 {
	switch name {
	case "":
		return memoryOurs
	case "sh", "bash", "zsh", "dash", "fish":
		return 8 << 20
	case "claude", "claude-code":
		return 202 << 20
	case "codex":
		return 370 << 20
	case "gemini":
		return 416 << 20
	case "qwen", "qwen-code":
		return 508 << 20
	}
	return memoryOther
}

// What else an agent takes.
const (
	processesAgent = 3  // its supervisor, its program, and one of its tools
	filesAgent     = 24 // the supervisor's open files and sockets, at most
	filesServer    = 8  // what the tmux server holds for a pane
	ptysAgent      = 2  // the pane's, and the supervisor's own
	reserveMemory  = 256 << 20
	reserveDisk    = 256 << 20
)

// A Resource is one thing that a run needs and a machine has.
type Resource struct {
	Name string `json:"name"`
	Need int64  `json:"need"`
	Have int64  `json:"have"`           // free now; -1: the system does not tell
	What string `json:"what,omitempty"` // the unit, or "bytes"
}

// Tight tells whether a run would take more than 80 % of what there is, Lacks
// whether there is too little.
func (r Resource) Tight() bool { return r.Have >= 0 && r.Need > 0 && r.Need*5 > r.Have*4 }

// Lacks tells whether the machine has too little of it.
func (r Resource) Lacks() bool { return r.Have >= 0 && r.Need > r.Have }

func (r Resource) String() string {
	number := func(n int64) string {
		if r.What == "bytes" {
			return Bytes(n)
		}
		return fmt.Sprint(n)
	}
	if r.Have < 0 {
		return fmt.Sprintf("%s: %s", r.Name, number(r.Need))
	}
	return fmt.Sprintf("%s: %s of %s free", r.Name, number(r.Need), number(r.Have))
}

// A Machine is what is free for a run; -1 where the system does not tell.
type Machine struct {
	Memory    int64 // bytes, also within the limit of a container
	Disk      int64 // bytes where worktrees are made
	PTYs      int64
	Processes int64 // that the user may still start
	Files     int64 // that one process may have open
	Watches   int64 // folders that can be watched
	Watchers  int64 // processes that can watch
}

// watchFrom is the number of files from which on a worktree is watched for its
// checkpoints.
const watchFrom = 5000

// Weigh says what agents will need of a machine. size is that of one worktree.
func Weigh(agents []recipes.Agent, size worktree.Size, has Machine) []Resource {
	var memory, disk, watches, watchers int64
	n := int64(len(agents))
	shared := false
	for _, a := range agents {
		memory += memorySupervisor + memoryOf(programOf(a))
		switch a.Isolation {
		case recipes.IsolationWorktree:
			disk += size.Bytes
		case recipes.IsolationShared:
			shared = true
		case recipes.IsolationNone:
		}
		if size.Files >= watchFrom {
			watches += int64(size.Folders)
			watchers++
		}
	}
	if shared {
		disk += size.Bytes
	}
	return []Resource{
		{Name: "memory", Need: memory + reserveMemory, Have: has.Memory, What: "bytes"},
		{Name: "disk", Need: disk + reserveDisk, Have: has.Disk, What: "bytes"},
		{Name: "terminals", Need: n*ptysAgent + 1, Have: has.PTYs},
		{Name: "processes", Need: n*processesAgent + 2, Have: has.Processes},
		{Name: "open files of the tmux server", Need: n*filesServer + 64, Have: has.Files},
		{Name: "watched folders", Need: watches, Have: has.Watches},
		{Name: "watchers", Need: watchers + 5, Have: has.Watchers},
	}
}

func programOf(a recipes.Agent) string {
	switch {
	case a.Adapter != "":
		return a.Adapter
	case len(a.Command) > 0:
		return filepath.Base(a.Command[0])
	}
	return ""
}

// A CapacityError says that a machine cannot hold a run.
type CapacityError struct {
	Agents int
	Lacks  []Resource
}

func (e *CapacityError) Error() string {
	var list []string
	for _, r := range e.Lacks {
		list = append(list, r.String())
	}
	return fmt.Sprintf("this machine cannot hold %d agents: %s", e.Agents, strings.Join(list, "; "))
}

// Admit measures what a recipe's agents will need against the machine. The
// error is a *CapacityError when there is too little of something.
func Admit(ctx context.Context, o UpOptions) ([]Resource, error) {
	git, err := OpenGit(ctx, o.Repo, o.Dir, o.Now)
	if err != nil {
		return nil, err
	}
	size, err := git.SizeOf(ctx, "HEAD")
	if err != nil {
		return nil, err
	}
	agents := o.Recipe.Resolve()
	needs := Weigh(agents, size, ThisMachine(o.Dir))
	full := &CapacityError{Agents: len(agents)}
	for _, r := range needs {
		if r.Lacks() {
			full.Lacks = append(full.Lacks, r)
		}
	}
	if len(full.Lacks) > 0 {
		return needs, full
	}
	return needs, nil
}

// ThisMachine measures what is free here. dir is where worktrees are made.
func ThisMachine(dir state.RepoDir) Machine {
	m := measure()
	m.Disk = freeDisk(dir.Path)
	return m
}
