package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/agent"
	"muntin/agent/compact"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
)

// window is a model with a small window. Like a server's, its count of tokens is
// its own: a quarter of the bytes. Requests for a summary get one.
type window struct {
	limit int
	reply func(text string) llm.Message // to the last message of the user

	mu        sync.Mutex // guards all below
	summaries int
	refused   int
	summary   llm.Event // in place of a summary, when it has a type
	wait      chan struct{}
	largest   int
}

func (w *window) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) { yield(w.answer(ctx, req)) }
}

func (w *window) answer(ctx context.Context, req llm.Request) llm.Event {
	tokens := len(req.System) / 4
	for _, m := range req.Messages {
		tokens += compact.Estimate(m)
	}
	last := req.Messages[len(req.Messages)-1]
	w.mu.Lock()
	wait := w.wait
	isSummary := strings.Contains(req.System, "You write summaries")
	if isSummary {
		w.summaries++
	}
	if tokens > w.limit {
		w.refused++
	} else {
		w.largest = max(w.largest, tokens)
	}
	n, event := w.summaries, w.summary
	w.mu.Unlock()
	switch {
	case tokens > w.limit:
		return llm.Event{Type: llm.EventError, Err: &llm.Error{Class: llm.ClassOverflow, Message: "prompt is too long"}}
	case isSummary && wait != nil:
		select {
		case <-wait:
		case <-ctx.Done():
			return llm.Event{Type: llm.EventError, Err: ctx.Err()}
		}
	case isSummary && event.Type != "":
		return event
	}
	m := reply(fmt.Sprintf("summary %d", n))
	if !isSummary {
		m = w.reply(last.Text())
	}
	m.Provider, m.Model = "test", "window"
	m.Usage = &llm.Usage{Input: tokens, Output: 5, Total: tokens + 5}
	return llm.Event{Type: llm.EventDone, Message: &m}
}

func reply(text string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopEnd, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}

func echo(string) llm.Message { return reply("well " + strings.Repeat("said", 300)) }

// recorded are the compactions that a harness told of.
type recorded struct {
	mu  sync.Mutex
	all []agent.Event
}

func (r *recorded) take(e agent.Event) {
	if e.Type == agent.EventCompaction || e.Type == agent.EventCompactionEnd {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, e)
	}
}

func (r *recorded) ends(reason string) (ends []agent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.all {
		if e.Type == agent.EventCompactionEnd && (reason == "" || e.Reason == reason) {
			ends = append(ends, e)
		}
	}
	return ends
}

func openWindow(t *testing.T, w *window, change func(*harness.Options)) (*harness.Harness, *recorded) {
	t.Helper()
	rec := &recorded{}
	h := open(t, func(o *harness.Options) {
		o.Provider, o.Model, o.OnEvent = w, "test/window", rec.take
		o.Retry = agent.RetryPolicy{BaseDelay: time.Millisecond}
		change(o)
	})
	return h, rec
}

func prompt(t *testing.T, h *harness.Harness, text string) harness.Outcome {
	t.Helper()
	out, err := h.Prompt(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A long conversation goes on for ever: room is made before a request would not
// fit, and the session, opened again, shows the same context.
func TestCompactsBeforeTheWindowIsFull(t *testing.T) {
	t.Parallel()
	w := &window{limit: 8000, reply: echo}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	options := func(o *harness.Options) { o.Session, o.Compaction = path, compact.Settings{Window: 8000} }
	h, rec := openWindow(t, w, options)
	for i := range 60 {
		prompt(t, h, fmt.Sprintf("question %d %s", i, strings.Repeat("word", 200)))
	}
	ends := rec.ends("threshold")
	if w.refused != 0 || len(ends) < 3 || len(rec.ends("")) != len(ends) {
		t.Errorf("%d requests were refused, %d compactions", w.refused, len(ends))
	}
	for _, e := range ends {
		if e.Compaction == nil || e.Error != "" || e.Compaction.TokensAfter >= e.Compaction.TokensBefore {
			t.Errorf("got %+v", e)
		}
	}
	before := h.Messages()
	if !strings.Contains(before[0].Text(), fmt.Sprintf("summary %d", w.summaries)) {
		t.Errorf("the first message is %.80q", before[0].Text())
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h, _ = openWindow(t, w, options)
	if a, b := asJSON(t, before), asJSON(t, h.Messages()); a != b {
		t.Errorf("opened again, the context is\n%.300s\nwas\n%.300s", b, a)
	}
	prompt(t, h, "and on")
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// With compaction off and the window unknown, an overflow is still recovered
// from, with one more request, whatever becomes of the summary.
func TestOverflowIsRecoveredFrom(t *testing.T) {
	t.Parallel()
	cut := llm.Event{Type: llm.EventDone, Message: &llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopLength, Content: []llm.Block{{Type: llm.BlockText, Text: "half a summa"}}}}
	noKey := llm.Event{Type: llm.EventError, Err: &llm.Error{Class: llm.ClassAuth, Message: "no key"}}
	for name, summary := range map[string]llm.Event{"a summary": {}, "a summary that was cut off": cut, "no summary": noKey} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &window{limit: 6000, reply: echo, summary: summary}
			h, rec := openWindow(t, w, func(o *harness.Options) { o.Compaction = compact.Settings{Off: true} })
			for i := range 20 {
				prompt(t, h, fmt.Sprintf("question %d %s", i, strings.Repeat("word", 200)))
			}
			ends := rec.ends("overflow")
			if len(ends) == 0 || w.refused == 0 || len(rec.ends("threshold")) != 0 {
				t.Fatalf("%d recoveries, %d refused", len(ends), w.refused)
			}
			for _, e := range ends {
				if e.Compaction == nil || !e.WillRetry || (e.Error != "") != (summary.Type != "") {
					t.Errorf("got %+v", e)
				}
				if summary.Type != "" && strings.Contains(e.Compaction.Summary, "half a summa") {
					t.Error("a summary that was cut off was kept")
				}
			}
		})
	}
}

// What is too large is one turn: its results are shortened, and the calls stay.
func TestHugeResultsAreShortened(t *testing.T) {
	t.Parallel()
	w := &window{limit: 9000}
	w.reply = func(text string) llm.Message {
		if strings.HasPrefix(text, "big") {
			m := reply("")
			m.Content = nil
			for i := range 4 {
				m.Content = append(m.Content, llm.Block{Type: llm.BlockToolCall, ID: fmt.Sprint("c", i), Name: "bash", Arguments: json.RawMessage(`{"command":"head -c 12000 /dev/zero | tr '\\0' x"}`)})
			}
			m.StopReason = llm.StopToolUse
			return m
		}
		return reply("all read")
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	h, rec := openWindow(t, w, func(o *harness.Options) { o.Session = path })
	if out := prompt(t, h, "big"); out.Text != "all read" {
		t.Errorf("got %+v", out)
	}
	if ends := rec.ends("overflow"); len(ends) != 1 || ends[0].Compaction == nil {
		t.Errorf("got %+v", ends)
	}
	h.Close()
	s, err := session.Open(path, session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	edits := 0
	for _, e := range s.Branch() {
		if e.Type == session.TypeContextEdit {
			edits++
		}
	}
	if edits == 0 {
		t.Error("nothing was shortened")
	}
}

func TestManualCompaction(t *testing.T) {
	t.Parallel()
	w := &window{limit: 100_000, reply: echo}
	h, rec := openWindow(t, w, func(o *harness.Options) {
		o.Compaction = compact.Settings{Off: true, Keep: 500}
		o.Changed = func(context.Context, time.Time) ([]string, error) { return []string{"made.txt"}, nil }
	})
	if _, err := h.Compact(t.Context(), ""); !errors.Is(err, compact.ErrNothing) {
		t.Errorf("nothing was said yet: %v", err)
	}
	for i := range 4 {
		prompt(t, h, fmt.Sprint("question ", i))
	}
	h.Steer("a message that waits")
	done, err := h.Compact(t.Context(), "mind the tests")
	if err != nil || done.TokensAfter >= done.TokensBefore || !strings.Contains(done.Summary, "<modified-files>\nmade.txt") {
		t.Errorf("got %+v, %v", done, err)
	}
	if h.Queued() != 1 {
		t.Errorf("%d messages wait, want 1", h.Queued())
	}
	if _, err := h.Continue(t.Context()); err != nil || h.Queued() != 0 {
		t.Errorf("%v, %d wait", err, h.Queued())
	}
	w.summary = llm.Event{Type: llm.EventError, Err: &llm.Error{Class: llm.ClassAuth, Message: "no key"}}
	before := len(h.Messages())
	if _, err := h.Compact(t.Context(), ""); llm.Classify(err) != llm.ClassAuth || len(h.Messages()) != before {
		t.Errorf("got %v, %d messages, were %d", err, len(h.Messages()), before)
	}
	if ends := rec.ends("manual"); len(ends) != 3 || ends[2].Error == "" {
		t.Errorf("got %+v", ends)
	}
}

func TestAbortEndsACompaction(t *testing.T) {
	t.Parallel()
	w := &window{limit: 100_000, reply: echo, wait: make(chan struct{})}
	started := make(chan struct{})
	h, _ := openWindow(t, w, func(o *harness.Options) {
		o.Compaction.Keep = 500
		o.OnEvent = func(e agent.Event) {
			if e.Type == agent.EventCompaction {
				close(started)
			}
		}
	})
	for i := range 4 {
		prompt(t, h, fmt.Sprint("question ", i))
	}
	failed := make(chan error, 1)
	go func() {
		_, err := h.Compact(context.Background(), "")
		failed <- err
	}()
	<-started
	if _, err := h.Prompt(t.Context(), "now"); !errors.Is(err, agent.ErrBusy) {
		t.Errorf("a run began beside it: %v", err)
	}
	h.Abort()
	select {
	case err := <-failed:
		if !errors.Is(err, harness.ErrAborted) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the abort was not heeded")
	}
	prompt(t, h, "and on")
}

// An answer for which the window had no room is asked for again, once.
func TestEmptyAnswerForLackOfRoom(t *testing.T) {
	t.Parallel()
	w := &window{limit: 100_000}
	n := 0
	w.reply = func(string) llm.Message {
		n++
		if n == 9 {
			return llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopLength}
		}
		return echo("")
	}
	full := fullWindow{w}
	rec := &recorded{}
	h := open(t, func(o *harness.Options) {
		o.Provider, o.Model, o.OnEvent = full, "test/window", rec.take
		o.Compaction = compact.Settings{Window: 50_000, Off: true, Keep: 500}
	})
	for i := range 9 {
		if out := prompt(t, h, fmt.Sprint("question ", i)); out.Text == "" {
			t.Errorf("question %d got %+v", i, out)
		}
	}
	if ends := rec.ends("overflow"); len(ends) != 1 || n != 10 {
		t.Errorf("%d recoveries, %d requests", len(ends), n)
	}
}

// fullWindow says of an answer that was cut off that there was no room for it.
type fullWindow struct{ *window }

func (f fullWindow) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		e := f.answer(ctx, req)
		if e.Message != nil && e.Message.StopReason == llm.StopLength {
			e.Message.Usage = &llm.Usage{Input: 49_900, Total: 49_900}
		}
		yield(e)
	}
}

func TestNavigate(t *testing.T) {
	t.Parallel()
	w := &window{limit: 100_000, reply: func(text string) llm.Message { return reply("re " + text) }}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	h, _ := openWindow(t, w, func(o *harness.Options) { o.Session = path })
	prompt(t, h, "one")
	prompt(t, h, "two")
	prompt(t, h, "three")
	var second string
	for _, e := range h.Session().Branch() {
		if e.Message != nil && e.Message.Text() == "two" {
			second = e.ID
		}
	}
	text, err := h.Navigate(t.Context(), harness.Navigation{Entry: second, Summarise: true})
	if err != nil || text != "two" || w.summaries != 1 {
		t.Fatalf("got %q, %v, %d summaries", text, err, w.summaries)
	}
	prompt(t, h, "two, but better")
	var got []string
	for _, m := range h.Messages() {
		got = append(got, m.Text())
	}
	if len(got) != 5 || got[0] != "one" || !strings.Contains(got[2], "summary 1") || got[3] != "two, but better" {
		t.Errorf("got %q", got)
	}
	if _, err := h.Navigate(t.Context(), harness.Navigation{Entry: "00000000"}); !errors.Is(err, session.ErrNoEntry) {
		t.Errorf("got %v", err)
	}
	want := asJSON(t, h.Messages())
	h.Close()
	h, _ = openWindow(t, w, func(o *harness.Options) { o.Session = path })
	if got := asJSON(t, h.Messages()); got != want {
		t.Errorf("opened again: %s\nwant %s", got, want)
	}
	if text, err := h.Navigate(t.Context(), harness.Navigation{}); err != nil || text != "" || len(h.Messages()) != 0 {
		t.Errorf("to the root: %q, %v, %d messages", text, err, len(h.Messages()))
	}
}
