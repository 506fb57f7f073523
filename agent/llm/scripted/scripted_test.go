package scripted_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
	"muntin/agent/llm/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	llmtest.TestProvider(t, func(_ *testing.T, s llmtest.Script) llm.Provider {
		script := &scripted.Script{Name: "contract"}
		speed := 0.0
		for _, r := range s.Replies {
			step, held := asStep(r)
			if held {
				speed = 1
			}
			script.Chunk = max(script.Chunk, r.Wire.Split)
			script.Steps = append(script.Steps, step)
		}
		return scripted.New(script, scripted.Options{Speed: speed})
	})
}

func asStep(r llmtest.Reply) (step scripted.Step, held bool) {
	step = scripted.Step{Thinking: r.Thinking, Text: r.Text, Stop: r.Stop, Usage: r.Usage, Cut: r.Cut}
	for _, c := range r.Tools {
		step.Tools = append(step.Tools, scripted.Tool{Name: c.Name, Arguments: []byte(c.Arguments)})
	}
	if r.Fail != nil {
		step.Error = &scripted.Error{Status: r.Fail.Status, Message: r.Fail.Message}
		if r.Fail.RetryAfter != "" {
			step.Error.RetryAfter, _ = time.ParseDuration(r.Fail.RetryAfter + "s")
		}
	}
	if r.Hold {
		step.Delay = time.Hour
	}
	return step, r.Hold
}

const demo = `version: 1
name: demo
chunk: 4
delay: 10ms
rules:
  - match: '(?s)^sum\b.*check failed'
    steps:
      - text: repaired
  - match: '^sum\b'
    steps:
      - thinking: hm
        text: Writing it.
        tools:
          - name: write
            arguments: {path: lib/sum.sh, content: "a\nb", n: 12345678901234567, f: 1.5, on: true, none: null, list: [1, {x: y}]}
          - name: bash
        delay: 1s
        usage: {input: 1200, output: 90, cache_read: 10}
      - text: cut off
        stop: length
  - match: flaky
    steps:
      - error: {status: 529, message: overloaded, retry_after: 1s, times: 2}
        text: at last
      - text: breaks once
        cut: true
        cut_times: 1
steps:
  - text: |
      Two
      lines.
`

func parse(t *testing.T, text string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse("demo.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answer gives the terminal event for a conversation.
func answer(t *testing.T, p llm.Provider, messages ...llm.Message) llm.Event {
	t.Helper()
	events := llmtest.Collect(t, p.Stream(t.Context(), llm.Request{Model: "m", Messages: messages}))
	return events[len(events)-1]
}

func user(text string) llm.Message { return llm.UserText(text, 1) }

func assistant() llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: "x"}}}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	p := scripted.New(parse(t, demo), scripted.Options{})
	tests := map[string]struct {
		messages []llm.Message
		text     string
		stop     llm.StopReason
	}{
		"first rule":         {[]llm.Message{user("sum it\ncheck failed: 3")}, "repaired", llm.StopEnd},
		"second rule":        {[]llm.Message{user("sum it")}, "Writing it.", llm.StopToolUse},
		"second step":        {[]llm.Message{user("sum it"), assistant(), {Role: llm.RoleTool}}, "cut off", llm.StopLength},
		"the last user":      {[]llm.Message{user("hello"), assistant(), user("sum it")}, "Writing it.", llm.StopToolUse},
		"no rule":            {[]llm.Message{user("summit")}, "Two\nlines.\n", llm.StopEnd},
		"beyond the end":     {[]llm.Message{user("hello"), assistant()}, `The script "demo" has no step 2 for this prompt.`, llm.StopEnd},
		"no message at all":  {nil, "Two\nlines.\n", llm.StopEnd},
		"end of a rule":      {[]llm.Message{user("sum"), assistant(), assistant()}, `The script "demo" has no step 3 for this prompt.`, llm.StopEnd},
		"images do not hurt": {[]llm.Message{{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockImage}}}}, "Two\nlines.\n", llm.StopEnd},
	}
	for name, tt := range tests {
		m := answer(t, p, tt.messages...).Message
		if m.Text() != tt.text || m.StopReason != tt.stop {
			t.Errorf("%s: %q (%s), want %q (%s)", name, m.Text(), m.StopReason, tt.text, tt.stop)
		}
	}
	m := answer(t, p, user("sum it")).Message
	calls := m.ToolCalls()
	want := `{"path":"lib/sum.sh","content":"a\nb","n":12345678901234567,"f":1.5,"on":true,"none":null,"list":[1,{"x":"y"}]}`
	if string(calls[0].Arguments) != want || string(calls[1].Arguments) != "{}" {
		t.Errorf("arguments %s and %s, want %s and {}", calls[0].Arguments, calls[1].Arguments, want)
	}
	if want := (llm.Usage{Input: 1200, Output: 90, CacheRead: 10, Total: 1300}); *m.Usage != want {
		t.Errorf("usage %+v, want %+v", *m.Usage, want)
	}
	if u := answer(t, p, user("hello")).Message.Usage; u.Input != 2 || u.Output != 3 {
		t.Errorf("estimated usage %+v, want 2 and 3", *u)
	}
}

func TestFailuresEnd(t *testing.T) {
	t.Parallel()
	p := scripted.New(parse(t, demo), scripted.Options{})
	ask := func(session string, messages ...llm.Message) llm.Event {
		events := llmtest.Collect(t, p.Stream(t.Context(), llm.Request{SessionID: session, Messages: messages}))
		return events[len(events)-1]
	}
	for _, session := range []string{"a", "b"} { // each has its own count
		for range 2 {
			e := ask(session, user("flaky"))
			if e.Err == nil || llm.Classify(e.Err) != llm.ClassRetryable || llm.RetryAfter(e.Err) != time.Second ||
				e.Err.Error() != "HTTP 529: overloaded" {
				t.Fatalf("error %v, want HTTP 529", e.Err)
			}
		}
		if e := ask(session, user("flaky")); e.Err != nil || e.Message.Text() != "at last" {
			t.Fatalf("%v %q, want the step itself", e.Err, e.Message.Text())
		}
		if e := ask(session, user("flaky"), assistant()); e.Err == nil || e.Message.Text() != "breaks once" {
			t.Fatalf("%v %q, want a cut", e.Err, e.Message.Text())
		}
		if e := ask(session, user("flaky"), assistant()); e.Err != nil {
			t.Fatalf("%v, want no second cut", e.Err)
		}
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	for speed, want := range map[float64]time.Duration{
		0: 0,
		1: time.Second + 30*time.Millisecond,
		2: time.Second/2 + 15*time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			text := strings.ReplaceAll(demo, "thinking: hm\n", "\n")
			s := parse(t, strings.Replace(text, "tools:\n          - name: write", "tools:\n          - name: x", 1))
			s.Rules[1].Steps[0].Tools = nil
			s.Rules[1].Steps[0].Text = "0123456789abcd" // four deltas
			p := scripted.New(s, scripted.Options{Speed: speed})
			began := time.Now()
			answer(t, p, user("sum"))
			if took := time.Since(began); took != want {
				t.Errorf("speed %v: %s, want %s", speed, took, want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"empty":           {"", "s.yaml: expected one document"},
		"no version":      {"name: x\n", "s.yaml:1:1: version is missing"},
		"other version":   {"version: 2\n", "s.yaml:1:10: version 2 is not known"},
		"unknown key":     {"version: 1\nsteps:\n  - txt: x\n", `s.yaml:3:5: unknown field "txt"`},
		"unknown in tool": {"version: 1\nsteps:\n  - tools:\n      - nam: x\n", `s.yaml:4:9: unknown field "nam"`},
		"double key":      {"version: 1\nname: a\nname: b\n", `s.yaml:3:1: mapping key "name" already defined`},
		"bad pattern":     {"version: 1\nrules:\n  - match: '('\n    steps: []\n", "s.yaml:3:12: error parsing regexp"},
		"no pattern":      {"version: 1\nrules:\n  - steps: []\n", "s.yaml: rules[0]: match is missing"},
		"bad duration":    {"version: 1\ndelay: 15\n", "s.yaml:2:8: expected a duration"},
		"negative delay":  {"version: 1\ndelay: -1s\n", "s.yaml:2:8: expected a duration"},
		"negative chunk":  {"version: 1\nchunk: -1\n", "s.yaml:2:8: expected a number"},
		"bad stop":        {"version: 1\nsteps:\n  - stop: error\n", "s.yaml:3:11: expected stop, length or toolUse"},
		"bad status":      {"version: 1\nsteps:\n  - error: {status: 200}\n", "s.yaml:3:21: expected a number from 400"},
		"list arguments":  {"version: 1\nsteps:\n  - tools:\n      - name: x\n        arguments: [1]\n", "s.yaml:5:20: expected the arguments"},
		"infinity":        {"version: 1\nsteps:\n  - tools:\n      - {name: x, arguments: {n: .inf}}\n", "s.yaml:4:34: a value that JSON"},
		"alias":           {"version: 1\nname: &a x\nsteps: [{text: *a}]\n", "s.yaml:2:7: anchors"},
		"tag":             {"version: 1\nname: !!binary eA==\n", "s.yaml:2:7: tags"},
		"two documents":   {"version: 1\n---\nversion: 1\n", "s.yaml: expected one document, found 2"},
		"not YAML":        {"version: [1\n", "s.yaml:1:10:"},
		"a list":          {"- 1\n", "s.yaml:1:1:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := scripted.Parse("s.yaml", []byte(tt.text))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("script %+v, error %v, want %s", s, err, tt.want)
			}
		})
	}
}

func TestStatusClass(t *testing.T) {
	t.Parallel()
	for status, class := range map[int]llm.Class{
		0: llm.ClassRetryable, http.StatusUnauthorized: llm.ClassAuth, http.StatusTooManyRequests: llm.ClassRetryable,
	} {
		s := &scripted.Script{Steps: []scripted.Step{{Error: &scripted.Error{Status: status}}}}
		if e := answer(t, scripted.New(s, scripted.Options{}), user("x")); llm.Classify(e.Err) != class {
			t.Errorf("status %d: %v is %s, want %s", status, e.Err, llm.Classify(e.Err), class)
		}
	}
}

// FuzzParse checks that parsing ends without a panic, gives the same for the same
// text, and gives only scripts that can be played.
func FuzzParse(f *testing.F) {
	f.Add([]byte(demo), "sum")
	f.Add([]byte("version: 1\nsteps:\n  - {cut: true, tools: [{name: a, arguments: {é: \"\\x00\"}}]}\n"), "")
	f.Add([]byte("version: 1\nsteps:\n- text: >-\n    a\n    b\n"), "x")
	f.Add([]byte("version: 1\n? a\n: b\n"), "x")
	f.Add([]byte("a: &a [*a]\n"), "x")
	f.Fuzz(func(t *testing.T, data []byte, prompt string) {
		s, err := scripted.Parse("f", data)
		if err != nil {
			return
		}
		again, err := scripted.Parse("f", data)
		if err != nil || !reflect.DeepEqual(s.Steps, again.Steps) {
			t.Fatalf("the second time: %v", err)
		}
		m := answer(t, scripted.New(s, scripted.Options{}), user(prompt)).Message
		for _, c := range m.ToolCalls() {
			if m.StopReason != llm.StopError && c.ArgumentsError != "" {
				t.Fatalf("arguments %s: %s", c.Arguments, c.ArgumentsError)
			}
		}
	})
}
