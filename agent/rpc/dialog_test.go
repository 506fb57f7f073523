package rpc_test

import (
	"os"
	"path/filepath"
	"testing"

	"muntin/agent/extension"
	"muntin/agent/extension/examples"
	"muntin/agent/harness"
)

// asking is an extension that asks before a conversation is left, and says something.
const asking = `. "$(dirname "$0")/muntin.sh"
on_session_switch() { confirm "Leave?" || reply '{"cancel":true,"reason":"stay"}'; }
on_command_ask() { confirm "Sure?"; text "code $?"; }
on_event_session_start() { status here; send_message "from afar"; }
muntin_run
`

func withAsking(t *testing.T) func(*harness.Options) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "own")
	if err := examples.Write(dir, "own", "hello-sh"); err != nil {
		t.Fatal(err)
	}
	manifest := "protocol: 1\nname: own\ncommand: [sh, ./main.sh]\ngates: [{on: session_switch}]\ncommands: [{name: ask}]\nevents: [session_start]\n"
	for name, text := range map[string]string{extension.ManifestName: manifest, "main.sh": asking} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(o *harness.Options) {
		all, problems := extension.Load(extension.Place{Dir: dir, One: true})
		if len(problems) > 0 {
			t.Error(problems)
		}
		host, err := extension.New(t.Context(), extension.Options{Extensions: all, State: t.TempDir(), Env: os.Environ()})
		if err != nil {
			t.Error(err)
		}
		o.Extensions = host
	}
}

// question waits for a question and answers it.
func (c *client) question(answer string) map[string]any {
	c.t.Helper()
	all := c.until("a question", func(o map[string]any) bool { return o["type"] == "extension_ui_request" && o["method"] == "confirm" })
	q := all[len(all)-1]
	id, _ := q["id"].(string)
	c.send(`{"type":"extension_ui_response","id":"` + id + `",` + answer + "}\n")
	return q
}

func TestTheClientAnswersWhatExtensionsAsk(t *testing.T) {
	t.Parallel()
	c := serveWith(t, "", withAsking(t))
	c.until("the message of the extension", func(o map[string]any) bool {
		m, _ := o["message"].(map[string]any)
		return o["type"] == "message_end" && m["role"] == "user"
	})
	c.event("agent_settled")
	commands, _ := c.get("get_commands", nil)["commands"].([]any)
	if len(commands) != 1 {
		t.Errorf("%v", commands)
	}
	for answer, want := range map[string]string{`"confirmed":true`: "code 0", `"confirmed":false`: "code 1", `"cancelled":true`: "code 2"} {
		c.get("prompt", say2("/ask"))
		if q := c.question(answer); q["title"] != "Sure?" || q["extension"] != "own" {
			t.Errorf("%v", q)
		}
		c.until("what came of it", func(o map[string]any) bool { return o["method"] == "notify" && o["message"] == want })
		c.event("agent_settled")
	}
	for answer, cancelled := range map[string]bool{`"confirmed":false`: true, `"confirmed":true`: false} {
		c.send(`{"id":"leave","type":"new_session"}` + "\n")
		c.question(answer)
		all := c.until("the response", func(o map[string]any) bool { return o["id"] == "leave" })
		data, _ := all[len(all)-1]["data"].(map[string]any)
		if data["cancelled"] != cancelled {
			t.Errorf("%s: %v", answer, data)
		}
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
