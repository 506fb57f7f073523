package until

import (
	"errors"
	"strings"
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func view() history.View {
	st := orchestrator.NewState(orchestrator.Settings{}, []orchestrator.Agent{{Name: "ada"}, {Name: "grace"}, {Name: "all"}})
	st.Phase = orchestrator.PhaseRunning
	st.Tasks = []orchestrator.Task{
		{ID: "a", State: orchestrator.TaskDone}, {ID: "b", State: orchestrator.TaskActive}, {ID: "c", State: orchestrator.TaskBlocked}, {ID: "g", Group: true},
	}
	grace := st.Agents["grace"]
	grace.Task, grace.Silence.Stalled = "b", true
	st.Agents["grace"] = grace
	return history.View{State: st, Agents: []history.Agent{
		{Name: "ada", State: pty.AgentIdle, Since: now.Add(-time.Minute), Turn: 3},
		{Name: "grace", State: pty.AgentWorking, Since: now.Add(-10 * time.Second), Turn: 1, Queued: 2},
		{Name: "all", State: pty.AgentWorking, Since: now, Waiting: &pty.WaitingInfo{For: pty.WaitQuestion}},
	}}
}

func names() Names { return Names{Agents: []string{"ada", "grace", "all"}} }

func TestHolds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"phase == running":                      true,
		"run.phase != 'running'":                false,
		"done == 1 and tasks == 3":              true,
		"done == tasks":                         false,
		"done < tasks && blocked >= 1":          true,
		"active > 1 || open > 0":                false,
		"^a":                                    true,
		"^b":                                    false,
		"not ^b":                                true,
		"!^b and (^a or ^c)":                    true,
		"^c.state == blocked":                   true,
		"^none":                                 false,
		"ada.state == idle":                     true,
		"ada.turn > grace.turn":                 true,
		"ada.idle > 30s":                        true,
		"ada.idle >= 1m":                        true,
		"ada.idle > 1m":                         false,
		"grace.idle == 0":                       true,
		"grace.idle > 0s":                       false,
		"grace.for < 1m":                        true,
		"grace.task == b":                       true,
		"grace.task == ^b":                      true,
		"grace.queued == 2":                     true,
		"any.state == waiting":                  true,
		"all.state == idle":                     false,
		"all.state != exited":                   true,
		"any.stalled":                           true,
		"all.stalled":                           false,
		"grace.stalled == true":                 true,
		"@all.state == waiting":                 true,
		"any.turn == 3 and not any.turn == 100": true,
		"^a and ^b or ^a":                       true,
	} {
		e, err := Parse(text, names())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := e.Holds(view(), now); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestWake tells when a condition may come to hold by time alone.
func TestWake(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"ada.idle >= 90s":                   30 * time.Second,
		"ada.idle > 90s":                    30*time.Second + 1,
		"grace.for < 15s":                   5 * time.Second,
		"ada.idle > 1h or grace.for >= 11s": time.Second,
		"^b and ada.for >= 2m":              time.Minute,
		"ada.idle >= 1s":                    0,
		"grace.idle > 5s":                   0,
		"done == tasks":                     0,
	} {
		e, err := Parse(text, names())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, wake := e.Holds(view(), now)
		if got := wake.Sub(now); want == 0 && !wake.IsZero() || want > 0 && got != want {
			t.Errorf("%s: wakes in %s, want %s", text, got, want)
		}
		if want > 0 {
			before, _ := e.Holds(view(), wake.Add(-1))
			after, _ := e.Holds(view(), wake)
			if before == after && !strings.Contains(text, "^b") {
				t.Errorf("%s: nothing is different then", text)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		pos int
		why string
	}{
		"":                       {0, "want a condition"},
		"done = 3":               {5, "written =="},
		"done == ":               {8, "want a value"},
		"done == idle":           {8, "is a word"},
		"done == 3m":             {8, "is a duration"},
		"ada.state == idel":      {13, "one of starting, idle"},
		"ada.stat == idle":       {0, "an agent has no"},
		"bob.state == idle":      {0, `no agent "bob"`},
		"phase":                  {0, "compare it"},
		"phase > running":        {6, "== and != only"},
		"(^a":                    {3, "closing parenthesis"},
		"^a)":                    {2, "no meaning here"},
		"^a ^b":                  {3, "no meaning here"},
		"ada.idle > 30x":         {11, "neither a number"},
		"ada.idle > 30":          {11, "is a number"},
		"'x' == 'y'":             {0, "cannot stand here"},
		"done == \"3":            {8, "no end"},
		"^":                      {0, "task's id"},
		"^a.title == x":          {0, "it has state"},
		"done == any.turn":       {8, "on the left side"},
		"nonsense":               {0, "there is no"},
		"done % 3":               {5, "no meaning"},
		strings.Repeat("(", 200): {101, "too deep"},
	} {
		_, err := Parse(text, names())
		var bad *ParseError
		if !errors.As(err, &bad) || bad.Pos != want.pos || !strings.Contains(bad.Why, want.why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"done == tasks", "^a and (not ada.idle > 30s)", "any.state == 'waiting'", "!!^a", "((", "@all.turn >= 1 || ^x.state!=open", "é == ^"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text, names())
		var bad *ParseError
		if err != nil {
			if !errors.As(err, &bad) || bad.Pos < 0 || bad.Pos > len(text) || err.Error() == "" {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if _, wake := e.Holds(view(), now); !wake.IsZero() && !wake.After(now) {
			t.Errorf("%q wakes in the past", text)
		}
		e.Holds(history.View{}, now)
	})
}
