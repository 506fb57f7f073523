package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"muntin/agent"
	ours "muntin/agent/mcp"
)

// TestMain lets the test binary be a server on standard input and output.
func TestMain(m *testing.M) {
	if os.Getenv("MUNTIN_TEST_MCP") != "" {
		if f, err := os.OpenFile(os.Getenv("MUNTIN_TEST_COUNT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintln(f, "started")
			f.Close()
		}
		if err := server().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type params struct {
	Text string `json:"text"`
}

func server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	tool := func(name string, do func(ctx context.Context, p params) (*mcp.CallToolResult, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: name + " it"}, func(ctx context.Context, _ *mcp.CallToolRequest, p params) (*mcp.CallToolResult, any, error) {
			r, err := do(ctx, p)
			return r, nil, err
		})
	}
	tool("echo", func(_ context.Context, p params) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: p.Text}, &mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
			&mcp.ResourceLink{Name: "doc", URI: "file:///x"},
		}}, nil
	})
	tool("fail", func(context.Context, params) (*mcp.CallToolResult, error) { return nil, fmt.Errorf("it cannot") })
	tool("wait", func(ctx context.Context, _ params) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	tool("die", func(context.Context, params) (*mcp.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	return s
}

type rig struct {
	*ours.Source
	count string
}

func (r rig) starts() int {
	b, _ := os.ReadFile(r.count) // none: not started
	return strings.Count(string(b), "started")
}

// stdio opens the test binary as a server; what is known of it is kept in state.
func stdio(t *testing.T, state string, change func(*ours.Server)) rig {
	t.Helper()
	count := filepath.Join(state, "count")
	conf := ours.Server{Command: os.Args[0], Env: map[string]string{"MUNTIN_TEST_MCP": "1", "MUNTIN_TEST_COUNT": count}}
	if change != nil {
		change(&conf)
	}
	s, problems := ours.Open(t.Context(), ours.Options{Config: ours.Config{"far": conf}, Dir: t.TempDir(), Env: os.Environ(), State: state})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	t.Cleanup(func() { _ = s.Close() })
	return rig{s, count}
}

func (r rig) call(ctx context.Context, t *testing.T, name, text string) (agent.ToolResult, error) {
	t.Helper()
	for _, tool := range r.Tools() {
		if tool.Spec().Name == "mcp__far__"+name {
			args, err := json.Marshal(params{text})
			if err != nil {
				t.Fatal(err)
			}
			return tool.Run(ctx, args, nil)
		}
	}
	t.Fatalf("there is no tool %s", name)
	return agent.ToolResult{}, nil
}

func works(t *testing.T, r rig) {
	t.Helper()
	res, err := r.call(t.Context(), t, "echo", "grüß dich")
	if err != nil || res.IsError || len(res.Content) != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Content[0].Text != "grüß dich" || res.Content[1].Data != "cG5n" || res.Content[2].Text != "[doc: file:///x]" {
		t.Errorf("%+v", res.Content)
	}
	if res, err := r.call(t.Context(), t, "fail", ""); err != nil || !res.IsError || !strings.Contains(res.Content[0].Text, "it cannot") {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestAServerOnStandardInput(t *testing.T) {
	t.Parallel()
	r := stdio(t, t.TempDir(), nil)
	if len(r.Tools()) != 4 || !strings.Contains(string(r.Tools()[1].Spec().Parameters), `"text"`) {
		t.Fatalf("%+v", r.Tools())
	}
	works(t, r)
	if r.starts() != 1 {
		t.Errorf("%d starts", r.starts())
	}
}

func TestAKnownServerIsStartedByItsFirstCall(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	conf := ours.Server{Command: os.Args[0], Env: map[string]string{"MUNTIN_TEST_MCP": "1", "MUNTIN_TEST_COUNT": filepath.Join(state, "count")}}
	again := func(c ours.Server) rig {
		s, problems := ours.Open(t.Context(), ours.Options{Config: ours.Config{"far": c}, Dir: dir, Env: os.Environ(), State: state})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		t.Cleanup(func() { _ = s.Close() })
		return rig{s, filepath.Join(state, "count")}
	}
	if err := again(conf).Close(); err != nil {
		t.Fatal(err)
	}
	r := again(conf)
	if len(r.Tools()) != 4 || r.starts() != 1 {
		t.Fatalf("%d tools, %d starts", len(r.Tools()), r.starts())
	}
	works(t, r)
	if r.starts() != 2 {
		t.Errorf("%d starts", r.starts())
	}
	conf.Tools = []string{"e*"}
	if r := again(conf); len(r.Tools()) != 1 || r.starts() != 3 { // it is another configuration
		t.Errorf("%d tools, %d starts", len(r.Tools()), r.starts())
	}
}

func TestAServerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	r := stdio(t, t.TempDir(), nil)
	if _, err := r.call(t.Context(), t, "die", ""); err == nil || !strings.Contains(err.Error(), "MCP server far") {
		t.Error(err)
	}
	works(t, r)
	if r.starts() != 2 {
		t.Errorf("%d starts", r.starts())
	}
}

func TestACallIsBounded(t *testing.T) {
	t.Parallel()
	r := stdio(t, t.TempDir(), func(s *ours.Server) { s.Timeout = 200 })
	if _, err := r.call(t.Context(), t, "wait", ""); err == nil || !strings.Contains(err.Error(), "no answer within 200ms") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := r.call(ctx, t, "wait", ""); err == nil || strings.Contains(err.Error(), "MCP") {
		t.Error(err)
	}
	works(t, r)
}

func TestStreamableHTTP(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 100)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server() }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		if r.Header.Get("Authorization") != "Bearer key" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	conf := ours.Server{URL: srv.URL, Headers: map[string]string{"Authorization": "Bearer key"}}
	s, problems := ours.Open(t.Context(), ours.Options{Config: ours.Config{"far": conf}, State: t.TempDir()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	works(t, rig{Source: s})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	conf.Headers = nil
	s, problems = ours.Open(t.Context(), ours.Options{Config: ours.Config{"far": conf}, State: t.TempDir()})
	if len(problems) != 1 || len(s.Tools()) != 0 {
		t.Errorf("%q", problems)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAServerThatCannotBeStartedIsNamed(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"/nowhere/at/all", "true"} {
		s, problems := ours.Open(t.Context(), ours.Options{Config: ours.Config{"bad": {Command: command}}, State: t.TempDir(), Dir: t.TempDir(), Env: os.Environ()})
		if len(problems) != 1 || !strings.HasPrefix(problems[0], "MCP server bad: ") {
			t.Errorf("%s: %q", command, problems)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string { return map[string]string{"KEY": "k"}[name] }
	c, err := ours.Parse([]byte(`{"mcpServers":{"a":{"command":"x","args":["${KEY}","${NONE:-d}"]},"b":{"type":"http","url":"https://h/$KEY","headers":{"A":"$KEY"}}},"other":1}`), getenv)
	if err != nil || c["a"].Args[0] != "k" || c["a"].Args[1] != "d" || c["b"].URL != "https://h/k" || c["b"].Headers["A"] != "k" {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		`{"mcpServers":{"a":{}}}`:                               "a command or a url",
		`{"mcpServers":{"a":{"command":"x","url":"http://y"}}}`: "a command or a url",
		`{"mcpServers":{"a":{"type":"sse","url":"http://y"}}}`:  `"sse" is not spoken`,
		`{"mcpServers":{"a":{"url":"ftp://y"}}}`:                "no http",
		`{"mcpServers":{"a":{"command":"x","tools":["[a"]}}}`:   "syntax error",
		`{"mcpServers":[]}`:                                     "", `{`: "",
	} {
		if _, err := ours.Parse([]byte(text), getenv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for file, text := range map[string]string{
		one: `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}`, two: `{"mcpServers":{"a":{"command":"z"},"b":{"disabled":true}}}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := ours.Load(getenv, one, filepath.Join(dir, "none"), two)
	if err != nil || len(all) != 1 || all["a"].Command != "z" {
		t.Errorf("%+v, %v", all, err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"$X${Y:-}${","args":["$"]}}}`))
	f.Add([]byte(`{"mcpServers":null}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = ours.Parse(data, func(string) string { return "" })
	})
}
