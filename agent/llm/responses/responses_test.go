package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
	"muntin/agent/llm/responses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(e llm.Endpoint, h *http.Client) llm.Provider {
	return responses.New(responses.Options{Endpoint: e, HTTPClient: h})
}

func TestDialect(t *testing.T) { llmtest.TestDialect(t, client) }

const completed = "\n" + `{"type":"response.completed","response":{"id":"r","status":"completed"}}`

func TestRaw(t *testing.T) {
	t.Parallel()
	llmtest.TestRaw(t, client, map[string]llmtest.RawCase{
		"reasoning in two parts, text, call": {
			`{"type":"response.created","response":{"id":"r"}}
			{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}
			{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"a"}
			{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"b"}
			{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"E"}}
			{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m"}}
			{"type":"response.output_text.delta","output_index":1,"delta":"hi"}
			{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m","phase":"commentary"}}
			{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc","call_id":"c","name":"read","arguments":""}}
			{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"n\":12345678"}
			{"type":"response.function_call_arguments.delta","output_index":2,"delta":"901234567}"}
			{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"n\":12345678901234567}"}
			{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c","name":"read","arguments":"{\"n\":12345678901234567}"}}` + completed,
			`[{"type":"thinking","thinking":"a\n\nb","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs\",\"encrypted_content\":\"E\"}"},` +
				`{"type":"text","text":"hi","textSignature":"{\"v\":1,\"id\":\"m\",\"phase\":\"commentary\"}"},` +
				`{"type":"toolCall","id":"c","name":"read","arguments":{"n":12345678901234567}}]`, llm.StopToolUse,
		},
		"only the whole item": {
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"read","arguments":"{\"a\":1}"}}` + completed,
			`[{"type":"toolCall","id":"c","name":"read","arguments":{"a":1}}]`, llm.StopToolUse,
		},
		"arguments at the end": {
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"read"}}
			{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}` + completed,
			`[{"type":"toolCall","id":"call_1000_0","name":"read","arguments":{"a":1}}]`, llm.StopToolUse,
		},
		"length in a call": {
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"write"}}
			{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"}
			{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`,
			`[{"type":"toolCall","id":"c","name":"write","arguments":{},"argumentsError":"the arguments are not valid JSON: unexpected end of JSON input; received: {\"a\":"}]`,
			llm.StopLength,
		},
		"refusal":        {`{"type":"response.refusal.delta","delta":"No."}` + completed, `[{"type":"text","text":"No."}]`, llm.StopEnd},
		"other items":    {`{"type":"response.output_item.added","item":{"type":"web_search_call"}}` + "\n" + `{"type":"response.new_thing","x":[]}` + completed, `[]`, llm.StopEnd},
		"content filter": {`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`, "error: content filter", llm.StopError},
		"failed":         {`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}`, "error: boom (server_error)", llm.StopError},
		"failed, silent": {`{"type":"response.failed","response":{"status":"failed"}}`, "error: not why", llm.StopError},
		"error, flat":    {`{"type":"error","code":"rate_limit_exceeded","message":"slow down"}`, "error: slow down", llm.StopError},
		"error, nested":  {`{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`, "error: bad", llm.StopError},
		"error, bare":    {`{"error":{"message":"bad"}}`, "error: bad", llm.StopError},
		"no response":    {`{"type":"response.completed"}`, "error: without a finish reason", llm.StopError},
		"unknown status": {`{"type":"response.completed","response":{"status":"bored"}}`, `error: unknown status "bored"`, llm.StopError},
		"no such call":   {`{"type":"response.function_call_arguments.delta","output_index":4,"delta":"{}"}`, "error: output 4", llm.StopError},
		"not JSON":       {`{"type":`, "error: the stream is broken", llm.StopError},
	})
}

// TestErrorClass: an error within a stream of status 200 has its class.
func TestErrorClass(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]llm.Class{
		`{"type":"error","code":"rate_limit_exceeded","message":"slow down"}`:                                                       llm.ClassRetryable,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"too long"}}}`: llm.ClassOverflow,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"pay"}}}`:           llm.ClassQuota,
	} {
		e := llmtest.Last(t, client(llm.Endpoint{BaseURL: "http://x.test"}, llmtest.Answering("data: "+stream+"\n\n")), llm.Request{})
		if got := llm.Classify(e.Err); got != want {
			t.Errorf("%s: class %s, want %s", stream, got, want)
		}
	}
}

func sent(t *testing.T, e llm.Endpoint, req llm.Request) llmtest.Request {
	t.Helper()
	server := llmtest.NewServer(llmtest.Script{Replies: []llmtest.Reply{{Text: "ok"}}})
	defer server.Close()
	e.BaseURL = server.URL
	c := client(e, nil).(*responses.Client)
	defer c.CloseIdleConnections()
	if e := llmtest.Last(t, c, req); e.Type != llm.EventDone {
		t.Fatal(e.Err)
	}
	return server.Requests()[0]
}

func conversation() llm.Request {
	image := llm.Block{Type: llm.BlockImage, MimeType: "image/png", Data: "QUJD"}
	text := llm.Block{Type: llm.BlockText, Text: "t", TextSignature: `{"v":1,"id":"m1","phase":"final_answer"}`}
	thought := llm.Block{Type: llm.BlockThinking, Thinking: "hm", ThinkingSignature: `{"type":"reasoning","id":"rs"}`}
	own := llm.Message{Role: llm.RoleAssistant, API: responses.API, Provider: "openai", Model: "m"}
	first, second := own, own
	first.Content = []llm.Block{thought, text, {Type: llm.BlockToolCall, ID: "c1", Name: "read", Arguments: json.RawMessage(`{"n": 12345678901234567}`)}}
	second.Content = []llm.Block{thought} // nothing follows: it may not go back
	return llm.Request{
		Model: "m", System: "sys <&>", SessionID: "s1",
		Tools:    []llm.Tool{{Name: "read", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: "look"}, image}}, first, {Role: llm.RoleTool, ToolCallID: "c1", Content: []llm.Block{image}}, second},
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	got := sent(t, llm.Endpoint{Key: llm.StaticKey("k-123456")}, conversation())
	const img = `{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,QUJD"}`
	want := `{"model":"m","instructions":"sys <&>","input":[` + strings.Join([]string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"look"},` + img + `]}`,
		`{"type":"reasoning","id":"rs"}`,
		`{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"t","annotations":[]}],"phase":"final_answer"}`,
		`{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"n\": 12345678901234567}"}`,
		`{"type":"function_call_output","call_id":"c1","output":[` + img + `]}`,
	}, ",") + `],"tools":[{"type":"function","name":"read","description":"Reads.","parameters":{"type":"object"},"strict":false}],` +
		`"stream":true,"store":false,"prompt_cache_key":"s1"}`
	if string(got.Body) != want {
		t.Errorf("body\n%s, want\n%s", got.Body, want)
	}
	if got.Path != "/v1/responses" || got.Header.Get("Authorization") != "Bearer k-123456" {
		t.Errorf("%s, headers %v", got.Path, got.Header)
	}
}

func TestThinkingAndQuirks(t *testing.T) {
	t.Parallel()
	none := "minimal"
	tests := map[string]struct {
		model llm.Model
		req   llm.Request
		want  string
	}{
		"high":     {llm.Model{Reasoning: true}, llm.Request{Thinking: llm.LevelHigh}, `"reasoning":{"effort":"high","summary":"auto"},"include":["reasoning.encrypted_content"]`},
		"default":  {llm.Model{Reasoning: true}, llm.Request{}, `"reasoning":{"summary":"auto"},"include"`},
		"off":      {llm.Model{Reasoning: true}, llm.Request{Thinking: llm.LevelOff}, `"reasoning":{"effort":"none"},"include"`},
		"off word": {llm.Model{Reasoning: true, Thinking: map[llm.Level]*string{llm.LevelOff: &none}}, llm.Request{Thinking: llm.LevelOff}, `"effort":"minimal"}`},
		"effort":   {llm.Model{Reasoning: true, Compat: json.RawMessage(`{"supportsReasoningEffort":false,"noReasoningSummary":true}`)}, llm.Request{Thinking: llm.LevelHigh}, `"store":false,"include"`},
		"max":      {llm.Model{}, llm.Request{MaxTokens: 3}, `"max_output_tokens":16`},
		"long":     {llm.Model{}, llm.Request{Cache: llm.CacheLong, SessionID: "s"}, `"prompt_cache_key":"s","prompt_cache_retention":"24h"}`},
		"no cache": {llm.Model{}, llm.Request{Cache: llm.CacheNone, SessionID: "s"}, `"store":false}`},
		"no key":   {llm.Model{Compat: json.RawMessage(`{"promptCacheKeyMode":"disabled","extraBody":{"x":1}}`)}, llm.Request{SessionID: "s"}, `"store":false,"x":1}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.req.Messages = []llm.Message{llm.UserText("hi", 1)}
			if got := sent(t, llm.Endpoint{Model: tt.model}, tt.req); !strings.Contains(string(got.Body), tt.want) {
				t.Errorf("body %s, want %s", got.Body, tt.want)
			}
		})
	}
}

func FuzzStream(f *testing.F) {
	llmtest.FuzzDialect(f, client,
		"data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"arguments\":\"{\"}}\n\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\"}}\n\n",
		"data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\"}}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"id\":\"m\"}}\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":[]}\n\n",
		"data: "+strings.TrimSpace(completed)+"\n\n",
	)
}

func BenchmarkStream(b *testing.B) {
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"word %d \"}\n\n", i)
	}
	body.WriteString("data: " + strings.TrimSpace(completed) + "\n\n")
	llmtest.BenchmarkDialect(b, client, body.String())
}
