package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
)

// shell runs a command of the person: !cmd, or !!cmd of which the model is not
// told. What it writes is shown as that of the model's own commands is.
func (l *loop) shell(ctx context.Context, text string) {
	command := strings.TrimPrefix(text, "!")
	hidden := strings.HasPrefix(command, "!")
	command = strings.TrimSpace(strings.TrimPrefix(command, "!"))
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cancel: cancel}
	l.shells = append(l.shells, r)
	l.lastCall++
	id := fmt.Sprintf("shell-%d", l.lastCall)
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil { // a text can always be written
		args = nil
	}
	name := "!"
	if hidden {
		name = "!!"
	}
	start := l.opts.Now()
	l.display.event(agent.Event{Type: agent.EventToolStart, ToolCallID: id, ToolName: name, Args: args})
	h := l.Agent()
	l.work.Go(func() {
		defer cancel()
		var out strings.Builder
		done, err := h.Bash(ctx, harness.BashRequest{Command: command, Exclude: hidden, OnOutput: func(text string) {
			out.WriteString(text)
			tail := out.String()
			if len(tail) > 2*maxTail {
				tail = tail[len(tail)-maxTail:]
				out.Reset()
				out.WriteString(tail)
			}
			partial := agent.TextResult(tail)
			l.display.event(agent.Event{Type: agent.EventToolUpdate, ToolCallID: id, ToolName: name, Partial: &partial})
		}})
		end := agent.Event{Type: agent.EventToolEnd, ToolCallID: id, ToolName: name, DurationMS: l.opts.Now().Sub(start).Milliseconds()}
		result := agent.TextResult(strings.TrimRight(done.Output, "\n"))
		add := func(text string) {
			result.Content = append(result.Content, llm.Block{Type: llm.BlockText, Text: "\n" + text})
		}
		switch {
		case err != nil:
			add(err.Error())
		case done.Cancelled:
			add("Command aborted")
		case done.ExitCode != nil && *done.ExitCode != 0:
			add(fmt.Sprintf("Command exited with code %d", *done.ExitCode))
		}
		end.IsError = len(result.Content) > 1
		end.Result = &result
		l.display.event(end)
		l.over <- r
	})
}
