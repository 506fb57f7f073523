package openai_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
	"muntin/agent/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-very-secret-0123456789"

// client makes a client for a scripted server; both end with the test.
func client(t *testing.T, s llmtest.Script, change func(*openai.Options)) (*openai.Client, *llmtest.Server) {
	t.Helper()
	server := llmtest.NewServer(s)
	o := openai.Options{Endpoint: llm.Endpoint{BaseURL: server.URL, Key: llm.StaticKey(key)}}
	if change != nil {
		change(&o)
	}
	c := openai.New(o)
	t.Cleanup(func() {
		server.Close()
		c.CloseIdleConnections()
	})
	return c, server
}

func bare(e llm.Endpoint, h *http.Client) llm.Provider {
	return openai.New(openai.Options{Endpoint: e, HTTPClient: h})
}

func TestDialect(t *testing.T) { llmtest.TestDialect(t, bare) }

func ask() llm.Request {
	return llm.Request{Model: "model-1", Messages: []llm.Message{llm.UserText("hi", 1)}}
}

// TestRaw streams bytes as some server was seen to send them.
func TestRaw(t *testing.T) {
	t.Parallel()
	llmtest.TestRaw(t, bare, map[string]llmtest.RawCase{
		"calls share an index": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\":1}"}}]}}]}
			 {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"y","function":{"name":"b","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			`[{"type":"toolCall","id":"x","name":"a","arguments":{"p":1}},{"type":"toolCall","id":"y","name":"b","arguments":{}}]`, llm.StopToolUse,
		},
		"no index, one id each": {
			`{"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"name":"a","arguments":"{\"p\""}}]}}]}
			 {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":":1}"}}]}}]}
			 {"choices":[{"delta":{"tool_calls":[{"id":"y","function":{"name":"b","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
			`[{"type":"toolCall","id":"x","name":"a","arguments":{"p":1}},{"type":"toolCall","id":"y","name":"b","arguments":{}}]`, llm.StopToolUse,
		},
		"no id, empty arguments": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a","arguments":""}}]},"finish_reason":"tool_calls"}]}`,
			`[{"type":"toolCall","id":"call_1000_0","name":"a","arguments":{}}]`, llm.StopToolUse,
		},
		"one id for two calls": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}},{"index":1,"id":"x","function":{"name":"a","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			`[{"type":"toolCall","id":"x","name":"a","arguments":{}},{"type":"toolCall","id":"call_1000_1","name":"a","arguments":{}}]`, llm.StopToolUse,
		},
		"arguments as an object": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":{"p":12345678901234567}}}]},"finish_reason":"tool_calls"}]}`,
			`[{"type":"toolCall","id":"x","name":"a","arguments":{"p":12345678901234567}}]`, llm.StopToolUse,
		},
		"bad arguments": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\":"}}]},"finish_reason":"length"}]}`,
			`[{"type":"toolCall","id":"x","name":"a","arguments":{},"argumentsError":"the arguments are not valid JSON: unexpected end of JSON input; received: {\"p\":"}]`, llm.StopLength,
		},
		"text and call in one delta": {
			`{"choices":[{"delta":{"content":"hi","tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			`[{"type":"text","text":"hi"},{"type":"toolCall","id":"x","name":"a","arguments":{}}]`, llm.StopToolUse,
		},
		"content in parts, reasoning twice": {
			`{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}
			 {"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"eos"}]}`,
			`[{"type":"thinking","thinking":"hm"},{"type":"text","text":"ab"}]`, llm.StopEnd,
		},
		"refusal":            {`{"choices":[{"delta":{"refusal":"No."},"finish_reason":"stop"}]}`, `[{"type":"text","text":"No."}]`, llm.StopEnd},
		"second choice":      {`{"choices":[{"index":1,"delta":{"content":"x"}},{"index":0,"delta":{"content":"y"},"finish_reason":"stop"}]}`, `[{"type":"text","text":"y"}]`, llm.StopEnd},
		"content filter":     {`{"choices":[{"delta":{"content":"x"},"finish_reason":"content_filter"}]}`, "error: content filter", llm.StopError},
		"unknown reason":     {`{"choices":[{"delta":{},"finish_reason":"bored"}]}`, `error: unknown reason "bored"`, llm.StopError},
		"not JSON":           {`{"choices":[{"de`, "error: the stream is broken", llm.StopError},
		"only an end mark":   {`[DONE]`, "error: without a finish reason", llm.StopError},
		"error with a code":  {`{"error":{"code":429,"message":"upstream"}}`, "error: HTTP 429: upstream", llm.StopError},
		"error after finish": {`{"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n" + `{"error":"late"}`, "error: late", llm.StopError},
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestUsageOfOtherServers(t *testing.T) {
	t.Parallel()
	finish := `{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"%s}]%s}`
	tests := map[string]string{
		"DeepSeek": strings.Replace(strings.Replace(finish, "%s", "", 1), "%s",
			`,"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":4}`, 1),
		"Moonshot": strings.Replace(strings.Replace(finish, "%s",
			`,"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}`, 1), "%s", "", 1),
		"Groq": strings.Replace(strings.Replace(finish, "%s", "", 1), "%s",
			`,"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`, 1),
	}
	for name, chunk := range tests {
		c := openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: "http://x.test"}, HTTPClient: llmtest.Answering("data: " + chunk + "\n\n")})
		e := llmtest.Last(t, c, ask())
		if want := (llm.Usage{Input: 6, CacheRead: 4, Output: 2, Total: 12}); e.Message.Usage == nil || *e.Message.Usage != want {
			t.Errorf("%s: usage %+v, want %+v", name, e.Message.Usage, want)
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	c, server := client(t, llmtest.Script{Replies: []llmtest.Reply{{Text: "ok"}}}, func(o *openai.Options) {
		o.Headers = map[string]string{"X-Title": "test"}
	})
	image := llm.Block{Type: llm.BlockImage, MimeType: "image/png", Data: "QUJD"}
	req := llm.Request{
		Model: "m", System: "sys <&>", MaxTokens: 7,
		Tools: []llm.Tool{{Name: "read", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{
			{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: "look"}, image}},
			{Role: llm.RoleAssistant, Content: []llm.Block{
				{Type: llm.BlockThinking, Thinking: "secret thought"},
				{Type: llm.BlockToolCall, ID: "1", Name: "read", Arguments: json.RawMessage(`{"n": 12345678901234567}`)},
				{Type: llm.BlockToolCall, ID: "2", Name: "read"},
			}},
			{Role: llm.RoleTool, ToolCallID: "1", Content: []llm.Block{image}},
			{Role: llm.RoleTool, ToolCallID: "2", Content: []llm.Block{}},
			{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockThinking, Thinking: "only"}}},
			llm.UserText("go on", 1),
		},
	}
	if e := llmtest.Last(t, c, req); e.Type != llm.EventDone {
		t.Fatal(e.Err)
	}
	got := server.Requests()[0]
	const url = `{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}`
	want := `{"model":"m","messages":[` + strings.Join([]string{
		`{"role":"system","content":"sys <&>"}`,
		`{"role":"user","content":[{"type":"text","text":"look"},` + url + `]}`,
		`{"role":"assistant","content":null,"tool_calls":[` +
			`{"id":"1","type":"function","function":{"name":"read","arguments":"{\"n\": 12345678901234567}"}},` +
			`{"id":"2","type":"function","function":{"name":"read","arguments":"{}"}}]}`,
		`{"role":"tool","content":"(see the attached image)","tool_call_id":"1"}`,
		`{"role":"tool","content":"(no output)","tool_call_id":"2"}`,
		`{"role":"user","content":[{"type":"text","text":"The images of the tool results above:"},` + url + `]}`,
		`{"role":"user","content":"go on"}`,
	}, ",") + `],"tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object"}}}],` +
		`"stream":true,"stream_options":{"include_usage":true},"max_tokens":7}`
	if string(got.Body) != want {
		t.Errorf("body\n%s, want\n%s", got.Body, want)
	}
	if got.Header.Get("Authorization") != "Bearer "+key || got.Header.Get("X-Title") != "test" {
		t.Errorf("headers %v", got.Header)
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	const short = 30 * time.Millisecond
	hold := llmtest.Script{Replies: []llmtest.Reply{{Text: "a", Hold: true}}}
	c, _ := client(t, hold, func(o *openai.Options) { o.Deadlines.Idle = short })
	isStall(t, llmtest.Last(t, c, ask()), "silence for 30ms")

	quiet, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	silent := openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: "http://" + quiet.Addr().String(), Deadlines: llm.Deadlines{FirstEvent: short}}})
	isStall(t, llmtest.Last(t, silent, ask()), "no answer for 30ms")
	silent.CloseIdleConnections()

	stuck := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done() // as a dial to an address that drops packets
		return nil, r.Context().Err()
	})}
	unreachable := openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: "http://x.test", Deadlines: llm.Deadlines{Connect: short}}, HTTPClient: stuck})
	isStall(t, llmtest.Last(t, unreachable, ask()), "no connection for 30ms")
}

func isStall(t *testing.T, e llm.Event, says string) {
	t.Helper()
	if e.Err == nil || e.Err.Error() != says || llm.Classify(e.Err) != llm.ClassRetryable {
		t.Errorf("error %v, want %q, retryable", e.Err, says)
	}
}

func TestNotAStream(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"application/json": "expected an event stream, got application/json: model is loading",
		"text/html":        "expected an event stream, got text/html: {\"error\"",
	} {
		h := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			body := `{"error":"model is loading"}`
			if kind == "text/html" {
				body = "x" + body
				want = "expected an event stream, got text/html: x"
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})}
		e := llmtest.Last(t, openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: "http://x.test"}, HTTPClient: h}), ask())
		if e.Err == nil || !strings.HasPrefix(e.Err.Error(), want) {
			t.Errorf("%s: error %v, want %q", kind, e.Err, want)
		}
	}
}

// TestConnectionRefused is about the most usual mistake: no server there.
func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: "http://" + addr}})
	e := llmtest.Last(t, c, ask())
	if llm.Classify(e.Err) != llm.ClassRetryable || !strings.Contains(e.Err.Error(), addr) {
		t.Errorf("error %v, want a retryable one that names %s", e.Err, addr)
	}
}

// TestServerThatStaysOpen has sent the whole answer and does not end the stream.
func TestServerThatStaysOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stays := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, sink := io.Pipe()
			go func() {
				_, _ = io.WriteString(sink, `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`+"\n\n")
				<-r.Context().Done()
				sink.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body}, nil
		})}
		began := time.Now()
		e := llmtest.Last(t, openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: "http://x.test"}, HTTPClient: stays}), ask())
		if e.Type != llm.EventDone || e.Message.Text() != "x" || time.Since(began) != 5*time.Second {
			t.Errorf("%s (%v) after %s, want done after 5s", e.Type, e.Err, time.Since(began))
		}
	})
}
