package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/internal/proc"
)

const (
	// drain is how long an open pipe is waited for after the shell's exit, and
	// how long a command has between SIGTERM and SIGKILL.
	drain      = 500 * time.Millisecond
	maxTimeout = 1<<31/1000 - 1 // seconds; more is a mistake of units
)

// errAborted stands for whatever ended the context.
var errAborted = errors.New("aborted")

type bashTool struct{ set *Set }

type bashArgs struct {
	Command string  `json:"command"`
	Timeout *number `json:"timeout"` // seconds
}

type bashDetails struct {
	ExitCode   int         `json:"exitCode"`
	DurationMS int64       `json:"durationMs"`
	CPUMS      int64       `json:"cpuMs"` // of the command and the children it waited for
	TimedOut   bool        `json:"timedOut,omitempty"`
	Truncation *truncation `json:"truncation,omitempty"`
	FullOutput string      `json:"fullOutputPath,omitempty"`
}

// Spec implements agent.Tool.
func (t bashTool) Spec() llm.Tool {
	return llm.Tool{
		Name: "bash",
		Description: fmt.Sprintf("Run a shell command in the working folder. Returns standard output and standard error together. "+
			"Long output is cut to its last %d lines or %s and kept whole in a file. Input is empty, there is no terminal. "+
			"The command ends after timeout seconds (%d if not given). Background processes are ended when the command ends.",
			MaxLines, size(MaxBytes), int(t.set.timeout.Seconds())),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"string","description":"Shell command to run"},` +
			`"timeout":{"type":"number","description":"Seconds until the command is ended"}},` +
			`"required":["command"],"additionalProperties":false}`),
	}
}

// Run implements agent.Tool. A command that fails is a result, not an error.
func (t bashTool) Run(ctx context.Context, args json.RawMessage, update func(agent.ToolResult)) (agent.ToolResult, error) {
	var a bashArgs
	if err := decode(args, &a); err != nil {
		return agent.ToolResult{}, err
	}
	timeout, err := t.limit(a)
	if err != nil {
		return agent.ToolResult{}, err
	}
	if err := checkDir(t.set.dir); err != nil { // it may be gone since New
		return agent.ToolResult{}, err
	}
	out := newOutput(t.set.spill)
	stop := followOutput(out, update)
	res, err := proc.Run(ctx, proc.Spec{
		// The command is the model's own and is meant for a shell: this is the
		// one shell string there is.
		Argv:    []string{t.set.shell, "-c", a.Command},
		Dir:     t.set.dir,
		Env:     t.commandEnv(),
		Stdout:  out,
		Stderr:  out, // the same writer: one pipe, so that the order is kept
		Timeout: timeout,
		Grace:   drain,
		Reap:    true,
	})
	stop()
	if err != nil && ctx.Err() != nil {
		err = errAborted
	}
	return bashResult(out.close(), res, err, timeout)
}

func (t bashTool) limit(a bashArgs) (time.Duration, error) {
	if strings.TrimSpace(a.Command) == "" {
		return 0, errors.New("command is empty")
	}
	if strings.ContainsRune(a.Command, 0) {
		return 0, errors.New("command holds a NUL byte")
	}
	if a.Timeout == nil {
		return t.set.timeout, nil
	}
	seconds := float64(*a.Timeout)
	if !(seconds > 0 && seconds <= maxTimeout) { // also false for NaN
		return 0, fmt.Errorf("timeout %v: want seconds above 0 and at most %d", seconds, maxTimeout)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// commandEnv keeps git from asking for a password on the pane's terminal,
// which nobody could answer.
func (t bashTool) commandEnv() []string {
	if lookup(t.set.env, "GIT_TERMINAL_PROMPT") != "" {
		return t.set.env
	}
	return append(slices.Clip(t.set.env), "GIT_TERMINAL_PROMPT=0")
}

// followOutput starts the updates; the returned function ends them and waits.
func followOutput(out *output, update func(agent.ToolResult)) (stop func()) {
	if update == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { out.follow(update, done) })
	return func() { close(done); wg.Wait() }
}

func bashResult(out shown, res proc.Result, err error, timeout time.Duration) (agent.ToolResult, error) {
	parts := []string{}
	if out.text != "" {
		parts = append(parts, out.text)
	}
	if n := out.notice(); n != "" {
		parts = append(parts, n)
	}
	var exit *proc.ExitError
	switch {
	case err == nil:
		if len(parts) == 0 {
			parts = append(parts, "(no output)")
		}
	case errors.As(err, &exit) && res.TimedOut:
		parts = append(parts, fmt.Sprintf("Command timed out after %g seconds", timeout.Seconds()))
	case errors.As(err, &exit):
		parts = append(parts, fmt.Sprintf("Command exited with code %d", res.Code))
	case errors.Is(err, errAborted):
		parts = append(parts, "Command aborted")
	default:
		return agent.ToolResult{}, err
	}
	details := bashDetails{ExitCode: res.Code, DurationMS: res.Duration.Milliseconds(), CPUMS: res.CPU.Milliseconds(), TimedOut: res.TimedOut, FullOutput: out.path}
	if out.cut.Truncated {
		details.Truncation = &out.cut
	}
	result := textResult(strings.Join(parts, "\n\n"), details)
	result.IsError = err != nil
	return result, nil
}
