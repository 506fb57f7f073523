package extension_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/agent"
	"muntin/agent/extension"
	"muntin/agent/llm"
)

// board shows what extensions say, and hands it on.
type board struct {
	lines  chan string
	answer func(ctx context.Context) extension.Answer
}

func newBoard() *board { return &board{lines: make(chan string, 64)} }

func (b *board) Ask(ctx context.Context, q extension.Question) extension.Answer {
	b.lines <- "ask " + q.Extension + " " + q.Title
	if b.answer == nil {
		return extension.Answer{}
	}
	return b.answer(ctx)
}
func (b *board) Notify(n extension.Notice) { b.lines <- n.Extension + " " + n.Level + " " + n.Text }
func (b *board) Status(s extension.Status) { b.lines <- "status " + s.Extension + " " + s.Text }

// next waits for a line that holds a text.
func (b *board) next(t *testing.T, want string) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	var seen []string
	for {
		select {
		case line := <-b.lines:
			if seen = append(seen, line); strings.Contains(line, want) {
				return
			}
		case <-late.C:
			t.Fatalf("%q did not come, but %q", want, seen)
		}
	}
}

// ext is an extension that the test binary plays: the name, then its habits.
func ext(name, does string, gates ...extension.Gate) extension.Extension {
	return extension.Extension{Source: "test", Dir: os.TempDir(), Manifest: extension.Manifest{
		Protocol: 1, Name: name, Command: []string{"env", "MUNTIN_TEST_EXT=" + does + " count", "MUNTIN_TEST_TAG=<" + name + ">", os.Args[0]},
		Gates: gates, Tools: []extension.ToolDef{{Name: name + "_tool"}}, Commands: []extension.Command{{Name: name}},
		Events: []string{"agent_settled"},
	}}
}

type fixture struct {
	*extension.Host
	board *board
	state string
	sends chan extension.Sending
}

func open(t *testing.T, all ...extension.Extension) fixture {
	t.Helper()
	f := fixture{board: newBoard(), state: t.TempDir(), sends: make(chan extension.Sending, 8)}
	h, err := extension.New(t.Context(), extension.Options{
		Extensions: all, Dir: t.TempDir(), State: f.state, Env: append(os.Environ(), "MUNTIN_TEST_COUNT="+filepath.Join(f.state, "count")),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Host = h
	h.Attach(extension.Attachment{UI: f.board, Send: func(s extension.Sending) { f.sends <- s }})
	t.Cleanup(h.Close)
	return f
}

func (f fixture) starts() int {
	b, _ := os.ReadFile(filepath.Join(f.state, "count")) // none: not started
	return strings.Count(string(b), "started")
}

func on(names ...string) []extension.Gate {
	var all []extension.Gate
	for _, n := range names {
		all = append(all, extension.Gate{On: n})
	}
	return all
}

func bash() agent.ToolCall {
	return agent.ToolCall{ID: "1", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}
}

func TestNothingStartsBeforeItIsNeeded(t *testing.T) {
	t.Parallel()
	f := open(t, ext("one", "plain", extension.Gate{On: "tool_call", Tools: []string{"wri*"}}))
	f.Event(agent.Event{Type: agent.EventTurnStart})
	if v, err := f.BeforeTool(t.Context(), bash()); err != nil || v.Block {
		t.Errorf("%+v, %v", v, err)
	}
	if len(f.Tools()) != 1 || len(f.Commands()) != 1 || f.starts() != 0 {
		t.Errorf("%d starts", f.starts())
	}
	call := bash()
	call.Name = "write"
	for range 3 {
		if v, err := f.BeforeTool(t.Context(), call); err != nil || v.Block {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if f.starts() != 1 {
		t.Errorf("%d starts", f.starts())
	}
}

func TestGatesFailClosed(t *testing.T) {
	t.Parallel()
	for _, does := range []string{"crash", "fail", "nonsense", "hang", "no-start", "old", "hang stubborn"} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			gate := extension.Gate{On: "tool_call", Deadline: extension.Duration(300 * time.Millisecond)}
			e := ext("bad", does, gate)
			f := open(t, e)
			_, err := f.BeforeTool(t.Context(), bash())
			var closed *extension.GateError
			if !errors.As(err, &closed) || closed.Extension != "bad" {
				t.Fatalf("%v", err)
			}
			gate.Open = true
			e.Gates = []extension.Gate{gate}
			f = open(t, e)
			if v, err := f.BeforeTool(t.Context(), bash()); err != nil || v.Block {
				t.Errorf("open: %+v, %v", v, err)
			}
			f.board.next(t, "bad warning it did not decide")
		})
	}
}

func TestAnExtensionThatIsNeverReadyIsNamed(t *testing.T) {
	t.Parallel()
	e := ext("mute", "mute", on("input")...)
	e.Start = extension.Duration(200 * time.Millisecond)
	f := open(t, e)
	if _, _, err := f.Input(t.Context(), extension.Input{Text: "x"}); err == nil || !strings.Contains(err.Error(), "not ready within") {
		t.Error(err)
	}
	f.board.next(t, "mute error it was not ready")
}

func TestOneThatCrashesIsStartedAgainAndThenGivenUp(t *testing.T) {
	t.Parallel()
	f := open(t, ext("bad", "crash", on("tool_call")...))
	for i := range 4 {
		if _, err := f.BeforeTool(t.Context(), bash()); err == nil {
			t.Fatal("allowed")
		}
		if i < 2 {
			f.board.next(t, "bad error")
		}
	}
	f.board.next(t, "it was given up after 3 failures")
	if _, err := f.BeforeTool(t.Context(), bash()); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("why is not told: %v", err)
	}
	if f.starts() != 3 {
		t.Errorf("%d starts", f.starts())
	}
	if err := f.Reload([]extension.Extension{ext("good", "plain", on("tool_call")...)}); err != nil {
		t.Fatal(err)
	}
	if v, err := f.BeforeTool(t.Context(), bash()); err != nil || v.Block {
		t.Errorf("%+v, %v", v, err)
	}
	log, err := os.ReadFile(extension.LogFile(f.state, "bad"))
	if err != nil || strings.Count(string(log), "boom") != 3 {
		t.Errorf("%q, %v", log, err)
	}
}

func TestOneThatHangsIsEndedAndTheNextCallWorks(t *testing.T) {
	t.Parallel()
	f := open(t, ext("slow", "hang stubborn", extension.Gate{On: "tool_call", Deadline: extension.Duration(100 * time.Millisecond)}))
	begun := time.Now()
	if _, err := f.BeforeTool(t.Context(), bash()); err == nil {
		t.Error("allowed")
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the agent waited for %s", took)
	}
	f.board.next(t, "slow warning it did not answer tool_call within 100ms")
	f.board.next(t, "it hung")
	if text, err := runTool(t.Context(), t, f, nil); err != nil || text != "done" { // by a new program
		t.Errorf("%q, %v", text, err)
	}
	if f.starts() != 2 {
		t.Errorf("%d starts", f.starts())
	}
}

func runTool(ctx context.Context, t *testing.T, f fixture, update func(string)) (string, error) {
	t.Helper()
	res, err := f.Tools()[0].Run(ctx, json.RawMessage(`{}`), func(r agent.ToolResult) {
		if update != nil {
			update(r.Content[0].Text)
		}
	})
	if err != nil {
		return "", err
	}
	return res.Content[0].Text, nil
}

func TestAnAbortIsHeardAtOnce(t *testing.T) {
	t.Parallel()
	f := open(t, ext("slow", "hang", on("tool_call")...))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	if _, err := f.BeforeTool(ctx, bash()); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestTheDeadlineWaitsForTheUser(t *testing.T) {
	t.Parallel()
	f := open(t, ext("asks", "ask", extension.Gate{On: "tool_call", Deadline: extension.Duration(200 * time.Millisecond)}))
	f.board.answer = func(ctx context.Context) extension.Answer {
		select {
		case <-time.After(600 * time.Millisecond):
		case <-ctx.Done():
		}
		return extension.Answer{Answered: true}
	}
	if _, err := f.BeforeTool(t.Context(), bash()); err != nil {
		t.Error(err)
	}
	f.board.next(t, "ask asks Sure?")
}

func TestGatesChangeWhatTheyMayInTheirOrder(t *testing.T) {
	t.Parallel()
	gates := on("input", "before_start", "context", "request", "tool_call", "tool_result", "turn", "compaction", "session_switch")
	f := open(t, ext("a", "change", gates...), ext("b", "change", gates...))
	ctx := t.Context()
	if text, handled, err := f.Input(ctx, extension.Input{Text: "x"}); err != nil || handled || text != "x<a><b>" {
		t.Errorf("%q, %v", text, err)
	}
	if text, handled, err := f.Input(ctx, extension.Input{Text: "swallow"}); err != nil || !handled || text != "swallowed" {
		t.Errorf("%q, %v, %v", text, handled, err)
	}
	if system, added, err := f.BeforeStart(ctx, extension.Start{System: "s"}); err != nil || system != "system<b>" || added != "\n\n<a>\n\n<b>" {
		t.Errorf("%q, %q, %v", system, added, err)
	}
	if ms, err := f.Context(ctx, nil); err != nil || len(ms) != 1 || ms[0].Text() != "all is new" {
		t.Errorf("%v, %v", ms, err)
	}
	req, err := f.Request(ctx, llm.Request{Tools: []llm.Tool{{Name: "read"}, {Name: "bash"}}})
	if err != nil || len(req.Tools) != 1 || req.MaxTokens != 7 || req.Thinking != llm.LevelLow {
		t.Errorf("%+v, %v", req, err)
	}
	if v, err := f.BeforeTool(ctx, bash()); err != nil || string(v.Args) != `{"command":"<b>"}` {
		t.Errorf("%s, %v", v.Args, err)
	}
	if r, err := f.AfterTool(ctx, bash(), agent.TextResult("secret")); err != nil || !r.IsError || r.Content[0].Text != "redacted" {
		t.Errorf("%+v, %v", r, err)
	}
	if a, err := f.FinishTurn(ctx, agent.Turn{}); err != nil || a != agent.ActionEnd {
		t.Errorf("%v, %v", a, err)
	}
	if c, err := f.Compaction(ctx, extension.Compaction{}, func() []llm.Message { return nil }); err != nil || c.Summary != "mine" {
		t.Errorf("%+v, %v", c, err)
	}
	var refused *extension.RefusedError
	if err := f.Switch(ctx, extension.Switch{Reason: "new"}); !errors.As(err, &refused) || refused.Extension != "a" || refused.Reason != "stay" {
		t.Error(err)
	}
	if c, known, err := f.Command(ctx, "/b some text"); err != nil || !known || c.Prompt != "some text" || c.Text != "b was called" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, known, err := f.Command(ctx, "/nobody"); known || err != nil {
		t.Error(known, err)
	}
	if err := f.UserBash(ctx, extension.UserBash{}); err != nil {
		t.Error(err)
	}
}

func TestTheFirstThatBlocksDecides(t *testing.T) {
	t.Parallel()
	f := open(t, ext("no", "block", on("tool_call")...), ext("later", "crash", on("tool_call")...))
	v, err := f.BeforeTool(t.Context(), bash())
	if err != nil || !v.Block || !strings.Contains(v.Reason, "extension no: no ") {
		t.Errorf("%+v, %v", v, err)
	}
	if f.starts() != 1 {
		t.Errorf("%d starts", f.starts())
	}
}

func TestToolsStreamAndRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	f := open(t, ext("a", "plain"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var parts []string
			text, err := runTool(t.Context(), t, f, func(s string) { parts = append(parts, s) })
			if err != nil || text != "done" || strings.Join(parts, ",") != "part 0,part 1,part 2" {
				t.Errorf("%q, %v, %v", text, parts, err)
			}
		})
	}
	wg.Wait()
	if f.starts() != 1 {
		t.Errorf("%d starts", f.starts())
	}
}

func TestEventsArriveAndStartTheProgram(t *testing.T) {
	t.Parallel()
	f := open(t, ext("a", "echo speak"))
	f.Event(agent.Event{Type: agent.EventSettled})
	f.board.next(t, "a info saw agent_settled")
	f.board.next(t, "status a busy")
	if s := <-f.sends; s.Text != "look" || s.As != "steer" || s.Extension != "a" {
		t.Errorf("%+v", s)
	}
}

func TestNoiseIsToleratedAndNamed(t *testing.T) {
	t.Parallel()
	f := open(t, ext("noisy", "noise", on("tool_call")...))
	if v, err := f.BeforeTool(t.Context(), bash()); err != nil || v.Block {
		t.Errorf("%+v, %v", v, err)
	}
	f.board.next(t, "noisy warning its program wrote to standard output what is no frame: this is no frame")
	checks, err := extension.Conformance(t.Context(), ext("noisy", "noise"), extension.CheckOptions{Options: extension.Options{State: t.TempDir(), Env: os.Environ()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		want := c.Name != "it writes nothing but frames to standard output" && !strings.Contains(c.Name, "does not exist") &&
			!strings.Contains(c.Name, "ignored") && !strings.Contains(c.Name, "same time") // it answers everything with {}
		if c.OK != want {
			t.Errorf("%+v", c)
		}
	}
}

func TestOneThatDoesNotLeaveIsEnded(t *testing.T) {
	t.Parallel()
	f := open(t, ext("stays", "stay", on("tool_call")...))
	if _, err := f.BeforeTool(t.Context(), bash()); err != nil {
		t.Fatal(err)
	}
	f.Close() // goleak and the test's own end say the rest
	if _, err := f.BeforeTool(t.Context(), bash()); err == nil {
		t.Error("it decides after the end")
	}
}

func TestPermissionsChooseTheEnvironment(t *testing.T) {
	t.Parallel()
	e := ext("env", "env", on("tool_call")...)
	e.Permissions = &extension.Permission{Env: []string{"NAMED"}}
	b := newBoard()
	var confined extension.Confinement
	h, err := extension.New(t.Context(), extension.Options{
		Extensions: []extension.Extension{e}, Dir: "/work", State: t.TempDir(), Env: os.Environ(),
		AllEnv: []string{"PATH=" + os.Getenv("PATH"), "NAMED=yes", "SECRET_KEY=hidden"},
		Confine: func(_ context.Context, c extension.Confinement) ([]string, error) {
			confined = c
			return c.Argv, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Attach(extension.Attachment{UI: b})
	if _, err := h.BeforeTool(t.Context(), bash()); err != nil {
		t.Fatal(err)
	}
	line := <-b.lines
	if !strings.Contains(line, "NAMED=yes") || strings.Contains(line, "SECRET_KEY") || !strings.Contains(line, "TMPDIR=") {
		t.Error(line)
	}
	if confined.Dir != "/work" || confined.Home != e.Dir || len(confined.Writable) != 1 {
		t.Errorf("%+v", confined)
	}
}
