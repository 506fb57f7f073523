package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/llm/scripted"
	"muntin/agent/rpc"
	"muntin/agent/session"
)

const talk = `version: 1
rules:
  - match: '^slow'
    steps:
      - tools: [{name: bash, arguments: {command: "echo up; sleep 100"}}]
      - text: slow done
  - match: '^flaky'
    steps:
      - error: {status: 529, message: overloaded, times: 1}
        text: recovered
  - match: '^broken'
    steps: [{error: {status: 529, message: overloaded}}]
  - match: '^bad'
    steps: [{error: {status: 401, message: no such key}}]
  - match: 'conversation'
    steps: [{text: "## Goal\nall of it"}]
steps: [{text: "an answer", usage: {input: 100, output: 10}}]
`

// a client drives a server over real pipes.
type client struct {
	t      *testing.T
	in     *os.File
	lines  chan map[string]any
	ended  chan error
	lastID int
}

func serve(t *testing.T, file string) *client {
	t.Helper()
	return serveWith(t, file, func(*harness.Options) {})
}

func serveWith(t *testing.T, file string, change func(*harness.Options)) *client {
	t.Helper()
	s, err := scripted.Parse("talk", []byte(talk))
	if err != nil {
		t.Fatal(err)
	}
	provider, dir := scripted.New(s, scripted.Options{}), t.TempDir()
	known := func(id string) llm.Model {
		return llm.Model{ID: id, Name: id, Provider: "p", Reasoning: id == "thinks", ContextWindow: 100_000}
	}
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	n := 0
	var server *rpc.Server
	o := rpc.Options{
		In: inR, Out: outW,
		Open: func(ctx context.Context, at rpc.Place, onEvent func(agent.Event)) (*harness.Harness, error) {
			model := at.Model
			if model == "" {
				model = "p/plain"
			}
			_, id, _ := strings.Cut(model, "/")
			opts := harness.Options{
				Provider: provider, Model: model, Known: known(id), Dir: dir, Session: at.File, Parent: at.Parent,
				Thinking: at.Thinking, OnEvent: onEvent, Retry: agent.RetryPolicy{BaseDelay: 10 * time.Millisecond, MaxAttempts: 2},
				UI: server, OnWaiting: server.Waiting,
			}
			change(&opts)
			return harness.Open(ctx, opts)
		},
		NewFile: func() (string, error) {
			if file == "" {
				return "", nil
			}
			n++
			return filepath.Join(filepath.Dir(file), "new"+strconv.Itoa(n)+".jsonl"), nil
		},
		OpenModel: func(_ context.Context, name string) (harness.Model, error) {
			_, id, _ := strings.Cut(name, "/")
			if id != "plain" && id != "thinks" {
				return harness.Model{}, errors.New("it is not there")
			}
			return harness.Model{Provider: provider, Name: name, Known: known(id)}, nil
		},
		Models: func() []llm.Model { return []llm.Model{known("plain"), known("thinks")} },
		Export: func(path string, s *session.Session) (string, error) { return path + s.Header().ID, nil },
	}
	c := &client{t: t, in: inW, lines: make(chan map[string]any, 10_000), ended: make(chan error, 1)}
	server = rpc.NewServer(o)
	go func() {
		err := server.Serve(t.Context(), rpc.Place{File: file})
		outW.Close()
		c.ended <- err
	}()
	go func() {
		defer close(c.lines)
		scan := bufio.NewScanner(outR)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			var o map[string]any
			if err := json.Unmarshal(scan.Bytes(), &o); err != nil {
				t.Errorf("not JSON: %s", scan.Bytes())
			}
			c.lines <- o
		}
	}()
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	c.in.Close()
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Error(err)
		}
		c.ended <- nil
	case <-time.After(20 * time.Second):
		c.t.Error("the server does not end")
	}
	for range c.lines {
	}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := c.in.WriteString(line); err != nil {
		c.t.Fatal(err)
	}
}

// until gives the lines up to the first that fits, which is the last of them.
func (c *client) until(what string, fits func(map[string]any) bool) []map[string]any {
	c.t.Helper()
	var all []map[string]any
	timeout := time.After(20 * time.Second)
	for {
		select {
		case o, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("no %s before the end: %v", what, all)
			}
			if all = append(all, o); fits(o) {
				return all
			}
		case <-timeout:
			c.t.Fatalf("no %s: %v", what, all)
		}
	}
}

func (c *client) event(typ string) []map[string]any {
	c.t.Helper()
	return c.until(typ, func(o map[string]any) bool { return o["type"] == typ })
}

// ask sends a command and gives its response, and what came before it.
func (c *client) ask(command string, params map[string]any) (map[string]any, []map[string]any) {
	c.t.Helper()
	c.lastID++
	id := "c" + strconv.Itoa(c.lastID)
	o := map[string]any{"id": id, "type": command}
	for k, v := range params {
		o[k] = v
	}
	b, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(b) + "\n")
	all := c.until("response to "+command, func(o map[string]any) bool { return o["type"] == "response" && o["id"] == id })
	r := all[len(all)-1]
	if r["command"] != command {
		c.t.Errorf("the response to %s is %v", command, r)
	}
	return r, all[:len(all)-1]
}

// get asks for something that must succeed, and gives its data.
func (c *client) get(command string, params map[string]any) map[string]any {
	c.t.Helper()
	r, _ := c.ask(command, params)
	if r["success"] != true {
		c.t.Fatalf("%s: %v", command, r)
	}
	data, _ := r["data"].(map[string]any)
	return data
}

func (c *client) refused(command string, params map[string]any, why string) {
	c.t.Helper()
	r, _ := c.ask(command, params)
	if text, _ := r["error"].(string); r["success"] != false || !strings.Contains(text, why) {
		c.t.Errorf("%s: %v, want %q", command, r, why)
	}
}

func kinds(all []map[string]any) string {
	var names []string
	for _, o := range all {
		name, _ := o["type"].(string)
		if len(names) == 0 || names[len(names)-1] != name || name != "message_update" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func say2(text string) map[string]any { return map[string]any{"message": text} }

func TestServePrompt(t *testing.T) {
	t.Parallel()
	c := serve(t, "")
	if d := c.get("prompt", say2("hello\u2028there")); d["disposition"] != "started" {
		t.Errorf("got %v", d)
	}
	all := c.event("agent_settled")
	want := "agent_start turn_start message_start message_end message_start message_update message_end turn_end agent_end agent_settled"
	if kinds(all) != want {
		t.Errorf("got  %s\nwant %s", kinds(all), want)
	}
	for _, o := range all {
		switch o["type"] {
		case "message_update":
			if o["message"] != nil || o["usage"] == nil || o["assistantMessageEvent"].(map[string]any)["contentIndex"] == nil {
				t.Errorf("an update is %v", o)
			}
		case "agent_end":
			if o["willRetry"] != false || len(o["messages"].([]any)) != 2 {
				t.Errorf("the end is %v", o)
			}
		}
	}
	if d := c.get("get_last_assistant_text", nil); d["text"] != "an answer" {
		t.Errorf("got %v", d)
	}
	if d := c.get("get_state", nil); d["messageCount"] != 2.0 || d["isStreaming"] != false || d["thinkingLevel"] != "off" || d["sessionFile"] != nil {
		t.Errorf("got %v", d)
	}
	stats := c.get("get_session_stats", nil)
	if stats["totalMessages"] != 2.0 || stats["tokens"].(map[string]any)["input"] != 100.0 || stats["contextUsage"] == nil {
		t.Errorf("got %v", stats)
	}
}

func TestServeFraming(t *testing.T) {
	t.Parallel()
	c := serve(t, "")
	c.send("{nonsense\n")
	if o := c.event("response")[0]; o["command"] != "parse" || o["success"] != false {
		t.Errorf("got %v", o)
	}
	c.send("{\"type\":\"get_commands\"}\r\n{\"id\":\"x\",\"type\":\"nosuch\"}\n{\"id\":7,\"type\":\"prompt\",\"message\":5}\n[]\n")
	for _, want := range []string{"get_commands", "nosuch", "prompt", "parse"} {
		if o := c.event("response")[0]; o["command"] != want || o["success"] != (want == "get_commands") {
			t.Errorf("got %v, want %s", o, want)
		}
	}
	c.send(`{"id":"last","type":"get_state"}`) // without an LF
	c.in.Close()
	c.until("an answer", func(o map[string]any) bool { return o["id"] == "last" })
}

func TestServeQueuesAndAbort(t *testing.T) {
	t.Parallel()
	c := serve(t, "")
	c.get("prompt", say2("slow"))
	c.event("tool_execution_update")
	c.refused("prompt", say2("no"), "streamingBehavior")
	c.get("prompt", map[string]any{"message": "one", "streamingBehavior": "steer"})
	c.get("follow_up", say2("two"))
	if d := c.get("get_state", nil); d["pendingMessageCount"] != 2.0 || d["isStreaming"] != true {
		t.Errorf("got %v", d)
	}
	if d := c.get("clear_queue", nil); d["steering"].([]any)[0] != "one" || d["followUp"].([]any)[0] != "two" {
		t.Errorf("got %v", d)
	}
	c.get("steer", say2("kept"))
	r, before := c.ask("abort", nil)
	if r["success"] != true {
		t.Errorf("got %v", r)
	}
	after := before
	if !strings.Contains(kinds(before), "agent_settled") {
		after = append(before, c.event("agent_settled")...)
	}
	settled := 0
	for _, o := range after {
		if o["type"] == "agent_settled" {
			settled++
		}
	}
	if last := after[len(after)-1]; settled != 1 || last["aborted"] != false {
		t.Errorf("settled %d times, at last %v: what waited was to go on", settled, last)
	}
	c.get("steer", say2("for later"))
	c.get("set_steering_mode", map[string]any{"mode": "all"})
	c.refused("set_follow_up_mode", map[string]any{"mode": "some"}, "want")
	c.get("prompt", say2("now"))
	c.event("agent_settled")
	if d := c.get("get_state", nil); d["pendingMessageCount"] != 0.0 || d["steeringMode"] != "all" {
		t.Errorf("got %v", d)
	}
}

func TestServeRetries(t *testing.T) {
	t.Parallel()
	c := serve(t, "")
	c.get("prompt", say2("flaky"))
	all := c.event("agent_settled")
	if got := kinds(all); !strings.Contains(got, "agent_end auto_retry_start agent_start") || !strings.Contains(got, "auto_retry_end") {
		t.Errorf("got %s", got)
	}
	c.get("set_auto_retry", map[string]any{"enabled": false})
	c.get("prompt", say2("broken"))
	if got := kinds(c.event("agent_settled")); strings.Contains(got, "auto_retry") {
		t.Errorf("got %s", got)
	}
	c.refused("set_auto_retry", nil, "enabled is missing")
	c.get("abort_retry", nil)
	c.get("abort_bash", nil)
}

func TestServeModels(t *testing.T) {
	t.Parallel()
	c := serve(t, "")
	if d := c.get("get_available_models", nil); len(d["models"].([]any)) != 2 {
		t.Errorf("got %v", d)
	}
	c.refused("set_model", map[string]any{"provider": "p", "modelId": "nosuch"}, "Model not found: p/nosuch")
	if d := c.get("set_model", map[string]any{"provider": "p", "modelId": "thinks"}); d["id"] != "thinks" {
		t.Errorf("got %v", d)
	}
	if d := c.get("get_available_thinking_levels", nil); len(d["levels"].([]any)) != 5 {
		t.Errorf("got %v", d)
	}
	_, before := c.ask("set_thinking_level", map[string]any{"level": "max"})
	if len(before) == 0 || before[len(before)-1]["level"] != "high" {
		t.Errorf("got %v", before)
	}
	if d := c.get("cycle_thinking_level", nil); d["level"] != "off" {
		t.Errorf("got %v", d)
	}
	if d := c.get("cycle_model", nil); d["model"].(map[string]any)["id"] != "plain" || d["isScoped"] != false {
		t.Errorf("got %v", d)
	}
	if r, _ := c.ask("cycle_thinking_level", nil); r["success"] != true || r["data"] != nil {
		t.Errorf("got %v", r)
	}
	c.refused("set_thinking_level", map[string]any{"level": "enormous"}, "want one of")
}

func TestServeSessions(t *testing.T) {
	t.Parallel()
	first := filepath.Join(t.TempDir(), "first.jsonl")
	c := serve(t, first)
	for _, text := range []string{"one", "two"} {
		c.get("prompt", say2(text))
		c.event("agent_settled")
	}
	_, before := c.ask("set_session_name", map[string]any{"name": " talk "})
	if len(before) != 1 || before[0]["type"] != "session_info_changed" || before[0]["name"] != "talk" {
		t.Errorf("got %v", before)
	}
	c.refused("set_session_name", map[string]any{"name": " "}, "empty")
	entries := c.get("get_entries", nil)
	all := entries["entries"].([]any)
	if len(all) != 6 { // model_change, four messages, the name
		t.Fatalf("got %v", all)
	}
	last := all[len(all)-1].(map[string]any)["id"]
	if d := c.get("get_entries", map[string]any{"since": last}); len(d["entries"].([]any)) != 0 || d["leafId"] != last {
		t.Errorf("got %v", d)
	}
	c.refused("get_entries", map[string]any{"since": "nosuch"}, "Entry not found: nosuch")
	if d := c.get("get_tree", nil); len(d["tree"].([]any)) != 1 {
		t.Errorf("got %v", d)
	}
	messages := c.get("get_fork_messages", nil)["messages"].([]any)
	second := messages[1].(map[string]any)
	if len(messages) != 2 || second["text"] != "two" {
		t.Fatalf("got %v", messages)
	}
	if d := c.get("fork", map[string]any{"entryId": second["entryId"]}); d["text"] != "two" || d["cancelled"] != false {
		t.Errorf("got %v", d)
	}
	state := c.get("get_state", nil)
	if state["messageCount"] != 2.0 || state["sessionFile"] == first {
		t.Errorf("got %v", state)
	}
	c.get("clone", nil)
	if d := c.get("get_state", nil); d["messageCount"] != 2.0 || d["sessionFile"] == state["sessionFile"] {
		t.Errorf("got %v", d)
	}
	c.get("new_session", map[string]any{"parentSession": first})
	d := c.get("get_state", nil)
	if d["messageCount"] != 0.0 {
		t.Errorf("got %v", d)
	}
	if h, err := session.ReadHeader(d["sessionFile"].(string)); err != nil || h.ParentSession != first {
		t.Errorf("got %+v, %v", h, err)
	}
	c.refused("switch_session", map[string]any{"sessionPath": first + ".nosuch"}, "no such file")
	c.get("switch_session", map[string]any{"sessionPath": first})
	if d := c.get("get_state", nil); d["messageCount"] != 4.0 || d["sessionName"] != "talk" {
		t.Errorf("got %v", d)
	}
	if d := c.get("export_html", map[string]any{"outputPath": "x/"}); d["path"] != "x/first" && !strings.HasPrefix(d["path"].(string), "x/") {
		t.Errorf("got %v", d)
	}
	b, err := os.ReadFile(first)
	if err != nil || bytes.Count(b, []byte("\n")) < 7 {
		t.Errorf("the file is %s, %v", b, err)
	}
}

func TestServeForksInMemory(t *testing.T) {
	t.Parallel()
	c := serve(t, "")
	for _, text := range []string{"one", "two"} {
		c.get("prompt", say2(text))
		c.event("agent_settled")
	}
	messages := c.get("get_fork_messages", nil)["messages"].([]any)
	c.get("fork", map[string]any{"entryId": messages[1].(map[string]any)["entryId"]})
	if d := c.get("get_state", nil); d["messageCount"] != 2.0 {
		t.Errorf("got %v", d)
	}
	c.refused("fork", map[string]any{"entryId": "nosuch"}, "no such entry")
}

func TestServeCompactAndBash(t *testing.T) {
	t.Parallel()
	c := serve(t, "")
	c.refused("compact", nil, "nothing to compact")
	for _, text := range []string{"one", strings.Repeat("long ", 20_000), "two"} {
		c.get("prompt", say2(text))
		c.event("agent_settled")
	}
	c.send(`{"id":"k","type":"compact","customInstructions":"be short"}` + "\n")
	all := c.until("the summary", func(o map[string]any) bool { return o["id"] == "k" })
	r := all[len(all)-1]
	if r["success"] != true || !strings.Contains(r["data"].(map[string]any)["summary"].(string), "all of it") {
		t.Fatalf("got %v", r)
	}
	for _, o := range all {
		if o["type"] == "compaction_end" && (o["result"] == nil || o["reason"] != "manual" || o["compaction"] != nil) {
			t.Errorf("got %v", o)
		}
	}
	c.get("set_auto_compaction", map[string]any{"enabled": false})
	if d := c.get("get_state", nil); d["autoCompactionEnabled"] != false {
		t.Errorf("got %v", d)
	}
	r, before := c.ask("bash", map[string]any{"command": "echo out; exit 4"})
	if d := r["data"].(map[string]any); d["exitCode"] != 4.0 || !strings.HasPrefix(d["output"].(string), "out") {
		t.Errorf("got %v", r)
	}
	if len(before) == 0 || before[0]["type"] != "bash_execution_update" || before[0]["delta"] != "out\n" {
		t.Errorf("got %v", before)
	}
	c.send(`{"id":"b","type":"bash","command":"echo up; sleep 100"}` + "\n")
	c.event("bash_execution_update")
	c.get("abort_bash", nil)
	all = c.until("the end of bash", func(o map[string]any) bool { return o["id"] == "b" && o["type"] == "response" })
	if d := all[len(all)-1]["data"].(map[string]any); d["cancelled"] != true {
		t.Errorf("got %v", d)
	}
}

func TestServeEndsInTheMidstOfARun(t *testing.T) {
	t.Parallel()
	c := serve(t, filepath.Join(t.TempDir(), "s.jsonl"))
	c.get("prompt", say2("slow"))
	c.event("tool_execution_update")
	c.send(`{"type":"bash","command":"sleep 100"}` + "\n")
	c.in.Close()
	all := c.event("agent_settled")
	if last := all[len(all)-1]; last["aborted"] != true {
		t.Errorf("got %v", last)
	}
}
