// Package tool holds the tools a coding agent works with: read, bash, edit and
// write, and on request grep, find and ls. They run with the rights of the process and hold no fence around the
// working folder: real isolation is the operating system's work.
//
// Names, parameters, limits and notices follow the Pi coding agent, so that
// models and sessions go from one to the other. A Set belongs to one agent: it
// knows which files this agent has read, and lets changes of one file happen
// one after the other.
package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muntin/agent"
)

// The limits of what one call gives to the model.
const (
	MaxLines = 2000
	MaxBytes = 50 << 10
)

// DefaultTimeout is how long a command of bash may run when the call does not say.
const DefaultTimeout = 120 * time.Second

// Options say where and how the tools work.
type Options struct {
	Dir         string        // working folder: must exist, made absolute
	Env         []string      // environment of commands; nil: this process's
	SpillDir    string        // folder for outputs too long to show; "": they are not kept
	BashTimeout time.Duration // 0: DefaultTimeout
}

// A Set is the tools of one agent. Its tools may run at the same time.
type Set struct {
	dir     string
	home    string
	env     []string
	spill   string
	shell   string
	ripgrep string // "" when it is not installed
	timeout time.Duration
	queue   *queue
	seen    *seen
}

// New makes the tools. It fails when Dir is no folder or there is no shell.
func New(opts Options) (*Set, error) {
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the working folder: %w", err)
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	shell, err := findShell()
	if err != nil {
		return nil, err
	}
	env := opts.Env
	if env == nil {
		env = os.Environ()
	}
	timeout := opts.BashTimeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	rg, err := exec.LookPath("rg")
	if err != nil {
		rg = ""
	}
	return &Set{
		dir: dir, home: lookup(env, "HOME"), env: env, spill: opts.SpillDir, shell: shell, ripgrep: rg,
		timeout: timeout, queue: newQueue(), seen: newSeen(),
	}, nil
}

// Names are the tools there are, in the order the model is told of them.
func Names() []string { return append(Defaults(), "grep", "find", "ls") }

// Defaults are the tools an agent has when nobody says which.
func Defaults() []string { return []string{"read", "bash", "edit", "write"} }

// Tools returns the named tools. An unknown name is an error that lists the known
// ones.
func (s *Set) Tools(names ...string) ([]agent.Tool, error) {
	tools := make([]agent.Tool, 0, len(names))
	for _, name := range names {
		t := s.tool(name)
		if t == nil {
			return nil, fmt.Errorf("unknown tool %q: there are %s", name, strings.Join(Names(), ", "))
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func (s *Set) tool(name string) agent.Tool {
	switch name {
	case "read":
		return readTool{s}
	case "bash":
		return bashTool{s}
	case "edit":
		return editTool{s}
	case "write":
		return writeTool{s}
	case "grep":
		return grepTool{s}
	case "find":
		return findTool{s}
	case "ls":
		return lsTool{s}
	}
	return nil
}

// findShell is Pi's choice: /bin/bash, else bash on PATH, else sh.
func findShell() (string, error) {
	for _, name := range []string{"/bin/bash", "bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("finding a shell: neither bash nor sh is on PATH")
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("working folder does not exist: %s", dir)
	}
	if err != nil {
		return fmt.Errorf("looking at the working folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("working folder is no folder: %s", dir)
	}
	return nil
}

// lookup returns the last value of an environment variable, as a child would see it.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// number is a number in arguments; models write some of them as strings.
type number float64

// UnmarshalJSON takes 12, 12.0 and "12".
func (n *number) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil {
		return fmt.Errorf("want a number, got %s", b)
	}
	*n = number(f)
	return nil
}

func decode(args json.RawMessage, into any) error {
	if err := json.Unmarshal(args, into); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	return nil
}

// textResult makes a result of a text and details for people. Details are our
// own structs, which always encode.
func textResult(text string, details any) agent.ToolResult {
	res := agent.TextResult(text)
	if b, err := json.Marshal(details); err == nil {
		res.Details = b
	}
	return res
}
