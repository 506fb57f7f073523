package harness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
)

const crashEnv = "MUNTIN_HARNESS_CRASH"

// busy is an agent that runs commands, each of which leaves a file that bears the
// id of its call, until it is killed.
func busy(dir string) error {
	calls := 0
	w := &window{limit: 1 << 30}
	w.reply = func(string) llm.Message {
		m := reply("on")
		for range 2 {
			calls++
			id := fmt.Sprintf("c%d-%d", os.Getpid(), calls)
			args := fmt.Sprintf(`{"command":"touch ran-%s"}`, id)
			m.Content = append(m.Content, llm.Block{Type: llm.BlockToolCall, ID: id, Name: "bash", Arguments: []byte(args)})
		}
		m.StopReason = llm.StopToolUse
		return m
	}
	h, err := harness.Open(context.Background(), harness.Options{Provider: w, Model: "test/busy", Dir: dir, Session: filepath.Join(dir, "s.jsonl")})
	if err != nil {
		return err
	}
	_, err = h.Prompt(context.Background(), fmt.Sprint("go on ", os.Getpid()))
	return err
}

// Killed at any moment: what ran is in the session, and the next agent goes on
// with a conversation in which every call has its result.
func TestKilledAgent(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("MUNTIN_SOAK") != "" {
		rounds = 100
	}
	dir := t.TempDir()
	for range rounds {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), crashEnv+"="+dir)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		before := countRan(t, dir)
		await := time.After(20 * time.Second)
		tick := time.NewTicker(2 * time.Millisecond)
		for countRan(t, dir) == before {
			select {
			case <-tick.C:
			case <-await:
				t.Fatal("it ran nothing")
			}
		}
		tick.Stop()
		<-time.After(time.Duration(rand.IntN(60)) * time.Millisecond)
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed
		checkKilled(t, dir)
	}
	w := &window{limit: 1 << 30, reply: func(string) llm.Message { return reply("ended") }}
	h := open(t, func(o *harness.Options) {
		o.Provider, o.Model, o.Dir, o.Session = w, "test/busy", dir, filepath.Join(dir, "s.jsonl")
	})
	prompt(t, h, "end it")
	if open := llm.Unanswered(h.Messages()); len(open) > 0 || len(h.Problems()) > 0 {
		t.Errorf("unanswered %v, problems %v", open, h.Problems())
	}
}

func countRan(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ran-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func checkKilled(t *testing.T, dir string) {
	t.Helper()
	s, err := session.Open(filepath.Join(dir, "s.jsonl"), session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	known := map[string]bool{}
	prompts := 0
	for _, m := range s.Messages() {
		if m.Role == llm.RoleUser {
			prompts++
		}
		for _, call := range m.ToolCalls() {
			known[call.ID] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "ran-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if id := strings.TrimPrefix(filepath.Base(f), "ran-"); !known[id] {
			t.Errorf("%s ran, and the session does not know of it", id)
		}
	}
	if prompts == 0 {
		t.Error("the prompt is lost")
	}
}
