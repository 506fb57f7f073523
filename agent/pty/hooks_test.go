package pty

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"muntin/agent/adapter"
)

func TestWatchHooksAndFiles(t *testing.T) {
	t.Parallel()
	ad, _ := adapter.Lookup("claude")
	now := time.Unix(1000, 0)
	hook := func(text string, means adapter.Meaning) (cue, adapter.Meaning) {
		return cue{kind: adapter.SignalHook, text: text, at: 101}, means
	}
	file := func(means adapter.Meaning) (cue, adapter.Meaning) {
		return cue{kind: adapter.SignalFile, text: string(means), at: 101}, means
	}
	type said struct {
		c     cue
		means adapter.Meaning
	}
	of := func(c cue, m adapter.Meaning) said { return said{c, m} }
	tests := map[string]struct {
		says []said
		want []verdict
		mode watchMode
	}{
		"a turn":                  {[]said{of(hook("UserPromptSubmit", adapter.MeansWorking)), of(hook("Stop", adapter.MeansDone))}, []verdict{answered, over}, watchRest},
		"interrupted":             {[]said{of(hook("UserPromptSubmit", adapter.MeansWorking)), of(file(adapter.MeansAborted))}, []verdict{answered, aborted}, watchRest},
		"a limit":                 {[]said{of(hook("UserPromptSubmit", adapter.MeansWorking)), of(hook("StopFailure", adapter.MeansLimited))}, []verdict{answered, limited, failed}, watchRest},
		"compaction in a turn":    {[]said{of(hook("UserPromptSubmit", adapter.MeansWorking)), of(hook("SessionStart", adapter.MeansIdle))}, []verdict{answered}, watchTurn},
		"a title against a hook":  {[]said{of(hook("UserPromptSubmit", adapter.MeansWorking)), of(cue{kind: adapter.SignalTitle, at: 101}, adapter.MeansIdle)}, []verdict{answered}, watchTurn},
		"asked and answered":      {[]said{of(hook("UserPromptSubmit", adapter.MeansWorking)), of(hook("Notification", adapter.MeansApproval)), of(hook("PostToolUse", adapter.MeansWorking))}, []verdict{answered, waits, resumed}, watchTurn},
		"an end that comes twice": {[]said{of(hook("UserPromptSubmit", adapter.MeansWorking)), of(hook("Stop", adapter.MeansDone)), of(file(adapter.MeansDone))}, []verdict{answered, over}, watchRest},
	}
	for name, test := range tests {
		w := watch{on: ad}
		w.begin(watchAnswer, "m", 100, now)
		var got []verdict
		for _, s := range test.says {
			got = append(got, w.hear(s.c, s.means, now)...)
		}
		if !slices.Equal(got, test.want) || w.mode != test.mode {
			t.Errorf("%s: verdicts %v, mode %v; want %v, %v", name, got, w.mode, test.want, test.mode)
		}
	}
}

// TestWatchSees has the screen speak where nothing else does.
func TestWatchSees(t *testing.T) {
	t.Parallel()
	ad, _ := adapter.Lookup("opencode")
	shows, still := adapter.MeansNothing, 30*time.Second
	at := func(s int) sight {
		return sight{now: time.Unix(int64(s), 0), output: 200, still: still, own: true, pasting: true, shows: func() adapter.Seen { return adapter.Seen{Sight: adapter.Sight{Means: shows}} }}
	}
	w := watch{on: ad}
	w.begin(watchReady, "", 0, time.Unix(0, 0))
	steps := []struct {
		at    int
		shows adapter.Meaning
		want  verdict
	}{
		{20, adapter.MeansQuestion, waits}, {21, adapter.MeansQuestion, nothing}, {25, adapter.MeansNothing, nothing}, {30, adapter.MeansIdle, isReady},
	}
	for _, s := range steps {
		shows = s.shows
		if got, _ := w.look(at(s.at)); got != s.want {
			t.Fatalf("at its start, %d: %v, want %v", s.at, got, s.want)
		}
	}
	w.begin(watchTurn, "m", 100, time.Unix(40, 0))
	steps = []struct {
		at    int
		shows adapter.Meaning
		want  verdict
	}{
		{60, adapter.MeansWorking, nothing}, {80, adapter.MeansLimit, limited}, {100, adapter.MeansLimit, nothing},
		{120, adapter.MeansApproval, waits}, {140, adapter.MeansApproval, nothing}, {160, adapter.MeansNothing, over},
	}
	for _, s := range steps {
		shows = s.shows
		if got, _ := w.look(at(s.at)); got != s.want {
			t.Fatalf("in a turn, %d: %v, want %v", s.at, got, s.want)
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	write := func(line string) {
		if err := appendLine(path, line); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(tl *tail) (n int) {
		tl.read(func(rec adapter.Record) {
			if rec.Kind == adapter.RecordTurn && tl.asked {
				n++
			}
		})
		return n
	}
	write(`{"type":"user","message":{"content":"long ago"}}`)
	tl := tail{reader: adapter.Reader{Format: adapter.FormatClaude}}
	tl.follow(path)
	tl.begin()
	write(`{"type":"system","subtype":"turn_duration"}`) // of the turn before, written late
	if n := ends(&tl); n != 0 {
		t.Error("the end of a turn before was taken for this one's")
	}
	write(`{"type":"user","message":{"content":"now"}}`)
	write(`{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"done"}],"usage":{"input_tokens":3}}}`)
	write(`{"type":"system","subtype":"turn_duration"}`)
	if n := ends(&tl); n != 1 || tl.text != "done" {
		t.Errorf("%d ends, text %q", n, tl.text)
	}
	if u := tl.usage(); u == nil || u.Input != 3 {
		t.Errorf("usage %+v", u)
	}
	if u := tl.usage(); u != nil {
		t.Errorf("usage is told twice: %+v", u)
	}
	write(`{"type":"assistant","message":{"id":"b","content":[],"usage":{"input_tokens":4}}}`)
	tl.begin() // what came late is not lost
	if u := tl.usage(); u == nil || u.Input != 4 {
		t.Errorf("usage %+v", u)
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	if err := os.MkdirAll(dir.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConversation(dir); err != nil || c.ID != "" {
		t.Fatalf("none is there: %+v, %v", c, err)
	}
	for _, id := range []string{"a", "b", "b", "c"} {
		if err := WriteConversation(dir, Conversation{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ReadConversation(dir)
	if err != nil || c.ID != "c" || !slices.Equal(c.Earlier, []string{"b", "a"}) {
		t.Errorf("got %+v, %v", c, err)
	}
	if err := os.WriteFile(conversationFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConversation(dir); err == nil {
		t.Error("a file that is broken is read")
	}
}

// TestHooksOfOthers has hooks come of the agent's conversation and of another.
func TestHooksOfOthers(t *testing.T) {
	t.Parallel()
	ad, _ := adapter.Lookup("claude")
	ad.ReadyPaste, ad.ReadyOutput, ad.Sights, ad.Composer = false, false, nil, ""
	ad = quick(ad)
	p := runPane(t, Options{Argv: []string{"cat"}, Adapter: ad, Conversation: Conversation{ID: "mine"}})
	p.ready()
	c, ctx := p.client(), testContext(t)
	for _, in := range []adapter.HookInput{
		{Event: "UserPromptSubmit", Conversation: "other"}, {Event: "UserPromptSubmit", Conversation: "mine", Agent: "helper"},
		{Event: "UserPromptSubmit", Conversation: "mine", Transcript: "/t/mine.jsonl"}, {Event: "Stop", Conversation: "mine", Last: "bye"},
	} {
		if err := c.Hook(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	end := p.event("the turn's end", func(e Event) bool { return e.TurnEnd != nil })
	if end.Turn != 1 || end.TurnEnd.Source != adapter.ByHook || end.TurnEnd.Text != "bye" {
		t.Errorf("turn %d ended %+v", end.Turn, end.TurnEnd)
	}
	status, err := c.Status(ctx)
	if err != nil || status.Conversation != "mine" || !slices.Equal(status.Signals, []adapter.SignalKind{adapter.SignalHook}) {
		t.Errorf("status %+v, %v", status, err)
	}
	if kept, err := ReadConversation(p.dir); err != nil || kept.Transcript != "/t/mine.jsonl" {
		t.Errorf("kept %+v, %v", kept, err)
	}
}

// TestDialogBeforeReady holds a prompt back while the program asks something.
func TestDialogBeforeReady(t *testing.T) {
	t.Parallel()
	ad, _ := adapter.Lookup("claude")
	ad.ReadyPaste = false
	ad.Composer = "" // it has none
	ad = quick(ad)
	p := runPane(t, Options{
		Argv:    []string{"bash", "-c", `printf 'Do you trust the files in this folder?\r\n'; read -r x; printf '\033[2J\033[Hready\r\n❯ '; cat`},
		Adapter: ad,
	})
	asks := p.event("the question", func(e Event) bool { return e.Waiting != nil })
	if asks.Waiting.For != WaitQuestion || asks.Waiting.Source != adapter.ByScreen || asks.Waiting.Text == "" {
		t.Errorf("it waits for %+v", asks.Waiting)
	}
	c := p.client()
	status, err := c.Status(testContext(t))
	if err != nil || status.State != AgentStarting || status.Waiting == nil {
		t.Errorf("status %+v, %v", status, err)
	}
	if _, err := p.screen.ptmx.WriteString("\r"); err != nil {
		t.Fatal(err)
	}
	p.ready()
	if status, err := c.Status(testContext(t)); err != nil || status.Waiting != nil {
		t.Errorf("it still waits: %+v, %v", status.Waiting, err)
	}
}
