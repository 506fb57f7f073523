package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"muntin/agent/harness"
	"muntin/agent/llm/scripted"
	"muntin/agent/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const script = `version: 1
rules:
  - match: '^good'
    steps:
      - text: one moment
        tools: [{name: bash, arguments: {command: "echo '<hi>'"}}]
      - text: "all <well>\n"
  - match: '^bad'
    steps: [{error: {status: 401, message: no such key}}]
  - match: '^long'
    steps: [{text: half of, stop: length}]
`

func options(t *testing.T) harness.Options {
	t.Helper()
	s, err := scripted.Parse("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return harness.Options{Provider: scripted.New(s, scripted.Options{}), Model: "scripted/test", Dir: t.TempDir()}
}

func open(t *testing.T, o harness.Options) *harness.Harness {
	t.Helper()
	h, err := harness.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func say(texts ...string) []harness.Input {
	var all []harness.Input
	for _, text := range texts {
		all = append(all, harness.Input{Text: text})
	}
	return all
}

func TestPrint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prompt, out, err string }{
		{"good", "all <well>\n", ""},
		{"bad", "", "no such key"},
		{"long", "half of\n", "cut off"},
	} {
		var out strings.Builder
		err := rpc.Print(t.Context(), open(t, options(t)), say(c.prompt), &out)
		if out.String() != c.out || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v", c.prompt, out.String(), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rpc.Print(ctx, open(t, options(t)), say("good"), &strings.Builder{}); !errors.Is(err, harness.ErrAborted) {
		t.Errorf("got %v", err)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	j := rpc.NewJSON(&out)
	o := options(t)
	o.OnEvent = j.OnEvent
	h := open(t, o)
	if err := j.Run(t.Context(), h, h.Header(), say("good")); err != nil {
		t.Fatal(err)
	}
	var types []string
	for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		var e struct {
			Type    string          `json:"type"`
			ID      string          `json:"id"`
			Message json.RawMessage `json:"message"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %d %q: %v", i+1, line, err)
		}
		if i == 0 && e.ID != h.Header().ID {
			t.Errorf("the first line is not the header: %s", line)
		}
		if e.Type == "message_update" && e.Message != nil {
			t.Errorf("an update carries the whole message: %s", line)
		}
		if e.Type != "message_update" {
			types = append(types, e.Type)
		}
	}
	turn := "turn_start message_start message_end "
	want := "session agent_start turn_start message_start message_end message_start message_end " +
		"tool_execution_start tool_execution_update tool_execution_end message_start message_end turn_end " +
		turn + "turn_end agent_end agent_settled"
	got := strings.Join(types, " ")
	if got = strings.ReplaceAll(got, "tool_execution_update ", ""); got != strings.ReplaceAll(want, "tool_execution_update ", "") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(out.String(), "<hi>") {
		t.Error("the tool's output is escaped or missing")
	}
}

func TestJSONFails(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	j := rpc.NewJSON(&out)
	o := options(t)
	o.OnEvent = j.OnEvent
	h := open(t, o)
	if err := j.Run(t.Context(), h, h.Header(), say("bad")); err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("got %v", err)
	}
	if !strings.HasSuffix(out.String(), "{\"aborted\":false,\"type\":\"agent_settled\"}\n") {
		t.Errorf("got %s", out.String())
	}
}

// full takes n writes and then fails, as a pipe does that nobody reads.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errors.New("pipe closed")
	}
	return len(p), nil
}

func TestJSONNobodyReads(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 5} {
		j := rpc.NewJSON(&full{n})
		o := options(t)
		o.OnEvent = j.OnEvent
		h := open(t, o)
		if err := j.Run(t.Context(), h, h.Header(), say("good")); err == nil || !strings.Contains(err.Error(), "pipe closed") {
			t.Errorf("%d: got %v", n, err)
		}
		if n == 5 && len(h.Messages()) > 3 {
			t.Errorf("the run went on: %d messages", len(h.Messages()))
		}
	}
}
