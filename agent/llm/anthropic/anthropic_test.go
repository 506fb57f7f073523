package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/anthropic"
	"muntin/agent/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(e llm.Endpoint, h *http.Client) llm.Provider {
	e.BaseURL = strings.TrimSuffix(e.BaseURL, "/v1")
	return anthropic.New(anthropic.Options{Endpoint: e, HTTPClient: h})
}

func TestDialect(t *testing.T) { llmtest.TestDialect(t, client) }

const (
	start = `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":1}}}` + "\n"
	stop  = "\n" + `{"type":"message_stop"}`
)

// ended ends a stream for a reason.
func ended(reason string) string {
	return "\n" + `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":5}}` + stop
}

func TestRaw(t *testing.T) {
	t.Parallel()
	llmtest.TestRaw(t, client, map[string]llmtest.RawCase{
		"thinking, redacted, text, call": {
			start + `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s2"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}
			{"type":"content_block_stop","index":1}
			{"type":"ping"}
			{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"hi"}}
			{"type":"content_block_stop","index":2}
			{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t","name":"read","input":{}}}
			{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"n\":"}}
			{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"12345678901234567}"}}
			{"type":"content_block_stop","index":3}` + ended("tool_use"),
			`[{"type":"thinking","thinking":"hm","thinkingSignature":"s1s2"},{"type":"thinking","thinkingSignature":"xyz","redacted":true},` +
				`{"type":"text","text":"hi"},{"type":"toolCall","id":"t","name":"read","arguments":{"n":12345678901234567}}]`, llm.StopToolUse,
		},
		"thinking that is not shown": {
			start + `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}
			{"type":"content_block_stop","index":0}` + ended("end_turn"),
			`[{"type":"thinking","thinkingSignature":"s"}]`, llm.StopEnd,
		},
		"max_tokens within arguments": {
			start + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"write","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"b"}}
			{"type":"content_block_stop","index":0}` + ended("max_tokens"),
			`[{"type":"toolCall","id":"t","name":"write","arguments":{},"argumentsError":"the arguments are not valid JSON: unexpected end of JSON input; received: {\"a\":\"b"}]`,
			llm.StopLength,
		},
		"arguments at once": {
			start + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"read","input":{"p":1}}}
			{"type":"content_block_stop","index":0}` + ended("tool_use"),
			`[{"type":"toolCall","id":"t","name":"read","arguments":{"p":1}}]`, llm.StopToolUse,
		},
		"no arguments, no id": {
			start + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"read"}}
			{"type":"content_block_stop","index":0}` + ended("tool_use"),
			`[{"type":"toolCall","id":"call_1000_0","name":"read","arguments":{}}]`, llm.StopToolUse,
		},
		"blocks of other kinds": {
			start + `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}
			{"type":"content_block_stop","index":0}
			{"type":"something_new","x":1}
			{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}` + ended("pause_turn"),
			`[{"type":"text","text":"a"}]`, llm.StopEnd,
		},
		"window":                   {start + strings.TrimSpace(ended("model_context_window_exceeded")), `[]`, llm.StopLength},
		"no message_stop":          {start + strings.TrimSuffix(strings.TrimSpace(ended("end_turn")), stop), "error: without a finish reason", llm.StopError},
		"no stop reason":           {start + strings.TrimSpace(stop), "error: without a finish reason", llm.StopError},
		"refusal":                  {start + strings.TrimSpace(ended("refusal")), "error: refused", llm.StopError},
		"unknown reason":           {start + strings.TrimSpace(ended("bored")), `error: unknown reason "bored"`, llm.StopError},
		"overloaded":               {start + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "error: Overloaded", llm.StopError},
		"error, flat":              {`{"type":"error","message":"no such thing"}`, "error: no such thing", llm.StopError},
		"not JSON":                 {`{"type":"mess`, "error: the stream is broken", llm.StopError},
		"arguments without a call": {start + `{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, "error: block 7", llm.StopError},
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	stream := `event: message_start
data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":20,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":8},"output_tokens":1}}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}}

data: {"type":"message_stop"}

`
	price := llm.Price{Input: 1, Output: 10, CacheRead: 0.1, CacheWrite: 1.25}
	e := llmtest.Last(t, client(llm.Endpoint{BaseURL: "http://x.test", Model: llm.Model{Price: price}}, llmtest.Answering(stream)), llm.Request{Model: "m"})
	want := llm.Usage{Input: 10, Output: 7, CacheRead: 20, CacheWrite: 30, CacheWrite1h: 8, Reasoning: 3, Total: 67}
	want.Cost = price.Of(want)
	if e.Message.Usage == nil || *e.Message.Usage != want || want.Cost.Total == 0 {
		t.Errorf("usage %+v, want %+v (%v)", e.Message.Usage, want, e.Err)
	}
}

// model is one that thinks by a budget.
func model(compat string) llm.Model {
	return llm.Model{ID: "m", Reasoning: true, MaxTokens: 32000, Compat: json.RawMessage(compat)}
}

// sent gives the request that the server gets.
func sent(t *testing.T, e llm.Endpoint, req llm.Request) llmtest.Request {
	t.Helper()
	server := llmtest.NewServer(llmtest.Script{Replies: []llmtest.Reply{{Text: "ok"}}})
	defer server.Close()
	e.BaseURL = server.URL
	c := client(e, nil).(*anthropic.Client)
	defer c.CloseIdleConnections()
	if e := llmtest.Last(t, c, req); e.Type != llm.EventDone {
		t.Fatal(e.Err)
	}
	return server.Requests()[0]
}

func conversation() llm.Request {
	image := llm.Block{Type: llm.BlockImage, MimeType: "image/png", Data: "QUJD"}
	text := func(s string) llm.Block { return llm.Block{Type: llm.BlockText, Text: s} }
	return llm.Request{
		Model: "m", System: "sys <&>", SessionID: "s1",
		Tools: []llm.Tool{{Name: "read", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "ls"}},
		Messages: []llm.Message{
			{Role: llm.RoleUser, Content: []llm.Block{text("look"), text(" "), image}},
			{Role: llm.RoleAssistant, API: anthropic.API, Provider: "anthropic", Model: "m", Content: []llm.Block{
				{Type: llm.BlockThinking, Thinking: "hm", ThinkingSignature: "s"}, {Type: llm.BlockThinking, Redacted: true, ThinkingSignature: "x"},
				{Type: llm.BlockThinking, Thinking: "unsigned"},
				{Type: llm.BlockToolCall, ID: "1", Name: "read", Arguments: json.RawMessage(`{"n": 12345678901234567}`)},
				{Type: llm.BlockToolCall, ID: "call|2", Name: "ls"},
			}},
			{Role: llm.RoleTool, ToolCallID: "1", Content: []llm.Block{text("err"), image}, IsError: true},
			{Role: llm.RoleTool, ToolCallID: "call|2", Content: []llm.Block{}},
			{Role: llm.RoleAssistant, API: "other", Provider: "p", Model: "n", Content: []llm.Block{{Type: llm.BlockThinking, Thinking: "foreign"}, text("done")}},
			llm.UserText("go on", 1),
		},
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	got := sent(t, llm.Endpoint{Key: llm.StaticKey("key-1"), Headers: map[string]string{"X-Title": "test"}}, conversation())
	const (
		mark = `"cache_control":{"type":"ephemeral"}`
		img  = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}`
	)
	id2 := llm.IDRule{Word: true, Max: 64}.Apply("call|2")
	want := `{"model":"m","max_tokens":8192,"system":[{"type":"text","text":"sys <&>",` + mark + `}],"messages":[` + strings.Join([]string{
		`{"role":"user","content":[{"type":"text","text":"look"},` + img + `}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"x"},` +
			`{"type":"text","text":"unsigned"},{"type":"tool_use","id":"1","name":"read","input":{"n":12345678901234567}},` +
			`{"type":"tool_use","id":"` + id2 + `","name":"ls","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"err"}],"is_error":true},` +
			`{"type":"tool_result","tool_use_id":"` + id2 + `","content":[{"type":"text","text":"(no output)"}]},` +
			`{"type":"text","text":"The images of the tool result above:"},` + img + `,` + mark + `}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"done"}]}`,
		`{"role":"user","content":[{"type":"text","text":"go on",` + mark + `}]}`,
	}, ",") + `],"tools":[{"name":"read","description":"Reads.","input_schema":{"type":"object"},"eager_input_streaming":true},` +
		`{"name":"ls","input_schema":{"type":"object"},"eager_input_streaming":true,` + mark + `}],"stream":true}`
	if string(got.Body) != want {
		t.Errorf("body\n%s, want\n%s", got.Body, want)
	}
	h := got.Header
	if h.Get("X-Api-Key") != "key-1" || h.Get("Authorization") != "" || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("X-Title") != "test" ||
		h.Get("Anthropic-Beta") != "" || got.Path != "/v1/messages" {
		t.Errorf("%s, headers %v", got.Path, h)
	}
}

func TestThinking(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		model llm.Model
		level llm.Level
		max   int
		want  string // in the body
		beta  string
	}{
		"default":       {model(""), "", 0, `"stream":true}`, ""},
		"no thinker":    {llm.Model{}, llm.LevelHigh, 0, `"stream":true}`, ""},
		"off":           {model(""), llm.LevelOff, 0, `"thinking":{"type":"disabled"}}`, ""},
		"budget":        {model(""), llm.LevelLow, 0, `"max_tokens":32000`, "interleaved-thinking-2025-05-14"},
		"budget, low":   {model(""), llm.LevelLow, 0, `"thinking":{"type":"enabled","budget_tokens":2048}`, "interleaved-thinking-2025-05-14"},
		"little room":   {model(""), llm.LevelHigh, 4096, `"budget_tokens":3072`, "interleaved-thinking-2025-05-14"},
		"no room":       {model(""), llm.LevelHigh, 1000, `"thinking":{"type":"disabled"}`, ""},
		"adaptive":      {model(`{"forceAdaptiveThinking":true}`), llm.LevelHigh, 0, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}`, ""},
		"adaptive, min": {model(`{"forceAdaptiveThinking":true}`), llm.LevelMinimal, 0, `"output_config":{"effort":"low"}`, ""},
		"betas, extra":  {model(`{"betas":["b1","b2"],"extraBody":{"service_tier":"auto"}}`), "", 0, `"service_tier":"auto"}`, "b1,b2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := conversation()
			req.Thinking, req.MaxTokens = tt.level, tt.max
			got := sent(t, llm.Endpoint{Model: tt.model}, req)
			if !strings.Contains(string(got.Body), tt.want) || got.Header.Get("Anthropic-Beta") != tt.beta {
				t.Errorf("body %s\nbetas %q, want %s and %q", got.Body, got.Header.Get("Anthropic-Beta"), tt.want, tt.beta)
			}
		})
	}
}

func TestQuirks(t *testing.T) {
	t.Parallel()
	req := conversation()
	req.Cache = llm.CacheLong
	got := sent(t, llm.Endpoint{
		KeyHeader: "Authorization", Key: llm.StaticKey("tok"),
		Model: model(`{"supportsEagerToolInputStreaming":false,"supportsCacheControlOnTools":false,"allowEmptySignature":true,"sendSessionAffinityHeaders":true}`),
	}, req)
	body := string(got.Body)
	for text, n := range map[string]int{
		"eager_input": 0, `{"type":"ephemeral","ttl":"1h"}`: 3, `"thinking":"unsigned","signature":""`: 1, `"name":"ls","input_schema":{"type":"object"}}`: 1,
	} {
		if strings.Count(body, text) != n {
			t.Errorf("%q is there %d times, want %d: %s", text, strings.Count(body, text), n, body)
		}
	}
	if got.Header.Get("Authorization") != "Bearer tok" || got.Header.Get("X-Api-Key") != "" || got.Header.Get("X-Session-Affinity") != "s1" {
		t.Errorf("headers %v", got.Header)
	}
	e := llmtest.Last(t, client(llm.Endpoint{BaseURL: "http://x.test", Model: model(`{"betas":3}`)}, llmtest.Answering("")), req)
	if llm.Classify(e.Err) != llm.ClassInvalid || !strings.Contains(e.Err.Error(), "compat") {
		t.Errorf("a wrong compat object: %v", e.Err)
	}
	req.Cache = llm.CacheNone
	if got := sent(t, llm.Endpoint{}, req); strings.Contains(string(got.Body), "cache_control") {
		t.Errorf("cached: %s", got.Body)
	}
}

func FuzzStream(f *testing.F) {
	llmtest.FuzzDialect(f, client,
		"event: message_start\ndata: "+start+"\n\n"+"data: {\"type\":\"message_stop\"}\n\n",
		"data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n",
		"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"redacted_thinking\"}}\r\n\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"}}\n\n",
		"data: null\n\ndata: []\n\nevent: error\ndata: {}\n\n",
	)
}

func BenchmarkStream(b *testing.B) {
	var body strings.Builder
	body.WriteString("data: " + start + "\n")
	for i := range 1000 {
		fmt.Fprintf(&body, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word %d \"}}\n\n", i)
	}
	for line := range strings.Lines(strings.TrimSpace(ended("end_turn"))) {
		body.WriteString("data: " + strings.TrimSpace(line) + "\n\n")
	}
	llmtest.BenchmarkDialect(b, client, body.String())
}
