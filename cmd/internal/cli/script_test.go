package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
	"muntin/cmd/internal/cli"
)

// TestMain lets the test binary be muntin itself: the scripts, and the panes
// that they start, run it under that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"muntin": func() { os.Exit(cli.Main()) },
	})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: setup,
		// Its own folder stays behind when only some scripts are run.
		WorkdirRoot: t.TempDir(),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"capture": capture,
			"waitfor": waitFor,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// setup gives a script a home of its own, a git identity, a private tmux
// server, and a model on loopback. Socket paths must be short, whatever
// TMPDIR is.
func setup(env *testscript.Env) error {
	short, err := os.MkdirTemp("/tmp", "mt")
	if err != nil {
		return err
	}
	socket := filepath.Join(short, "tmux.sock")
	env.Defer(func() {
		// Nothing answers when the script has cleaned up after itself.
		_ = exec.Command("tmux", "-S", socket, "kill-server").Run()
		if err := os.RemoveAll(short); err != nil {
			env.T().Log(err)
		}
	})
	home := filepath.Join(env.WorkDir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	gitconfig := "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitconfig), 0o600); err != nil {
		return err
	}
	docs, err := filepath.Abs("../../../docs")
	if err != nil {
		return err
	}
	server := llmtest.NewServer(modelScript())
	env.Defer(server.Close)
	for key, value := range map[string]string{
		"HOME":                home,
		"XDG_STATE_HOME":      filepath.Join(env.WorkDir, "state"),
		"XDG_RUNTIME_DIR":     short,
		"MUNTIN_TMUX_SOCKET":  socket,
		"MUNTIN_SCRIPT_SPEED": "0",
		"OPENAI_BASE_URL":     server.URL,
		"OPENAI_API_KEY":      "sk-loopback-0123456789",
		"MUNTIN_BIN":          filepath.Join(filepath.SplitList(env.Getenv("PATH"))[0], "muntin"),
		"DOCS":                docs,
		"LANG":                "C.UTF-8",
		"LC_ALL":              "C.UTF-8",
		"TERM":                "xterm-256color",
		"SHELL":               "/bin/sh",
	} {
		env.Setenv(key, value)
	}
	return nil
}

// modelScript answers as a model that first writes a file and then says so.
func modelScript() llmtest.Script {
	return llmtest.Script{Choose: func(_ int, r llmtest.Request) llmtest.Reply {
		var last llmtest.Message
		if len(r.Messages) > 0 {
			last = r.Messages[len(r.Messages)-1]
		}
		for _, result := range []string{`"tool_result"`, `"function_call_output"`, `"functionResponse"`} { // of the other APIs
			if strings.Contains(string(r.Body), result) {
				last.Role = "tool"
			}
		}
		switch {
		case strings.Contains(last.Text(), "overload me"):
			return llmtest.Reply{Fail: &llmtest.Failure{Status: 401, Message: "bad key"}}
		case last.Role == "tool":
			return llmtest.Reply{Text: "It is written.", Usage: &llm.Usage{Input: 20, Output: 5, Total: 25}}
		}
		return llmtest.Reply{
			Text:  "I write it.",
			Tools: []llmtest.ToolCall{{Name: "write", Arguments: `{"path":"hello.txt","content":"hello\n"}`}},
			Usage: &llm.Usage{Input: 10, Output: 5, Total: 15},
		}
	}}
}

// capture writes a pane's screen to standard output: capture SESSION-PART PANE-TITLE.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture name-of-pane")
	}
	out, err := screenOf(ts.Getenv("MUNTIN_TMUX_SOCKET"), args[0])
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), out)
}

func screenOf(socket, pane string) (string, error) {
	list, err := exec.Command("tmux", "-u", "-S", socket, "list-panes", "-a", "-F", "#{pane_id} #{@muntin_name}").Output()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(list)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == pane {
			out, err := exec.Command("tmux", "-u", "-S", socket, "capture-pane", "-p", "-t", id).Output()
			return string(out), err
		}
	}
	return "", fmt.Errorf("no pane %s in\n%s", pane, list)
}

// waitFor runs a command until its output holds a text: waitfor TEXT COMMAND….
// It is for what no muntin command can wait for.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitfor text command...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var out []byte
	for {
		cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `exec "$@"`, "sh"}, args[1:]...)...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
		out, _ = cmd.CombinedOutput()
		if bytes.Contains(out, []byte(args[0])) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("%q did not appear; the last output was\n%s", args[0], out)
		}
	}
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, key := range []string{
		"PATH", "HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "MUNTIN_TMUX_SOCKET", "LANG", "LC_ALL", "TERM",
	} {
		env = append(env, key+"="+ts.Getenv(key))
	}
	return env
}
