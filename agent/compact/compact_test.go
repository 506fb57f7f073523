package compact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent"
	"muntin/agent/compact"
	"muntin/agent/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model answers each request by a function.
type model func(ctx context.Context, req llm.Request) llm.Event

func (m model) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) { yield(m(ctx, req)) }
}

func done(text string, stop llm.StopReason) llm.Event {
	return llm.Event{Type: llm.EventDone, Message: &llm.Message{
		Role: llm.RoleAssistant, StopReason: stop, Content: []llm.Block{{Type: llm.BlockText, Text: text}},
		Usage: &llm.Usage{Input: 10, Output: 1, Total: 11},
	}}
}

func failed(class llm.Class) llm.Event {
	return llm.Event{Type: llm.EventError, Err: &llm.Error{Class: class, Message: string(class)}}
}

func user(id, text string) compact.Item {
	return compact.Item{ID: id, Message: llm.UserText(text, 1)}
}

func said(id, text string) compact.Item {
	return compact.Item{ID: id, Message: llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopEnd, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}}
}

func called(id, tool, args string) compact.Item {
	return compact.Item{ID: id, Message: llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopToolUse, Content: []llm.Block{
		{Type: llm.BlockToolCall, ID: "c" + id, Name: tool, Arguments: json.RawMessage(args)},
	}}}
}

func result(id, call, text string, isError bool) compact.Item {
	return compact.Item{ID: id, Message: llm.Message{Role: llm.RoleTool, ToolCallID: "c" + call, IsError: isError, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}}
}

func words(tokens int) string { return strings.Repeat("four", tokens) }

func TestCut(t *testing.T) {
	t.Parallel()
	summary := compact.Item{ID: "s", Summary: true, Message: llm.UserText(words(50), 1)}
	long := []compact.Item{user("u1", words(10)), called("a1", "read", `{}`), result("r1", "a1", words(300), false), called("a2", "read", `{}`), result("r2", "a2", words(300), false)}
	for _, tc := range []struct {
		name  string
		items []compact.Item
		keep  int
		want  string
		split bool
	}{
		{"at a turn", []compact.Item{user("u1", words(100)), said("a1", words(100)), user("u2", words(50)), said("a2", words(50))}, 100, "u2", false},
		{"the turn before, when the next keeps too little", []compact.Item{user("u0", words(500)), user("u1", words(10)), said("a1", words(150)), user("u2", words(10))}, 100, "u1", false},
		{"within a turn that is too long", long, 320, "a2", true},
		{"never between a call and its result", long, 100, "a2", true},
		{"all fits", []compact.Item{user("u1", words(10)), said("a1", words(10))}, 1000, "u1", false},
		{"a summary begins no turn", []compact.Item{summary, user("u1", words(100)), said("a1", words(10)), user("u2", words(60))}, 165, "u1", false},
	} {
		at, split := compact.Cut(tc.items, tc.keep)
		if tc.items[at].ID != tc.want || split != tc.split {
			t.Errorf("%s: cut at %s, split %v; want %s, %v", tc.name, tc.items[at].ID, split, tc.want, tc.split)
		}
	}
	if at, _ := compact.Cut(nil, 10); at != 0 {
		t.Errorf("cut at %d of nothing", at)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	answer := llm.Message{Role: llm.RoleAssistant, Timestamp: 10, Usage: &llm.Usage{Input: 900, Output: 100, Total: 1000}, StopReason: llm.StopEnd}
	failure := llm.Message{Role: llm.RoleAssistant, Timestamp: 12, Usage: &llm.Usage{Total: 7}, StopReason: llm.StopError, Content: []llm.Block{{Type: llm.BlockText, Text: words(99)}}}
	picture := llm.Message{Role: llm.RoleTool, Content: []llm.Block{{Type: llm.BlockImage, Data: words(9999)}}}
	for _, tc := range []struct {
		name     string
		messages []llm.Message
		since    int64
		want     int
	}{
		{"counted by the provider, and what follows", []llm.Message{llm.UserText(words(50), 1), answer, llm.UserText(words(20), 11)}, 0, 1020},
		{"a failed response counts nothing", []llm.Message{answer, llm.UserText(words(20), 11), failure}, 0, 1020},
		{"before the last compaction", []llm.Message{llm.UserText(words(50), 1), answer, llm.UserText(words(20), 11)}, 10, 77},
		{"nothing counted yet", []llm.Message{llm.UserText(words(50), 1)}, 0, 57},
		{"an image", []llm.Message{picture}, 0, 1207},
	} {
		if got := compact.Tokens(tc.messages, tc.since, 7); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := compact.Settings{Window: 200_000}
	if s.Needed(183_616) || !s.Needed(183_617) {
		t.Error("the limit is not the window less the reserve")
	}
	if s.Off = true; s.Needed(1 << 30) {
		t.Error("it is off")
	}
	if (compact.Settings{}).Needed(1 << 30) {
		t.Error("the window is not known")
	}
	if small := (compact.Settings{Window: 8000}).WithDefaults(); small.Reserve != 2000 || small.Keep != 3000 {
		t.Errorf("a small window: %+v", small)
	}
}

// conversation is a few turns, the last of which is kept.
func conversation() []compact.Item {
	return []compact.Item{
		user("u1", "fix the parser"), called("a1", "read", `{"path":"./parse.go"}`), result("r1", "a1", words(100), false),
		called("a2", "edit", `{"path":"parse.go"}`), result("r2", "a2", "done", false),
		called("a3", "write", `{"path":"no.go"}`), result("r3", "a3", "denied", true),
		called("a4", "read", `{"path":"lex.go"}`), result("r4", "a4", "package", false),
		said("a5", "fixed"), user("u2", words(100)), said("a6", words(100)),
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	var asked llm.Request
	m := compact.Model{ID: "m", Window: 100_000, MaxTokens: 5000, Provider: model(func(_ context.Context, req llm.Request) llm.Event {
		asked = req
		return done("## Goal\nfix the parser", llm.StopEnd)
	})}
	res, err := m.Compact(t.Context(), compact.Request{
		Items: conversation(), Keep: 150, Instructions: "mind the lexer", Previous: "before\n\n<read-files>\nold.go\n</read-files>",
		Files: compact.Files{Read: []string{"old.go", "parse.go"}}, Changed: []string{"gen.go"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := compact.Files{Read: []string{"lex.go", "old.go"}, Modified: []string{"gen.go", "parse.go"}}
	if res.FirstKept != "u2" || !reflect.DeepEqual(res.Files, want) || res.Usage.Total != 11 || res.TokensBefore < 300 {
		t.Errorf("got %+v", res)
	}
	if want := "## Goal\nfix the parser\n\n<read-files>\nlex.go\nold.go\n</read-files>\n\n<modified-files>\ngen.go\nparse.go\n</modified-files>"; res.Summary != want {
		t.Errorf("got %q", res.Summary)
	}
	if string(res.Details()) != `{"readFiles":["lex.go","old.go"],"modifiedFiles":["gen.go","parse.go"]}` {
		t.Errorf("details %s", res.Details())
	}
	prompt := asked.Messages[0].Text()
	for _, part := range []string{"[User]: fix the parser", `[Assistant calls]: edit({"path":"parse.go"})`, "[Tool error]: denied", "<previous-summary>\nbefore\n</previous-summary>", "mind the lexer"} {
		if !strings.Contains(prompt, part) {
			t.Errorf("the prompt lacks %q:\n%s", part, prompt)
		}
	}
	if strings.Contains(prompt, words(100)+"\n\n[Assistant]: "+words(100)) || asked.MaxTokens != 5000 || asked.Tools != nil {
		t.Error("what is kept was summarised, or the limits are wrong")
	}
}

// A request in whose midst the cut lies is kept in its words.
func TestSplitTurnKeepsItsRequest(t *testing.T) {
	t.Parallel()
	items := []compact.Item{user("u1", "rename it everywhere"), called("a1", "read", `{}`), result("r1", "a1", words(300), false), called("a2", "read", `{}`), result("r2", "a2", words(300), false)}
	res, err := compact.Fallback(compact.Request{Items: items, Keep: 320}, nil)
	if err != nil || res.FirstKept != "a2" || !strings.Contains(res.Summary, "being worked on\n\nrename it everywhere") {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestFailedSummaries(t *testing.T) {
	t.Parallel()
	call := done("", llm.StopToolUse)
	call.Message.Content = []llm.Block{{Type: llm.BlockToolCall, ID: "x", Name: "bash", Arguments: json.RawMessage(`{}`)}}
	for name, tc := range map[string]struct {
		event llm.Event
		want  error
		class llm.Class
	}{
		"cut off":         {done("## Goal\nhalf of", llm.StopLength), compact.ErrCutOff, llm.ClassOther},
		"a tool call":     {call, compact.ErrNoSummary, llm.ClassOther},
		"empty":           {done(" \n", llm.StopEnd), compact.ErrNoSummary, llm.ClassOther},
		"no key":          {failed(llm.ClassAuth), nil, llm.ClassAuth},
		"always too long": {failed(llm.ClassOverflow), nil, llm.ClassOverflow},
	} {
		m := compact.Model{Provider: model(func(context.Context, llm.Request) llm.Event { return tc.event })}
		_, err := m.Compact(t.Context(), compact.Request{Items: conversation(), Keep: 150})
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || llm.Classify(err) != tc.class {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := (compact.Model{}).Compact(t.Context(), compact.Request{Items: conversation()[:1], Keep: 1}); !errors.Is(err, compact.ErrNothing) {
		t.Errorf("one message: %v", err)
	}
}

func TestRetriesAndAbort(t *testing.T) {
	t.Parallel()
	n := 0
	m := compact.Model{Retry: agent.RetryPolicy{BaseDelay: time.Millisecond}, Provider: model(func(context.Context, llm.Request) llm.Event {
		if n++; n < 3 {
			return failed(llm.ClassRetryable)
		}
		return done("well", llm.StopEnd)
	})}
	if res, err := m.Compact(t.Context(), compact.Request{Items: conversation(), Keep: 150}); err != nil || n != 3 || !strings.HasPrefix(res.Summary, "well") {
		t.Errorf("%d requests, %+v, %v", n, res, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	m.Provider = model(func(context.Context, llm.Request) llm.Event { // one that does not heed its context
		cancel()
		<-release
		return done("late", llm.StopEnd)
	})
	if _, err := m.Compact(ctx, compact.Request{Items: conversation(), Keep: 150}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(release)
}

// A conversation that is longer than the window is summarised in pieces that
// fit, all of it, each with the summary so far.
func TestChunks(t *testing.T) {
	t.Parallel()
	const window = 16_000
	var items []compact.Item
	for i := range 40 {
		items = append(items, user(fmt.Sprint("u", i), fmt.Sprintf("mark-%02d %s", i, words(1500))), said(fmt.Sprint("a", i), "ok"))
	}
	items = append(items, user("huge", "mark-40 "+words(20_000)+" mark-41"), user("last", words(10)))
	seen := map[string]bool{}
	requests := 0
	m := compact.Model{Window: window, Provider: model(func(_ context.Context, req llm.Request) llm.Event {
		requests++
		text := req.Messages[0].Text()
		if tokens := len(text)/4 + req.MaxTokens; tokens > window {
			t.Errorf("request %d takes %d tokens", requests, tokens)
		}
		if requests > 1 && !strings.Contains(text, fmt.Sprintf("<previous-summary>\nsummary %d\n", requests-1)) {
			t.Errorf("request %d lacks the summary so far", requests)
		}
		for i := range 42 {
			if mark := fmt.Sprintf("mark-%02d", i); strings.Contains(text, mark) {
				seen[mark] = true
			}
		}
		return done(fmt.Sprintf("summary %d", requests), llm.StopEnd)
	})}
	res, err := m.Compact(t.Context(), compact.Request{Items: items, Keep: 5})
	if err != nil || requests < 5 || len(seen) != 42 || res.Summary != fmt.Sprintf("summary %d", requests) {
		t.Errorf("%d requests, %d marks seen, %q, %v", requests, len(seen), res.Summary, err)
	}
}

// A window that is smaller than was said is found out.
func TestPiecesShrinkOnOverflow(t *testing.T) {
	t.Parallel()
	var items []compact.Item
	for i := range 40 {
		items = append(items, user(fmt.Sprint("u", i), words(1500)))
	}
	refused := 0
	m := compact.Model{Window: 64_000, Provider: model(func(_ context.Context, req llm.Request) llm.Event {
		if len(req.Messages[0].Text())/4 > 8_000 {
			refused++
			return failed(llm.ClassOverflow)
		}
		return done("ok", llm.StopEnd)
	})}
	if _, err := m.Compact(t.Context(), compact.Request{Items: items, Keep: 5}); err != nil || refused == 0 {
		t.Errorf("%d refused, %v", refused, err)
	}
}

func TestFallbackNeedsNoModel(t *testing.T) {
	t.Parallel()
	items := conversation()
	for i := range 200 {
		items = append([]compact.Item{user(fmt.Sprint("x", i), fmt.Sprintf("question %d %s", i, words(500)))}, items...)
	}
	cause := errors.New("no network")
	res, err := compact.Fallback(compact.Request{Items: items, Keep: 150, Previous: "earlier " + words(9000)}, cause)
	if err != nil || !errors.Is(res.Cause, cause) || res.FirstKept != "u2" {
		t.Fatalf("got %v, %v", res.Cause, err)
	}
	for _, part := range []string{"question 199", "fix the parser", "- fixed", "- read, 2 times", "earlier", "<modified-files>\nparse.go"} {
		if !strings.Contains(res.Summary, part) {
			t.Errorf("it lacks %q", part)
		}
	}
	if len(res.Summary) > 60_000 {
		t.Errorf("it has %d bytes", len(res.Summary))
	}
}

func TestTrims(t *testing.T) {
	t.Parallel()
	items := []compact.Item{user("u", "x"), called("a", "read", `{}`), result("big", "a", words(50_000), false), result("small", "a", words(10), false), result("mid", "a", words(20_000), false)}
	trims := compact.Trims(items, 30_000)
	if len(trims) != 1 || trims[0].ID != "big" || len(trims[0].Text) > 3000 {
		t.Errorf("got %d trims: %.80v", len(trims), trims)
	}
	if trims := compact.Trims(items, 1); len(trims) != 2 {
		t.Errorf("got %d trims, want the two large ones", len(trims))
	}
}

func TestBranch(t *testing.T) {
	t.Parallel()
	m := compact.Model{Provider: model(func(_ context.Context, req llm.Request) llm.Event {
		if !strings.Contains(req.Messages[0].Text(), "has left this branch") {
			t.Error("it is another task")
		}
		return done("tried it", llm.StopEnd)
	})}
	res, err := m.Branch(t.Context(), conversation(), "")
	if err != nil || !strings.HasPrefix(res.Summary, "tried it\n\n<read-files>\nlex.go") || res.FirstKept != "" {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := m.Branch(t.Context(), nil, ""); !errors.Is(err, compact.ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
}

// Whatever the conversation, the cut splits no call from its result, and with a
// kept part that is smaller than the whole something is cut off.
func FuzzCut(f *testing.F) {
	f.Add([]byte("uatuat"), 100)
	f.Add([]byte("uattttatttt"), 10)
	f.Fuzz(func(t *testing.T, roles []byte, keep int) {
		var items []compact.Item
		for i, c := range roles {
			id := fmt.Sprint(i)
			switch c % 4 {
			case 0:
				items = append(items, user(id, words(int(c))))
			case 1:
				items = append(items, said(id, words(int(c))))
			case 2:
				items = append(items, called(id, "read", `{}`))
			case 3:
				items = append(items, result(id, id, words(int(c)), false))
			}
		}
		at, _ := compact.Cut(items, keep)
		if at < 0 || at > len(items) || at > 0 && at < len(items) && items[at].Message.Role == llm.RoleTool {
			t.Fatalf("cut at %d of %d", at, len(items))
		}
		if res, err := compact.Fallback(compact.Request{Items: items, Keep: keep}, nil); err == nil && res.FirstKept != items[at].ID {
			t.Fatalf("kept from %s, cut at %d", res.FirstKept, at)
		}
	})
}
