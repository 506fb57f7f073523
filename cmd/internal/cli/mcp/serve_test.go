package mcp_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"muntin/cmd/internal/cli/app"
	own "muntin/cmd/internal/cli/mcp"
	"muntin/internal/state"
	"muntin/internal/term"
)

// client connects the SDK's client to our server, which works in a new repository.
func client(t *testing.T, environ ...string) *mcp.ClientSession {
	t.Helper()
	repo, home := t.TempDir(), t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	env := append([]string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_RUNTIME_DIR=" + home, "PATH=" + os.Getenv("PATH"), "MUNTIN_TMUX_SOCKET=" + filepath.Join(home, "t")}, environ...)
	a := &app.App{Environ: env, Dir: repo, Now: time.Now, Version: "test", Theme: term.DefaultTheme(), Streams: term.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}}
	var err error
	if a.Layout, err = state.NewLayout(a.Getenv); err != nil {
		t.Fatal(err)
	}
	far, near := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = own.NewServer(a).Run(ctx, far) }) // ends with the context
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		cancel()
		done.Wait()
	})
	return session
}

func call(t *testing.T, s *mcp.ClientSession, name string, args map[string]any) (text string, isError bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, res.IsError
}

func TestTheBoardOverMCP(t *testing.T) {
	t.Parallel()
	s := client(t)
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "checkpoints send status todo_add todo_claim todo_done todo_ls" {
		t.Error(got)
	}
	if text, bad := call(t, s, "todo_ls", nil); !bad || !strings.Contains(text, "try: make one with") {
		t.Errorf("no board: %v, %s", bad, text)
	}
	text, bad := call(t, s, "todo_add", map[string]any{"text": "--write the docs"})
	if bad || !strings.Contains(text, `"--write the docs"`) {
		t.Fatalf("%v, %s", bad, text)
	}
	_, id, _ := strings.Cut(text, `"id": "`)
	id, _, _ = strings.Cut(id, `"`)
	if text, bad := call(t, s, "todo_claim", map[string]any{"task": id, "as": "ada"}); bad || !strings.Contains(text, `"ada"`) {
		t.Errorf("%v, %s", bad, text)
	}
	if text, bad := call(t, s, "todo_done", map[string]any{"task": id}); bad || !strings.Contains(text, `"done"`) {
		t.Errorf("%v, %s", bad, text)
	}
	if text, bad := call(t, s, "todo_ls", nil); bad || !strings.Contains(text, `"done"`) {
		t.Errorf("%v, %s", bad, text)
	}
	if text, bad := call(t, s, "todo_done", map[string]any{"task": "nosuch"}); !bad || !strings.Contains(text, "nosuch") {
		t.Errorf("%v, %s", bad, text)
	}
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "todo_add", Arguments: map[string]any{"words": 1}}); err == nil {
		if text, bad := call(t, s, "todo_add", map[string]any{"words": 1}); !bad {
			t.Errorf("wrong arguments were taken: %s", text)
		}
	}
}

func TestAgentsAndCheckpointsOverMCP(t *testing.T) {
	t.Parallel()
	s := client(t)
	if text, bad := call(t, s, "status", nil); bad || !strings.HasPrefix(strings.TrimSpace(text), "[") {
		t.Errorf("%v, %s", bad, text)
	}
	if text, bad := call(t, s, "send", map[string]any{"agent": "ada", "text": "hello"}); !bad || text == "" {
		t.Errorf("%v, %s", bad, text)
	}
	if text, bad := call(t, s, "checkpoints", nil); bad || !strings.HasPrefix(strings.TrimSpace(text), "[") {
		t.Errorf("%v, %s", bad, text)
	}
}
