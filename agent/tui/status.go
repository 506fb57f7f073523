package tui

import (
	"encoding/base64"
	"strings"

	"muntin/internal/term"
)

// A state is what a terminal, or whoever reads the pane, is told of the agent.
type state string

const (
	stateIdle    state = "idle"
	stateWorking state = "working"
	stateDone    state = "done"
	stateError   state = "error"
)

// statusSequence reports the state by OSC 7501, the program status sequence that Pi
// and Codex send. A terminal that does not know it shows nothing. msg is its first
// line in base64.
func statusSequence(st state, msg string) string {
	seq := "\x1b]7501;state=" + string(st) + ":app=muntin"
	if first, _, _ := strings.Cut(strings.TrimSpace(msg), "\n"); first != "" {
		seq += ":msg=" + base64.StdEncoding.EncodeToString([]byte(term.CleanLine(first)))
	}
	return seq + "\x1b\\"
}
