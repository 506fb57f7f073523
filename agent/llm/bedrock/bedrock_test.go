package bedrock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/bedrock"
	"muntin/agent/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(e llm.Endpoint, h *http.Client) llm.Provider {
	return bedrock.New(bedrock.Options{Endpoint: e, HTTPClient: h})
}

func TestDialect(t *testing.T) { llmtest.TestDialect(t, client) }

// stream makes frames of lines: a name, a space and the JSON. A name with a "!" is
// that of an exception.
func stream(lines string) string {
	var out bytes.Buffer
	for line := range strings.Lines(lines) {
		name, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		kind := "event"
		if failed, ok := strings.CutPrefix(name, "!"); ok {
			kind, name = "exception", failed
		}
		out.Write(llmtest.Frame(kind, name, []byte(data)))
	}
	return out.String()
}

const end = "\n" + `messageStop {"stopReason":"end_turn"}` + "\n" + `metadata {"usage":{"inputTokens":7,"outputTokens":3,"cacheWriteInputTokens":4,"cacheDetails":[{"ttl":"1h","inputTokens":2}]}}`

func delta(i int, d string) string {
	return fmt.Sprintf("contentBlockDelta {\"contentBlockIndex\":%d,\"delta\":%s}\n", i, d)
}

func TestStreams(t *testing.T) {
	t.Parallel()
	call := `contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"a","name":"read"}}}` + "\n"
	tests := map[string]llmtest.RawCase{
		"redacted in pieces": {
			delta(0, `{"reasoningContent":{"redactedContent":"YWI="}}`) + delta(0, `{"reasoningContent":{"redactedContent":"Yw=="}}`) + `contentBlockStop {"contentBlockIndex":0}` + "\n" + delta(1, `{"text":"hi"}`) + end,
			`[{"type":"thinking","thinkingSignature":"YWJj","redacted":true},{"type":"text","text":"hi"}]`, llm.StopEnd,
		},
		"two texts": {delta(0, `{"text":"a"}`) + delta(1, `{"text":"b"}`) + end, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, llm.StopEnd},
		"call without an id": {
			strings.Replace(call, `"toolUseId":"a",`, "", 1) + delta(1, `{"toolUse":{"input":"{\"n\":12345678901234567}"}}`) + strings.Replace(end, "end_turn", "tool_use", 1),
			`[{"type":"toolCall","id":"call_1000_1","name":"read","arguments":{"n":12345678901234567}}]`, llm.StopToolUse,
		},
		"length in a call": {
			call + delta(1, `{"toolUse":{"input":"{\"a\":"}}`) + strings.Replace(end, "end_turn", "max_tokens", 1),
			`[{"type":"toolCall","id":"a","name":"read","arguments":{},"argumentsError":"the arguments are not valid JSON: unexpected end of JSON input; received: {\"a\":"}]`, llm.StopLength,
		},
		"no counts":         {delta(0, `{"text":"a"}`) + `messageStop {"stopReason":"end_turn"}`, `[{"type":"text","text":"a"}]`, llm.StopEnd},
		"what is new":       {`newThing {"x":[]}` + "\n" + delta(0, `{"other":{}}`) + end, `[]`, llm.StopEnd},
		"no stop":           {delta(0, `{"text":"a"}`), "error: without a finish reason", llm.StopError},
		"guardrail":         {strings.Replace(end, "end_turn", "guardrail_intervened", 1), "error: stopped by the provider", llm.StopError},
		"arguments of none": {delta(0, `{"toolUse":{"input":"{}"}}`), "error: which is no tool call", llm.StopError},
		"not JSON":          {`messageStop {`, "error: the stream is broken", llm.StopError},
		"exception":         {delta(0, `{"text":"a"}`) + `!modelStreamErrorException {"message":"boom","originalStatusCode":500}`, "error: boom (modelStreamErrorException)", llm.StopError},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := client(llm.Endpoint{BaseURL: "http://x.test", Now: func() time.Time { return time.UnixMilli(1000) }}, llmtest.Answering(stream(c.Stream)))
			e := llmtest.Last(t, p, llm.Request{})
			if says, ok := strings.CutPrefix(c.Want, "error: "); ok {
				if e.Err == nil || !strings.Contains(e.Err.Error(), says) {
					t.Errorf("error %v, want one with %q", e.Err, says)
				}
				return
			}
			got, err := json.Marshal(e.Message.Content)
			if err != nil || string(got) != c.Want || e.Message.StopReason != c.Stop {
				t.Errorf("%s, %s, want %s, %s (%v, %v)", got, e.Message.StopReason, c.Want, c.Stop, err, e.Err)
			}
			if u := e.Message.Usage; strings.Contains(c.Stream, "usage") && (u == nil || u.Input != 7 || u.CacheWrite1h != 2 || u.Total != 14) {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

// TestBrokenFrames: a damaged or cut frame is worth another try.
func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	whole := stream(delta(0, `{"text":"hello"}`) + end)
	damaged := []byte(whole)
	damaged[60] ^= 1
	for name, body := range map[string]string{"cut": whole[:len(whole)-5], "cut in the prelude": whole[:5], "damaged": string(damaged), "text": "data: {}\n\n data: {}\n\n"} {
		e := llmtest.Last(t, client(llm.Endpoint{BaseURL: "http://x.test"}, llmtest.Answering(body)), llm.Request{})
		if name == "cut" && e.Err == nil {
			continue // the answer was whole, and only its counts were cut off
		}
		if llm.Classify(e.Err) != llm.ClassRetryable {
			t.Errorf("%s: %v (%s)", name, e.Err, llm.Classify(e.Err))
		}
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]llm.Class{
		"throttlingException": llm.ClassRetryable, "internalServerException": llm.ClassRetryable, "modelStreamErrorException": llm.ClassRetryable,
		"serviceUnavailableException": llm.ClassRetryable, "modelTimeoutException": llm.ClassRetryable,
	} {
		e := llmtest.Last(t, client(llm.Endpoint{BaseURL: "http://x.test"}, llmtest.Answering(stream("!"+name+` {"message":"so it is"}`))), llm.Request{})
		if got := llm.Classify(e.Err); got != want {
			t.Errorf("%s: %s, want %s (%v)", name, got, want, e.Err)
		}
	}
}

// sent gives the request as a server got it.
func sent(t *testing.T, o bedrock.Options, req llm.Request) llmtest.Request {
	t.Helper()
	server := llmtest.NewServer(llmtest.Script{Replies: []llmtest.Reply{{Text: "x"}}})
	o.BaseURL = strings.TrimSuffix(server.URL, "/v1")
	p := bedrock.New(o)
	defer func() { p.CloseIdleConnections(); server.Close() }()
	if e := llmtest.Last(t, p, req); e.Type != llm.EventDone {
		t.Fatalf("%s: %v", e.Type, e.Err)
	}
	return server.Requests()[0]
}

func TestEncode(t *testing.T) {
	t.Parallel()
	claude := llm.Model{ID: "us.anthropic.claude-opus-4-5-20251101-v1:0", Reasoning: true, MaxTokens: 32000}
	image := llm.Block{Type: llm.BlockImage, Data: "QQ==", MimeType: "image/jpg"}
	own := llm.Message{Role: llm.RoleAssistant, API: bedrock.API, Provider: "amazon-bedrock", Model: claude.ID, StopReason: llm.StopToolUse, Content: []llm.Block{
		{Type: llm.BlockThinking, Thinking: "hm", ThinkingSignature: "sig"}, {Type: llm.BlockThinking, ThinkingSignature: "YWI=", Redacted: true},
		{Type: llm.BlockText, Text: " "}, {Type: llm.BlockToolCall, ID: "a|1", Name: "read", Arguments: json.RawMessage(`{"n":12345678901234567}`)},
	}}
	req := llm.Request{
		Model: claude.ID, System: "Be brief.", Thinking: llm.LevelLow,
		Messages: []llm.Message{
			llm.UserText("go", 1), own,
			{Role: llm.RoleTool, ToolCallID: "a|1", IsError: true, Content: []llm.Block{{Type: llm.BlockText, Text: "no"}, image}},
		},
		Tools: []llm.Tool{{Name: "read", Description: "Reads."}},
	}
	got := sent(t, bedrock.Options{Endpoint: llm.Endpoint{Model: claude, Key: llm.StaticKey("bearer")}}, req)
	const path = "/model/us.anthropic.claude-opus-4-5-20251101-v1:0/converse-stream"
	if got.Path != path || got.Header.Get("Authorization") != "Bearer bearer" || got.Header.Get("Accept") != "application/vnd.amazon.eventstream" {
		t.Errorf("%s %v", got.Path, got.Header)
	}
	body := string(got.Body)
	for _, want := range []string{
		`"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}}]`,
		`{"reasoningContent":{"reasoningText":{"text":"hm","signature":"sig"}}},{"reasoningContent":{"redactedContent":"YWI="}},{"toolUse":{"toolUseId":"a_1`,
		`"input":{"n":12345678901234567}`, `"content":[{"text":"no"}],"status":"error"`, `{"image":{"format":"jpeg","source":{"bytes":"QQ=="}}},{"cachePoint"`,
		`"inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}}]`, `"inferenceConfig":{"maxTokens":32000}`,
		`"thinking":{"budget_tokens":2048,"type":"enabled"}`, `interleaved-thinking`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
	req.Tools, req.Cache, req.Thinking = nil, llm.CacheNone, llm.LevelOff
	body = string(sent(t, bedrock.Options{Endpoint: llm.Endpoint{Model: claude}}, req).Body)
	if strings.Contains(body, "cachePoint") || strings.Contains(body, "thinking\":{") || !strings.Contains(body, `"toolSpec":{"name":"read"`) {
		t.Errorf("without tools: %s", body)
	}
}

func TestThinking(t *testing.T) {
	t.Parallel()
	max := "max"
	for id, want := range map[string]string{
		"eu.anthropic.claude-opus-4-6-v1": `"output_config":{"effort":"max"},"thinking":{"display":"summarized","type":"adaptive"}`,
		"openai.gpt-oss-120b-1:0":         `"reasoning_effort":"high"`,
		"openai.gpt-6":                    `"reasoning":{"effort":"max"}`,
		"us.amazon.nova-2-lite-v1:0":      `"maxReasoningEffort":"high"`,
		"deepseek.r1-v1:0":                `"messages"`,
	} {
		m := llm.Model{ID: id, Reasoning: true, Thinking: map[llm.Level]*string{llm.LevelMax: &max}}
		req := llm.Request{Model: id, Thinking: llm.LevelMax, Messages: []llm.Message{llm.UserText("go", 1)}}
		if body := string(sent(t, bedrock.Options{Endpoint: llm.Endpoint{Model: m}}, req).Body); !strings.Contains(body, want) || (id[0] == 'd') == strings.Contains(body, "additionalModel") {
			t.Errorf("%s: %s, want %s", id, body, want)
		}
	}
}

// TestSignature: a request without a key is signed for its region, and no error
// shows what signed it.
func TestSignature(t *testing.T) {
	t.Parallel()
	creds := func() (bedrock.Credentials, error) {
		return bedrock.Credentials{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", Session: "session-secret-12345"}, nil
	}
	now := func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	o := bedrock.Options{Endpoint: llm.Endpoint{Now: now}, Region: "eu-west-3", Credentials: creds}
	req := llm.Request{Model: "m", Messages: []llm.Message{llm.UserText("go", 1)}}
	got := sent(t, o, req)
	auth := got.Header.Get("Authorization")
	if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/eu-west-3/bedrock/aws4_request, SignedHeaders=") || got.Header.Get("X-Amz-Security-Token") != "session-secret-12345" {
		t.Errorf("headers %v", got.Header)
	}
	server := llmtest.NewServer(llmtest.Script{Replies: []llmtest.Reply{{Fail: &llmtest.Failure{Status: 403, Message: "the token session-secret-12345 is expired"}}}})
	o.BaseURL = server.URL
	p := bedrock.New(o)
	t.Cleanup(func() { p.CloseIdleConnections(); server.Close() })
	if e := llmtest.Last(t, p, req); llm.Classify(e.Err) != llm.ClassAuth || strings.Contains(e.Err.Error(), "secret") {
		t.Errorf("%v (%s)", e.Err, llm.Classify(e.Err))
	}
	o.Credentials = func() (bedrock.Credentials, error) { return bedrock.Credentials{}, errors.New("none here") }
	if e := llmtest.Last(t, bedrock.New(o), req); llm.Classify(e.Err) != llm.ClassAuth || !strings.Contains(e.Err.Error(), "none here") {
		t.Errorf("%v (%s)", e.Err, llm.Classify(e.Err))
	}
}

// TestPlace: which host a model is asked at.
func TestPlace(t *testing.T) {
	t.Parallel()
	tests := []struct{ model, base, region, want string }{
		{"m", "", "", "bedrock-runtime.us-east-1.amazonaws.com"},
		{"m", "", "cn-north-1", "bedrock-runtime.cn-north-1.amazonaws.com.cn"},
		{"m", "https://bedrock-runtime.us-east-1.amazonaws.com", "ap-south-1", "bedrock-runtime.ap-south-1.amazonaws.com"},
		{"eu.m", "https://bedrock-runtime.eu-central-1.amazonaws.com", "us-west-2", "bedrock-runtime.eu-central-1.amazonaws.com"},
		{"eu.m", "https://bedrock-runtime.eu-central-1.amazonaws.com", "eu-west-1", "bedrock-runtime.eu-west-1.amazonaws.com"},
		{"arn:aws:bedrock:sa-east-1:1:inference-profile/x", "https://bedrock-runtime.us-east-1.amazonaws.com", "eu-west-1", "bedrock-runtime.sa-east-1.amazonaws.com"},
		{"m", "https://vpce.example", "eu-west-1", "vpce.example"},
	}
	for _, tt := range tests {
		host := make(chan string, 1)
		h := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			host <- r.URL.Host
			return nil, errors.New("seen")
		})}
		p := bedrock.New(bedrock.Options{Endpoint: llm.Endpoint{BaseURL: tt.base, Model: llm.Model{ID: tt.model}}, Region: tt.region, HTTPClient: h})
		llmtest.Last(t, p, llm.Request{Model: tt.model})
		if got := <-host; got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestChain(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, ".aws", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	find := func(env map[string]string) (bedrock.Credentials, string, error) {
		env["HOME"] = home
		c := bedrock.Chain{Getenv: func(k string) string { return env[k] }}
		found, err := c.Credentials()
		return found, c.Region(), err
	}
	if _, _, err := find(map[string]string{}); !errors.Is(err, bedrock.ErrNone) {
		t.Errorf("nothing: %v", err)
	}
	write("credentials", "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B=c\n[ work ]\naws_access_key_id=W\naws_secret_access_key=X\naws_session_token=Y\n")
	write("config", "[default]\nregion = eu-west-1\ns3 =\n  region = no\n[profile work]\nregion=us-west-2\n[profile sso]\nsso_session = corp\n")
	for name, tt := range map[string]struct {
		env    map[string]string
		want   bedrock.Credentials
		region string
		err    string
	}{
		"file":    {map[string]string{}, bedrock.Credentials{ID: "A", Secret: "B=c"}, "eu-west-1", ""},
		"profile": {map[string]string{"AWS_PROFILE": "work"}, bedrock.Credentials{ID: "W", Secret: "X", Session: "Y"}, "us-west-2", ""},
		"env":     {map[string]string{"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "F", "AWS_REGION": "r", "AWS_PROFILE": "work"}, bedrock.Credentials{ID: "E", Secret: "F"}, "r", ""},
		"sso":     {map[string]string{"AWS_PROFILE": "sso"}, bedrock.Credentials{}, "", "sso_session"},
		"missing": {map[string]string{"AWS_PROFILE": "nobody"}, bedrock.Credentials{}, "", "no profile \"nobody\""},
	} {
		got, region, err := find(tt.env)
		if got != tt.want || region != tt.region || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %+v %q, %v", name, got, region, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	llmtest.FuzzDialect(f, client,
		stream(delta(0, `{"text":"a"}`)+end), stream(delta(0, `{"reasoningContent":{"redactedContent":"YWI="}}`)+end),
		stream(`contentBlockStart {"start":{"toolUse":{}}}`+"\n"+delta(0, `{"toolUse":{"input":"{"}}`)+end), stream("!x null"), stream("messageStop []"), "\x00\x00\x00\x10",
	)
}

// FuzzEvents frames what the fuzzer makes, so that it gets past the checksums.
func FuzzEvents(f *testing.F) {
	f.Add(delta(0, `{"text":"a"}`) + end)
	f.Add("!throttlingException {}\ncontentBlockStart {\"contentBlockIndex\":-1,\"start\":{\"toolUse\":{}}}")
	f.Fuzz(func(t *testing.T, lines string) {
		e := llmtest.Last(t, client(llm.Endpoint{BaseURL: "http://x.test"}, llmtest.Answering(stream(lines))), llm.Request{})
		if _, err := json.Marshal(e.Message); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	var lines strings.Builder
	for i := range 1000 {
		lines.WriteString(delta(0, fmt.Sprintf(`{"text":"word %d "}`, i)))
	}
	llmtest.BenchmarkDialect(b, client, stream(lines.String()+end))
}
