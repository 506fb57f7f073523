package acp_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"go.uber.org/goleak"

	"muntin/agent"
	"muntin/agent/acp"
	"muntin/agent/extension"
	"muntin/agent/extension/examples"
	"muntin/agent/harness"
	"muntin/agent/llm/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const talk = `version: 1
rules:
  - match: 'work'
    steps:
      - tools: [{name: bash, arguments: {command: "echo made"}}]
      - text: it is done
  - match: 'wait'
    steps:
      - tools: [{name: bash, arguments: {command: "sleep 100"}}]
      - text: never
  - match: 'bad'
    steps: [{error: {status: 401, message: no such key}}]
steps: [{text: hello there}]
`

// editor is the client's side.
type editor struct {
	sdk.Client // what is not asked of it panics

	mu     sync.Mutex // guards all below
	text   string
	calls  []string
	answer string
	begun  chan struct{} // gets one for each tool call
}

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := n.Update
	switch {
	case u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil:
		e.text += u.AgentMessageChunk.Content.Text.Text
	case u.ToolCall != nil:
		e.calls = append(e.calls, u.ToolCall.Title+" "+string(u.ToolCall.Kind))
		e.begun <- struct{}{}
	case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
		line := string(*u.ToolCallUpdate.Status)
		for _, c := range u.ToolCallUpdate.Content {
			if c.Content != nil && c.Content.Content.Text != nil {
				line += " " + strings.TrimSpace(c.Content.Content.Text.Text)
			}
		}
		e.calls = append(e.calls, line)
	}
	return nil
}

func (e *editor) RequestPermission(_ context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text += "[" + *p.ToolCall.Title + "]"
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(e.answer))}, nil
}

func (e *editor) seen() (string, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text, strings.Join(e.calls, "; ")
}

// connect serves an agent to an editor, with one extension, and opens a session.
func connect(t *testing.T) (*editor, *sdk.ClientSideConnection, sdk.SessionId) {
	t.Helper()
	script, err := scripted.Parse("talk", []byte(talk))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "hello")
	if err := examples.Write(dir, "hello", "hello-sh"); err != nil {
		t.Fatal(err)
	}
	toAgent, fromEditor := io.Pipe()
	toEditor, fromAgent := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- acp.Serve(ctx, acp.Options{In: toAgent, Out: fromAgent, Version: "test", Open: func(ctx context.Context, dir2 string, onEvent func(agent.Event), ui harness.UI) (*harness.Harness, error) {
			all, _ := extension.Load(extension.Place{Dir: dir, One: true})
			host, err := extension.New(ctx, extension.Options{Extensions: all, State: t.TempDir(), Env: os.Environ()})
			if err != nil {
				return nil, err
			}
			return harness.Open(ctx, harness.Options{
				Provider: scripted.New(script, scripted.Options{}), Model: "p/m", Dir: dir2, Extensions: host, UI: ui, OnEvent: onEvent, NoContext: true,
			})
		}})
	}()
	e := &editor{begun: make(chan struct{}, 16)}
	conn := sdk.NewClientSideConnection(e, fromEditor, toEditor)
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_, _, _, _ = toAgent.Close(), fromEditor.Close(), toEditor.Close(), fromAgent.Close()
	})
	hello, err := conn.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err != nil || hello.ProtocolVersion != 1 || !hello.AgentCapabilities.PromptCapabilities.Image {
		t.Fatalf("%+v, %v", hello, err)
	}
	s, err := conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: t.TempDir(), McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	return e, conn, s.SessionId
}

// shown waits until the editor was shown a text: updates may be handled after the
// answer to the prompt.
func (e *editor) shown(t *testing.T, want string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(10 * time.Second)
	for {
		text, calls := e.seen()
		if strings.Contains(text+"|"+calls, want) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%q was not shown, but %q and %q", want, text, calls)
		}
	}
}

func TestAnEditorDrivesTheAgent(t *testing.T) {
	t.Parallel()
	e, conn, id := connect(t)
	prompt := func(text string) (sdk.PromptResponse, error) {
		return conn.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	}
	if r, err := prompt("work"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
		t.Fatalf("%+v, %v", r, err)
	}
	e.shown(t, "it is done")
	e.shown(t, "bash execute; completed made")
	if _, err := prompt("bad"); err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("%v", err)
	}
	e.mu.Lock()
	e.answer = "yes"
	e.mu.Unlock()
	if r, err := prompt("/hello ask"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
		t.Errorf("%+v, %v", r, err)
	}
	e.shown(t, "[Say hello?]yes")
	<-e.begun
	go func() {
		<-e.begun
		_ = conn.Cancel(t.Context(), sdk.CancelNotification{SessionId: id})
	}()
	if r, err := prompt("wait"); err != nil || r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := conn.Prompt(t.Context(), sdk.PromptRequest{SessionId: "nosuch", Prompt: []sdk.ContentBlock{sdk.TextBlock("x")}}); err == nil {
		t.Error("a session that there is not")
	}
	if _, err := conn.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
		t.Error(err)
	}
}
