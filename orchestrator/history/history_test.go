package history

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/internal/state"
	"muntin/orchestrator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded copies the run in testdata, which muntin demo made, to a state
// folder of its own.
func recorded(t testing.TB) orchestrator.Run {
	t.Helper()
	layout := state.Layout{State: t.TempDir(), Runtime: t.TempDir()}
	repo := layout.RepoAt(filepath.Join(layout.State, "ledger-1"))
	dir := repo.Run("demo")
	if err := os.CopyFS(dir.Path, os.DirFS("testdata/run")); err != nil {
		t.Fatal(err)
	}
	info, err := orchestrator.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir.Path, "board.jsonl"), repo.BoardLog(info.Todo)); err != nil {
		t.Fatal(err)
	}
	return orchestrator.Run{Info: info, Dir: dir}
}

func load(t testing.TB, run orchestrator.Run, from Cursor) []Event {
	t.Helper()
	events, err := Load(t.Context(), run, from)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func key(e Event) string {
	return fmt.Sprint(e.Source, " ", e.Seq, " ", e.Kind, " ", e.What, " ", e.Task)
}

func keys(list []Event) (out []string) {
	for _, e := range list {
		out = append(out, key(e))
	}
	return out
}

// TestLoad reads a recorded run: in one order, with what each source has.
func TestLoad(t *testing.T) {
	t.Parallel()
	run := recorded(t)
	events := load(t, run, nil)
	kinds := map[string]int{}
	last := map[string]int64{}
	for i, e := range events {
		if i > 0 && e.Time.Before(events[i-1].Time) {
			t.Errorf("%s comes before %s", key(events[i-1]), key(e))
		}
		if e.Seq < last[e.Source] {
			t.Errorf("%s: the source goes back", key(e))
		}
		last[e.Source] = e.Seq
		kinds[string(e.Kind)+" "+e.What]++
	}
	for what, n := range map[string]int{
		"run started": 1, "run running": 2, "agent started": 6, "agent ended": 6, "prompt prompt": 9, "prompt followup": 1, "turn started": 10, "turn done": 10,
		"check started": 9, "check passed": 8, "check failed": 1, "merge merged": 7, "claim ok": 8, "request budget": 1, "board added": 1,
	} {
		if kinds[what] != n {
			t.Errorf("%s: %d times, want %d", what, kinds[what], n)
		}
	}
	if t.Failed() {
		t.Log(kinds)
	}
	for _, e := range events {
		if e.Kind == KindBoard && e.What == "added" && e.Who != Person {
			t.Errorf("the task that a person added is by %q", e.Who)
		}
	}
}

// TestCursor stops at every event and goes on behind it: nothing is missing,
// nothing comes twice.
func TestCursor(t *testing.T) {
	t.Parallel()
	run := recorded(t)
	all := load(t, run, nil)
	want := keys(all)
	cursor := Cursor{}
	for i, e := range all {
		cursor.Pass(e)
		if i%7 != 0 && i != len(all)-1 {
			continue
		}
		again, err := ParseCursor(cursor.String())
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(load(t, run, again)); !slices.Equal(got, want[i+1:]) {
			t.Fatalf("behind event %d (%s): %d events, want %d", i, key(e), len(got), len(want)-i-1)
		}
	}
	for _, bad := range []string{"x", "a=", "=3", "a=-1", "a=1,a=2", "a=1,"} {
		if _, err := ParseCursor(bad); err == nil {
			t.Errorf("cursor %q was taken", bad)
		}
	}
}

// TestFollow appends a recorded run's lines to its logs in pieces while it is
// followed: torn lines wait for their ends, and the end is as if it were read
// at once.
func TestFollow(t *testing.T) {
	t.Parallel()
	run := recorded(t)
	want := keys(load(t, run, nil))
	logs := map[string][]byte{}
	paths := []string{run.Dir.Journal(), run.Dir.Repo().BoardLog(run.Todo)}
	for _, name := range []string{"ada", "grace", "linus"} {
		paths = append(paths, run.Dir.Agent(name).Events())
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		logs[path] = data
		cut := len(data)/3 + 5 // within a line
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	caught := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- Follow(ctx, run, nil, Sink{
			Event: func(e Event) error {
				if got = append(got, key(e)); len(got) >= len(want) {
					cancel()
				}
				return nil
			},
			Caught: func() error { close(caught); return nil },
		})
	}()
	<-caught
	for part := range 4 {
		for _, path := range paths {
			data := logs[path]
			from := len(data)/3 + 5
			rest := data[from:]
			lo, hi := len(rest)*part/4, len(rest)*(part+1)/4
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(rest[lo:hi]); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
}

// TestForeignLines makes sure that what is no event costs its line only.
func TestForeignLines(t *testing.T) {
	t.Parallel()
	run := recorded(t)
	want := len(load(t, run, nil))
	for _, path := range []string{run.Dir.Journal(), run.Dir.Agent("ada").Events(), run.Dir.Repo().BoardLog(run.Todo)} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("nonsense\n[]\n{}\n{\"seq\":\"x\"}\n{\"torn\":"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(load(t, run, nil)); got != want {
		t.Errorf("%d events, want %d", got, want)
	}
}

// TestView folds the recorded run's logs.
func TestView(t *testing.T) {
	t.Parallel()
	run := recorded(t)
	v, err := Now(run)
	if err != nil {
		t.Fatal(err)
	}
	if !v.Ended() || len(v.Agents) != 3 || v.State.Count(orchestrator.TaskDone) != 7 {
		t.Errorf("ended %t, %d agents, %d done", v.Ended(), len(v.Agents), v.State.Count(orchestrator.TaskDone))
	}
	ada, ok := v.Agent("ada")
	if !ok || ada.Short() != "exited" || ada.Source != "process" || ada.Turn != 4 || ada.Used.Tokens() == 0 || ada.Used.Unpriced == 0 || ada.Queued != 0 {
		t.Errorf("%+v", ada)
	}
	sums := UsageBy(load(t, run, nil), func(e Event) string { return e.Agent })
	if got := sums["ada"]; got != ada.Used {
		t.Errorf("by events %+v, by the view %+v", got, ada.Used)
	}
}

// TestWatch waits for an event that comes, and for a time that comes.
func TestWatch(t *testing.T) {
	t.Parallel()
	run := recorded(t)
	path := run.Dir.Agent("grace").Events()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	looks := 0
	err := Watch(ctx, run, func(v View) (bool, time.Time) {
		looks++
		grace, _ := v.Agent("grace")
		switch {
		case looks == 1:
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return true, time.Time{}
			}
			defer f.Close()
			if _, err := f.WriteString(`{"seq":1000,"time":"2026-12-01T00:00:00Z","kind":"ready","ready":{"source":"screen","confidence":"low"}}` + "\n"); err != nil {
				t.Error(err)
			}
			return false, time.Time{}
		case grace.Short() != "idle" || grace.Confidence != "low":
			return false, time.Time{}
		}
		return looks > 3, time.Now().Add(time.Millisecond) // nothing happens any more but this
	})
	if err != nil || looks < 4 {
		t.Errorf("%d looks, %v", looks, err)
	}
}

// TestTimeline lays the recorded run out.
func TestTimeline(t *testing.T) {
	t.Parallel()
	run := recorded(t)
	events := load(t, run, nil)
	tl := TimelineOf(run.Name, []string{"ada", "grace", "linus"}, events, time.Now())
	var names []string
	turns, open := 0, 0
	for _, l := range tl.Lanes {
		names = append(names, l.Name)
		for _, s := range l.Spans {
			if s.Kind == SpanTurn {
				turns++
			}
			if s.Open {
				open++
			}
			if s.To.Before(s.From) || s.From.Before(tl.From) || s.To.After(tl.To) {
				t.Errorf("%s: %+v", l.Name, s)
			}
		}
	}
	if got := strings.Join(names, " "); got != "ada grace linus (board) (run) (people)" || turns != 10 || open != 0 {
		t.Errorf("lanes %s, %d turns, %d open", got, turns, open)
	}
	svg := tl.SVG()
	if strings.Count(svg, "<svg") != 1 || !strings.Contains(svg, `class="turn`) || strings.Contains(svg, "href") {
		t.Errorf("the picture: %.300s", svg)
	}
	hostile := Timeline{Run: `"><script>`, Lanes: []Lane{{Name: "<b>", Marks: []Mark{{Text: "</title><script>"}}}}}
	if strings.Contains(hostile.SVG(), "<script") || strings.Contains(hostile.SVG(), "<b>") {
		t.Error("foreign text is in the picture as it is")
	}
}

func FuzzLines(f *testing.F) {
	for _, path := range []string{"testdata/run/journal.jsonl", "testdata/run/board.jsonl", "testdata/run/agents/ada/events.jsonl"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			if n++; n%5 == 0 {
				f.Add([]byte(strings.TrimSpace(line)))
			}
		}
	}
	f.Add([]byte(`{"time":"2026-01-01T00:00:00Z","kind":"exit"}`))
	f.Fuzz(func(_ *testing.T, line []byte) {
		for _, parse := range []func([]byte) []Event{newJournal().line, agentLog("a"), boardLog(time.Time{}, time.Time{})} {
			for _, e := range parse(line) {
				if _, err := json.Marshal(e); err != nil {
					panic(err)
				}
				e.Bad()
			}
		}
	})
}
