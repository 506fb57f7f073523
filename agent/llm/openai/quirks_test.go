package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
	"muntin/agent/llm/openai"
)

// TestQuirks: what a server is sent, by what its compat object says.
func TestQuirks(t *testing.T) {
	t.Parallel()
	low := llm.Request{Thinking: llm.LevelLow}
	off := llm.Request{Thinking: llm.LevelOff}
	tests := map[string]struct {
		compat string
		req    llm.Request
		want   []string // each is in the body, or with ! before it is not
	}{
		"none":        {``, low, []string{`"reasoning_effort":"low"`, `"stream_options"`, `"role":"system"`, `!"store"`, `!"prompt_cache_key"`}},
		"max tokens":  {`{"maxTokensField":"max_completion_tokens"}`, llm.Request{MaxTokens: 5}, []string{`"max_completion_tokens":5`}},
		"developer":   {`{"supportsDeveloperRole":true,"supportsStore":true}`, low, []string{`"role":"developer"`, `"store":false`}},
		"no usage":    {`{"supportsUsageInStreaming":false}`, low, []string{`!"stream_options"`}},
		"no effort":   {`{"supportsReasoningEffort":false}`, low, []string{`!"reasoning_effort"`}},
		"openrouter":  {`{"thinkingFormat":"openrouter","openRouterRouting":{"only":["x"]}}`, low, []string{`"reasoning":{"effort":"low"}`, `"provider":{"only":["x"]}`}},
		"router off":  {`{"thinkingFormat":"openrouter"}`, off, []string{`"reasoning":{"effort":"none"}`}},
		"deepseek":    {`{"thinkingFormat":"deepseek","requiresReasoningContentOnAssistantMessages":true}`, low, []string{`"thinking":{"type":"enabled"},"reasoning_effort":"low"`, `"reasoning_content":"hm"`}},
		"zai off":     {`{"thinkingFormat":"zai","zaiToolStream":true}`, off, []string{`"thinking":{"type":"disabled"}`, `"tool_stream":true`}},
		"qwen":        {`{"thinkingFormat":"qwen"}`, off, []string{`"enable_thinking":false`}},
		"together":    {`{"thinkingFormat":"together","supportsReasoningEffort":false}`, low, []string{`"reasoning":{"enabled":true}`, `!"reasoning_effort"`}},
		"template":    {`{"thinkingFormat":"baseten","chatTemplateArgs":{"t":{"$var":"thinking.enabled"},"k":1}}`, low, []string{`"chat_template_args":{"k":1,"t":true}`}},
		"mistral":     {`{"toolCallIds":{"alnum":true,"exact":9},"requiresToolResultName":true}`, low, []string{`!call_long_id`, `"name":"read","tool_call_id":"`}},
		"as text":     {`{"requiresThinkingAsText":true}`, low, []string{`<thinking>\nhm\n</thinking>`}},
		"replay":      {`{"replayThinking":"reasoning"}`, low, []string{`"reasoning":"hm"`}},
		"answer":      {`{"requiresAssistantAfterToolResult":true}`, low, []string{`"content":"I have the results of the tools."`}},
		"anthropic":   {`{"cacheControlFormat":"anthropic"}`, low, []string{`"text":"sys","cache_control":{"type":"ephemeral"}`, `"text":"go on","cache_control"`}},
		"cache key":   {`{"promptCacheKey":true}`, llm.Request{Cache: llm.CacheLong}, []string{`"prompt_cache_key":"s1","prompt_cache_retention":"24h"`}},
		"extra":       {`{"extraBody":{"service_tier":"flex"}}`, low, []string{`"service_tier":"flex"`}},
		"tools empty": {`{"requiresToolsWithToolHistory":true}`, llm.Request{Tools: []llm.Tool{}}, []string{`"tools":[`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, server := client(t, llmtest.Script{Replies: []llmtest.Reply{{Text: "ok"}}}, func(o *openai.Options) {
				o.Model = llm.Model{Reasoning: true, Compat: json.RawMessage(tt.compat)}
			})
			req := tt.req
			req.Model, req.System, req.SessionID = "m", "sys", "s1"
			if req.Tools == nil {
				req.Tools = []llm.Tool{{Name: "read"}}
			}
			req.Messages = []llm.Message{
				llm.UserText("hi", 1),
				{Role: llm.RoleAssistant, API: openai.API, Provider: "openai", Model: "m", Content: []llm.Block{
					{Type: llm.BlockThinking, Thinking: "hm"}, {Type: llm.BlockToolCall, ID: "call_long_id", Name: "read"},
				}},
				{Role: llm.RoleTool, ToolCallID: "call_long_id", ToolName: "read", Content: []llm.Block{{Type: llm.BlockText, Text: "out"}}},
				llm.UserText("go on", 1),
			}
			if e := llmtest.Last(t, c, req); e.Type != llm.EventDone {
				t.Fatal(e.Err)
			}
			body := string(server.Requests()[0].Body)
			if !json.Valid([]byte(body)) {
				t.Errorf("not JSON: %s", body)
			}
			for _, want := range tt.want {
				if text, absent := strings.CutPrefix(want, "!"); strings.Contains(body, text) == absent {
					t.Errorf("want %s in %s", want, body)
				}
			}
		})
	}
	bad := bare(llm.Endpoint{BaseURL: "http://x.test", Model: llm.Model{Compat: json.RawMessage(`{"thinkingFormat":"telepathy"}`)}}, llmtest.Answering(""))
	if e := llmtest.Last(t, bad, ask()); llm.Classify(e.Err) != llm.ClassInvalid || !strings.Contains(e.Err.Error(), "telepathy") {
		t.Errorf("an unknown format: %v", e.Err)
	}
}

// TestReasoningDetails come in pieces and go back as they were.
func TestReasoningDetails(t *testing.T) {
	t.Parallel()
	llmtest.TestRaw(t, bare, map[string]llmtest.RawCase{
		"joined": {
			`{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}}]}
			 {"choices":[{"delta":{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"signature":"s"}]}}]}
			 {"choices":[{"delta":{"content":"hi"}}]}
			 {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"E"}]},"finish_reason":"stop"}]}`,
			`[{"type":"thinking","thinking":"ab","thinkingSignature":"[{\"index\":0,\"signature\":\"s\",\"text\":\"ab\",\"type\":\"reasoning.text\"}]"},` +
				`{"type":"text","text":"hi"},{"type":"thinking","thinkingSignature":"[{\"data\":\"E\",\"type\":\"reasoning.encrypted\"}]"}]`, llm.StopEnd,
		},
	})
}
