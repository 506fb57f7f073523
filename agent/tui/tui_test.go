package tui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTurn(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.notices = []string{"session: line 3\x1b[2J is bad"} })
	u.typeLine("work")
	u.see("✓ ")
	u.in.Close()
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.see(
		"worker  scripted/test  /p\n",
		"session: line 3 is bad\n",
		"\n❯ work\n",
		"\nlet me see\n",
		"\nI will write\nit.\n",
		"\n● write  lib/x.sh (2 lines)\n",
		"● bash  seq 1 9 …\n",
		"  … 3 more lines\n  4\n  5\n  6\n  7\n  8\n  9\n",
		"● edit  lib/x.sh\n",
		"● bash  printf '",
	)
	u.see("  -2 echo 2\n  +2 echo two\n")
	u.see("  red\n  Command exited with code 3\n")
	u.see("\nAll done.\n✓ ", " · 2.1k in · ", " out\n")
	if strings.Contains(u.out.raw(), "\x1b[2J") || strings.Contains(u.out.raw(), "7501") {
		t.Errorf("foreign escapes, or a status where no terminal is: %q", u.out.raw())
	}
	if strings.Contains(u.out.plain(), "\n\n\n") {
		t.Errorf("two empty lines:\n%s", u.out.plain())
	}
	for line := range strings.SplitSeq(u.out.plain(), "\n") {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("a line of %d cells: %q", n, line)
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.opts.Terminal = true; s.opts.First = "fail" })
	u.see("❯ fail\n", "✗ ", "no such key")
	u.typeLine("hello")
	u.see("hello yourself", "✓ ")
	u.in.Close()
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, part := range strings.Split(u.out.raw(), "\x1b]7501;state=")[1:] {
		st, _, _ := strings.Cut(part, ":app=muntin")
		states = append(states, st)
	}
	if got := strings.Join(states, " "); got != "idle working error working done" {
		t.Errorf("states %s", got)
	}
}

// With a terminal that echoes, a typed prompt is not shown a second time, and
// nothing is written while nothing happens.
func TestEcho(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.opts.Terminal, s.opts.Echo = true, true })
	u.see("❯ ")
	u.typeLine("hello")
	u.see("hello yourself\n", "✓ ", "❯ ")
	if n := strings.Count(u.out.plain(), "❯"); n != 2 {
		t.Errorf("%d marks:\n%s", n, u.out.plain())
	}
	before := u.out.raw()
	u.typeLine("   ")
	u.see("❯ ", "❯ ", "❯ ")
	if extra := strings.TrimPrefix(u.out.raw(), before); strings.Count(extra, "❯") != 1 || strings.Count(extra, "\n") > 1 {
		t.Errorf("an empty line gave %q", extra)
	}
}

func TestSteerAbortQuit(t *testing.T) {
	t.Parallel()
	u := run(t, func(*setup) {})
	u.typeLine("wait")
	u.until("the command's start", u.exists("up"))
	u.typeLine("steer it")
	u.see("❯ steer it  (steering)")
	u.make("go")
	u.see("steered now", "✓ ")

	if err := os.Remove(filepath.Join(u.dir, "go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(u.dir, "up")); err != nil {
		t.Fatal(err)
	}
	u.typeLine("wait again")
	u.until("the command's start", u.exists("up"))
	u.stops <- os.Interrupt
	u.see("■ aborted · ")
	u.stops <- os.Interrupt
	u.see("Press Ctrl-C again")
	u.stops <- os.Interrupt
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.link = newLink() })
	l := u.link
	l.messages <- Incoming{ID: "a1", Kind: KindAbort}
	l.messages <- Incoming{ID: "x1", Kind: "dance", Text: "x"}
	l.messages <- Incoming{ID: "e1", Kind: KindPrompt, Text: " \n"}
	l.messages <- Incoming{ID: "p1", Kind: KindPrompt, Text: "wait", From: "orchestrator\x1b[2J"}
	u.until("the command's start", u.exists("up"))
	u.see("❯ wait  (orchestrator)\n", "I wait.", "● bash  echo up")
	l.messages <- Incoming{ID: "f1", Kind: KindFollowUp, Text: "hello", From: "planner"}
	l.messages <- Incoming{ID: "s1", Kind: KindSteer, Text: "steer it", From: "planner"}
	u.see("message from planner waits", "❯ steer it  (planner, steering)")
	u.make("go")
	u.see("steered now", "✓ ", "❯ hello  (planner)", "hello yourself", "✓ ")
	u.told(
		"ready",
		"refused a1: no turn is running",
		`refused x1: unknown kind of message "dance"`,
		"refused e1: the message is empty",
		"accepted p1", "start p1",
		"tool bash echo up > up; while ! test -e go; do sleep 0.02; done ",
		"accepted s1",
		"end p1 done",
		"accepted f1", "start f1", "end f1 done",
	)
	if o := l.outcomes[1]; o.Text != "hello yourself" || o.Entry == "" || o.Usage.Output == 0 {
		t.Errorf("got %+v", o)
	}
	l.messages <- Incoming{ID: "p2", Kind: KindPrompt, Text: "fail"}
	u.see("no such key")
	l.messages <- Incoming{ID: "s2", Kind: KindSteer, Text: "hello"} // nothing runs: it begins a turn
	u.until("the end of s2", func() bool {
		return strings.HasSuffix(l.all(), "accepted p2\nstart p2\nend p2 failed\naccepted s2\nstart s2\nend s2 done")
	})
	u.typeLine("hello") // a person's turn has no id
	u.until("the last turn's end", func() bool { return strings.HasSuffix(l.all(), "end s2 done\nstart \nend  done") })
	close(l.messages)
	u.in.Close()
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
}

func TestLinkAbort(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.link = newLink(); s.opts.In = nil })
	u.link.messages <- Incoming{ID: "p1", Kind: KindPrompt, Text: "wait"}
	u.until("the command's start", u.exists("up"))
	u.link.messages <- Incoming{ID: "a1", Kind: KindAbort, From: "orchestrator"}
	u.see("abort asked for by orchestrator", "■ aborted")
	u.told("ready", "accepted p1", "start p1", "accepted a1",
		"tool bash echo up > up; while ! test -e go; do sleep 0.02; done failed", "end p1 aborted")
}

// A steer that comes while the turn is being aborted is not lost: it begins the
// next turn.
func TestLateSteerBeginsATurn(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.link = newLink() })
	u.link.messages <- Incoming{ID: "p1", Kind: KindPrompt, Text: "wait"}
	u.until("the command's start", u.exists("up"))
	u.link.messages <- Incoming{ID: "s1", Kind: KindSteer, Text: "steer it"}
	u.see("steer it")
	u.link.messages <- Incoming{ID: "a1", Kind: KindAbort}
	u.see("■ aborted", "steered now", "✓ ")
	if got := u.link.all(); !strings.HasSuffix(got, "end p1 aborted\naccepted s1\nstart s1\nend s1 done") {
		u.until("the end of s1", func() bool {
			return strings.HasSuffix(u.link.all(), "end p1 aborted\naccepted s1\nstart s1\nend s1 done")
		})
	}
}

// A message that was taken before a restart is not taken again: its turn goes on.
func TestMessageIsTakenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte(`{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z",`+
		`"message":{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":1},"muntin":{"id":"p1"}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	u := run(t, func(s *setup) { s.link, s.session = newLink(), path })
	u.link.messages <- Incoming{ID: "p1", Kind: KindPrompt, Text: "hello"}
	u.told("ready", "accepted p1", "start p1", "end p1 done")
	u.link.messages <- Incoming{ID: "p1", Kind: KindPrompt, Text: "hello"} // and now it is answered
	u.told("ready", "accepted p1", "start p1", "end p1 done", "accepted p1", "start p1", "end p1 done")
	if n := len(u.agent.Messages()); n != 2 {
		t.Errorf("%d messages", n)
	}
}

func TestEndInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.link = newLink() })
	u.typeLine("wait")
	u.until("the command's start", u.exists("up"))
	u.in.Close() // the turn may end, though
	u.make("go")
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.see("waited", "✓ ")
}

func TestBrokenTerminal(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.opts.Out = brokenWriter{} })
	if err := u.ended(); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestSummary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, args, want string }{
		{"bash", `{"command":"ls\n"}`, "ls"},
		{"bash", `{"command":"ls\ncd"}`, "ls …"},
		{"bash", `{"command":"a\tb\u001b[2Jc\u202e"}`, "a bc\uFFFD"},
		{"read", `{"path":"a\nb"}`, "a b"},
		{"write", `{"path":"x","content":"1"}`, "x (1 line)"},
		{"write", `{"path":"x","content":""}`, "x (0 lines)"},
		{"other", `{"k":[1]}`, `{"k":[1]}`},
		{"bash", `{"command":5}`, `{"command":5}`},
		{"bash", ``, ``},
	} {
		if got := summary(c.tool, []byte(c.args)); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.args, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 340: "340", 1234: "1.2k", 3_400_000: "3.4M"} {
		if got := count(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
