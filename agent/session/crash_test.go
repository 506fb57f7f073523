package session

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/llm"
)

const crashEnv = "MUNTIN_SESSION_CRASH"

// TestMain lets the test binary play a process that fills a session until it is
// killed: it says the id of each entry when Append has returned.
func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		if err := fill(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func fill(path string) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	big := llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: strings.Repeat("long ", 20_000)}}}
	var first string
	for i := 0; ; i++ {
		m := llm.UserText(strings.Repeat("x", i%5000), 1)
		switch {
		case i%7 == 3:
			m = answer("a")
		case i%31 == 30:
			m = big
		}
		id, err := s.AppendMessage(m, nil)
		if err != nil {
			return err
		}
		if first == "" {
			first = id
		}
		fmt.Println(id)
		if i%13 == 12 {
			if err := s.Move(first); err != nil {
				return err
			}
		}
	}
}

// Killed at any moment, the session opens again with every entry that its
// Append had returned for, and can be gone on with.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()
	rounds := 6
	if os.Getenv("MUNTIN_SOAK") != "" {
		rounds = 300
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	said := map[string]bool{}
	for round := range rounds {
		for _, id := range killAfter(t, path, time.Duration(20+rand.IntN(120))*time.Millisecond) {
			said[id] = true
		}
		s := open(t, path)
		for id := range said {
			if _, ok := s.tree.find(id); !ok {
				t.Fatalf("round %d: entry %s is lost", round, id)
			}
		}
		for i := range s.tree.nodes {
			if _, ok := s.entry(int32(i)); !ok {
				t.Fatalf("round %d: %v", round, s.Problems())
			}
		}
		s.Messages()
		say(t, s, user("and on"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) < rounds {
		t.Errorf("only %d entries in %d rounds: it shows nothing", len(said), rounds)
	}
}

// killAfter runs the writer for so long from its first entry on, and gives the
// ids that it said.
func killAfter(t *testing.T, path string, d time.Duration) (ids []string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashEnv+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if len(ids) == 0 {
			timer := time.AfterFunc(d, func() { _ = child.Process.Kill() })
			defer timer.Stop()
		}
		ids = append(ids, lines.Text())
	}
	_ = child.Wait() // it was killed
	if len(ids) == 0 {
		t.Fatal("it said nothing")
	}
	return ids
}

// A file that ends anywhere, as after a power loss, costs its last line at most.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "s.jsonl"))
	say(t, s, user("one"))
	say(t, s, llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopToolUse, Content: []llm.Block{{Type: llm.BlockToolCall, ID: "c", Name: "bash", Arguments: json.RawMessage(`{"command":"ls \"x\""}`)}}})
	say(t, s, user("zwei"))
	s.Close()
	whole := bytesOf(t, s.Path())
	path := filepath.Join(dir, "cut.jsonl")
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(whole[:n]), "\n")
		if r, err := Open(path, Options{ReadOnly: true}); err == nil {
			if got := r.tree.len(); got < lines-1 || got > lines {
				t.Fatalf("cut at %d: %d entries of %d lines to read", n, got, lines)
			}
			r.Close()
		} else if lines > 0 {
			t.Fatalf("at %d: %v", n, err)
		}
		if n%7 != 0 && n < len(whole)-3 {
			continue
		}
		c, err := Open(path, Options{Now: fixedNow})
		if err != nil {
			t.Fatalf("at %d: %v", n, err)
		}
		if got := c.tree.len(); got != max(lines-1, 0) && (n >= len(whole) || whole[n] != '\n' || got != lines) {
			t.Fatalf("cut at %d: %d entries of %d lines", n, got, lines)
		}
		say(t, c, user("on"))
		c.Close()
		_ = os.Remove(path + ".torn") // of this cut, if there was one
	}
}
