package adapter

import (
	"encoding/json"
	"io"
	"strings"
)

// A Hook is what a CLI runs `muntin hook <event>` for. The names are the CLI's.
type Hook struct {
	Event   string
	Matcher string // which tools or kinds, where the event has such; empty: all
}

const (
	// maxHookInput is how much of a hook's input is read: a tool's result may
	// be in it, and nothing of that is needed.
	maxHookInput = 4 << 20
	maxHookText  = 4 << 10 // of one text that is passed on, in bytes
)

// A HookInput is what a hook was given, as far as it means something. Claude
// Code, Codex, Gemini CLI and Qwen Code give the same names:
// https://code.claude.com/docs/en/hooks, https://geminicli.com/docs/hooks/reference/.
type HookInput struct {
	Event        string `json:"event"` // the argument of `muntin hook`
	Conversation string `json:"session_id,omitempty"`
	Transcript   string `json:"transcript_path,omitempty"`
	Agent        string `json:"agent_id,omitempty"` // of a helper of the agent's own
	Kind         string `json:"notification_type,omitempty"`
	Text         string `json:"message,omitempty"`
	Error        string `json:"error,omitempty"`
	Tool         string `json:"tool_name,omitempty"`
	Last         string `json:"last_assistant_message,omitempty"`
	Response     string `json:"prompt_response,omitempty"`
}

// ReadHook reads what a CLI gives to a hook. What is no JSON, or has other
// types than these, gives what could be understood: a hook must not fail.
func ReadHook(event string, r io.Reader) HookInput {
	in := HookInput{Event: event}
	var fields map[string]json.RawMessage
	if err := json.NewDecoder(io.LimitReader(r, maxHookInput)).Decode(&fields); err != nil {
		return in
	}
	for name, to := range map[string]*string{
		"session_id": &in.Conversation, "transcript_path": &in.Transcript, "agent_id": &in.Agent, "notification_type": &in.Kind,
		"message": &in.Text, "error": &in.Error, "tool_name": &in.Tool,
		"last_assistant_message": &in.Last, "prompt_response": &in.Response,
	} {
		var text string
		if json.Unmarshal(fields[name], &text) == nil {
			*to = clip(text, maxHookText)
		}
	}
	return in
}

// Signal is the text under which the rules of an adapter find the hook: its
// event, and behind a colon the kind of the notification or the error.
func (h HookInput) Signal() string {
	switch {
	case h.Kind != "":
		return h.Event + ":" + h.Kind
	case h.Error != "":
		return h.Event + ":" + h.Error
	}
	return h.Event
}

// Note is what the hook says to people.
func (h HookInput) Note() string {
	for _, text := range []string{h.Text, h.Last, h.Response, h.Error} {
		if text != "" {
			return text
		}
	}
	return ""
}

// hookSettings is the settings file that has a CLI run `muntin hook` for each
// hook. more is a JSON object of further settings, or empty.
func hookSettings(hooks []Hook, timeout int, self, more string) string {
	settings := map[string]any{}
	if more != "" {
		_ = json.Unmarshal([]byte(more), &settings) // a table of ours
	}
	events := map[string]any{}
	for _, h := range hooks {
		group := map[string]any{"hooks": []any{map[string]any{
			"type": "command", "command": quoted(self) + " hook " + h.Event, "timeout": timeout, "name": "muntin",
		}}}
		if h.Matcher != "" {
			group["matcher"] = h.Matcher
		}
		events[h.Event] = []any{group}
	}
	settings["hooks"] = events
	text, _ := json.MarshalIndent(settings, "", "  ") // of plain maps
	return string(text) + "\n"
}

// quoted makes one word of a path: the CLIs take a hook as a line for a shell
// and have no other form.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// clip cuts a text to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
