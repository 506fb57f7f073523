package google_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/google"
	"muntin/agent/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(e llm.Endpoint, h *http.Client) llm.Provider {
	return google.New(google.Options{Endpoint: e, HTTPClient: h})
}

func TestDialect(t *testing.T) { llmtest.TestDialect(t, client) }

const stop = "\n" + `{"candidates":[{"finishReason":"STOP"}]}`

func parts(p string) string { return `{"candidates":[{"content":{"parts":[` + p + `]}}]}` }

func TestRaw(t *testing.T) {
	t.Parallel()
	llmtest.TestRaw(t, client, map[string]llmtest.RawCase{
		"thinking, text, calls": {
			parts(`{"thought":true,"text":"h"}`) + "\n" + parts(`{"thought":true,"text":"m","thoughtSignature":"czE="}`) + "\n" +
				parts(`{"text":"hi"},{"functionCall":{"name":"a","args":{"n":12345678901234567}},"thoughtSignature":"czI="},{"functionCall":{"name":"b"}}`) + stop,
			`[{"type":"thinking","thinking":"hm","thinkingSignature":"czE="},{"type":"text","text":"hi"},` +
				`{"type":"toolCall","id":"call_1000_0","name":"a","arguments":{"n":12345678901234567},"thoughtSignature":"czI="},` +
				`{"type":"toolCall","id":"call_1000_1","name":"b","arguments":{}}]`, llm.StopToolUse,
		},
		"ids": {
			parts(`{"functionCall":{"id":"x","name":"a","args":{}}},{"functionCall":{"id":"x","name":"a","args":null}}`) + stop,
			`[{"type":"toolCall","id":"x","name":"a","arguments":{}},{"type":"toolCall","id":"call_1000_1","name":"a","arguments":{}}]`, llm.StopToolUse,
		},
		"signature at the end": {
			parts(`{"text":"hi"}`) + "\n" + parts(`{"text":"","thoughtSignature":"czE="}`) + stop,
			`[{"type":"text","text":"hi","textSignature":"czE="}]`, llm.StopEnd,
		},
		"signature alone":    {parts(`{"text":"","thoughtSignature":"czE="}`) + stop, `[{"type":"text","textSignature":"czE="}]`, llm.StopEnd},
		"length":             {parts(`{"text":"hi"}`) + "\n" + `{"candidates":[{"finishReason":"MAX_TOKENS"}]}`, `[{"type":"text","text":"hi"}]`, llm.StopLength},
		"length with a call": {parts(`{"functionCall":{"id":"x","name":"a","args":{}}}`) + "\n" + `{"candidates":[{"finishReason":"MAX_TOKENS"}]}`, `[{"type":"toolCall","id":"x","name":"a","arguments":{}}]`, llm.StopLength},
		"safety":             {parts(`{"text":"hi"}`) + "\n" + `{"candidates":[{"finishReason":"SAFETY","finishMessage":"no"}]}`, "error: the answer was stopped by the provider: SAFETY: no", llm.StopError},
		"blocked prompt":     {`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, "error: the prompt was stopped by the provider: PROHIBITED_CONTENT", llm.StopError},
		"malformed call":     {`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`, "error: cannot be read", llm.StopError},
		"error object":       {parts(`{"text":"x"}`) + "\n" + `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}`, "error: HTTP 429: quota", llm.StopError},
		"no reason":          {parts(`{"text":"x"}`), "error: without a finish reason", llm.StopError},
		"not JSON":           {`{"candidates":`, "error: the stream is broken", llm.StopError},
		"second candidate":   {`{"candidates":[{"index":1,"content":{"parts":[{"text":"x"}]}},{"content":{"parts":[{"text":"y"}]},"finishReason":"STOP"}]}`, `[{"type":"text","text":"y"}]`, llm.StopEnd},
	})
}

// TestUsage: each chunk repeats the sums.
func TestUsage(t *testing.T) {
	t.Parallel()
	u := func(n int) string {
		return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[{"text":"x"}]}%s}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":30,"candidatesTokenCount":%d,"thoughtsTokenCount":5}}`+"\n\n",
			map[bool]string{true: `,"finishReason":"STOP"`}[n == 42], n)
	}
	e := llmtest.Last(t, client(llm.Endpoint{BaseURL: "http://x.test"}, llmtest.Answering(u(14)+u(28)+u(42))), llm.Request{})
	if want := (llm.Usage{Input: 70, Output: 47, CacheRead: 30, Reasoning: 5, Total: 147}); e.Message.Usage == nil || *e.Message.Usage != want {
		t.Errorf("usage %+v, want %+v (%v)", e.Message.Usage, want, e.Err)
	}
}

func sent(t *testing.T, e llm.Endpoint, req llm.Request) llmtest.Request {
	t.Helper()
	server := llmtest.NewServer(llmtest.Script{Replies: []llmtest.Reply{{Text: "ok"}}})
	defer server.Close()
	e.BaseURL = server.URL
	c := client(e, nil).(*google.Client)
	defer c.CloseIdleConnections()
	if e := llmtest.Last(t, c, req); e.Type != llm.EventDone {
		t.Fatal(e.Err)
	}
	return server.Requests()[0]
}

func TestRequest(t *testing.T) {
	t.Parallel()
	image := llm.Block{Type: llm.BlockImage, MimeType: "image/png", Data: "QUJD"}
	call := func(id, signature string) llm.Block {
		return llm.Block{Type: llm.BlockToolCall, ID: id, Name: "read", Arguments: json.RawMessage(`{"n": 12345678901234567}`), ThoughtSignature: signature}
	}
	own := llm.Message{Role: llm.RoleAssistant, API: google.API, Provider: "google", Model: "models/gemini-x", Content: []llm.Block{
		{Type: llm.BlockThinking, Thinking: "hm", ThinkingSignature: "czE="}, {Type: llm.BlockText, Text: "t", TextSignature: "no base64"}, call("1", "czI="), call("2", ""),
	}}
	other := llm.Message{Role: llm.RoleAssistant, API: "x", Provider: "y", Model: "z", Content: []llm.Block{{Type: llm.BlockThinking, Thinking: "foreign"}, call("3", "czI="), call("4", "")}}
	result := func(id string, isError bool, blocks ...llm.Block) llm.Message {
		return llm.Message{Role: llm.RoleTool, ToolCallID: id, ToolName: "read", Content: blocks, IsError: isError}
	}
	req := llm.Request{
		Model: "models/gemini-x", System: "sys <&>", MaxTokens: 9, Thinking: llm.LevelLow,
		Tools: []llm.Tool{{Name: "read", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{
			{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: "look"}, image}},
			own, result("1", false, llm.Block{Type: llm.BlockText, Text: "out"}, image), result("2", true, llm.Block{Type: llm.BlockText, Text: "bad"}),
			other, result("3", false), result("4", false),
		},
	}
	got := sent(t, llm.Endpoint{Key: llm.StaticKey("k-123456"), Model: llm.Model{Reasoning: true, Compat: json.RawMessage(`{"thinkingLevels":true}`)}}, req)
	const (
		args = `{"name":"read","args":{"n":12345678901234567}}`
		img  = `{"inlineData":{"mimeType":"image/png","data":"QUJD"}}`
		none = `{"functionResponse":{"name":"read","response":{"output":""}}}`
	)
	want := `{"systemInstruction":{"parts":[{"text":"sys <&>"}]},"contents":[` + strings.Join([]string{
		`{"role":"user","parts":[{"text":"look"},` + img + `]}`,
		`{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"czE="},{"text":"t"},{"functionCall":` + args + `,"thoughtSignature":"czI="},{"functionCall":` + args + `}]}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"out"}}},{"functionResponse":{"name":"read","response":{"error":"bad"}}},` + img + `]}`,
		`{"role":"model","parts":[{"functionCall":` + args + `,"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":` + args + `}]}`,
		`{"role":"user","parts":[` + none + `,` + none + `]}`,
	}, ",") + `],"tools":[{"functionDeclarations":[{"name":"read","description":"Reads.","parametersJsonSchema":{"type":"object"}}]}],` +
		`"generationConfig":{"maxOutputTokens":9,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}}`
	if string(got.Body) != want {
		t.Errorf("body\n%s, want\n%s", got.Body, want)
	}
	if got.Path != "/v1/models/gemini-x:streamGenerateContent" || got.Query != "alt=sse" || got.Header.Get("X-Goog-Api-Key") != "k-123456" {
		t.Errorf("%s?%s, headers %v", got.Path, got.Query, got.Header)
	}
}

func TestThinking(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		model llm.Model
		level llm.Level
		want  string
	}{
		"no thinker": {llm.Model{}, llm.LevelHigh, `"parts":[{"text":"hi"}]}]}`},
		"default":    {llm.Model{Reasoning: true}, "", `"thinkingConfig":{"includeThoughts":true}`},
		"off":        {llm.Model{Reasoning: true}, llm.LevelOff, `"thinkingConfig":{"thinkingBudget":0}`},
		"budget":     {llm.Model{Reasoning: true}, llm.LevelMedium, `{"includeThoughts":true,"thinkingBudget":8192}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := llm.Request{Model: "g", Thinking: tt.level, Messages: []llm.Message{llm.UserText("hi", 1)}}
			if got := sent(t, llm.Endpoint{Model: tt.model}, req); !strings.Contains(string(got.Body), tt.want) {
				t.Errorf("body %s, want %s", got.Body, tt.want)
			}
		})
	}
}

func FuzzStream(f *testing.F) {
	llmtest.FuzzDialect(f, client,
		"data: "+parts(`{"text":"x"}`)+"\n\ndata: "+strings.TrimSpace(stop)+"\r\n\r\n",
		"data: "+parts(`{"functionCall":{"args":[1]}},{"thoughtSignature":"x"},{"functionCall":{"id":"call_0_0"}}`)+"\n\n",
		"data: {\"promptFeedback\":{\"blockReason\":\"X\"}}\n\n", "data: {\"usageMetadata\":{\"promptTokenCount\":-1}}\n\ndata: null\n\n",
	)
}

func BenchmarkStream(b *testing.B) {
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"word %d \"}],\"role\":\"model\"},\"index\":0}],\"responseId\":\"r\"}\n\n", i)
	}
	body.WriteString("data: " + strings.TrimSpace(stop) + "\n\n")
	llmtest.BenchmarkDialect(b, client, body.String())
}
