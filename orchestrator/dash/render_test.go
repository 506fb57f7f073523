package dash

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"muntin/internal/term"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("DASH_TEST_CHILD") != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return noon().Add(-d) }

// sample is a run in the middle of its work.
func sample() View {
	return View{
		Run: "demo", Repo: "wordcount", Branch: "muntin/demo/merged", Recipe: "trio", Started: ago(12*time.Minute + 4*time.Second),
		Phase: PhaseRunning,
		Tasks: []Task{
			{ID: "parse", Text: "Parse the command line", State: TaskDone, Agent: "ann"},
			{ID: "count", Text: "Count lines, words and bytes of each file", State: TaskDone, Agent: "bob"},
			{ID: "metrics", Text: "Serve metrics on /metrics, with the names in docs/metrics.md and a histogram for latency", State: TaskClaimed, Agent: "ann", Attempt: 2, Note: "check failed: TestServe: want 200, have 404"},
			{ID: "json", Text: "Print the counts as JSON", State: TaskClaimed, Agent: "bob", Attempt: 1},
			{ID: "unicode", Text: "Zähle Zeichen, nicht Bytes (数える)", State: TaskBlocked, Agent: "cyd", Note: "needs a decision on grapheme clusters"},
			{ID: "flags", Text: "Settle the names of the flags", State: TaskWaiting, Note: "waiting for a person"},
			{ID: "docs", Text: "Write the manual page", State: TaskOpen, After: []string{"metrics", "json"}},
			{ID: "windows", Text: "Port to Windows", State: TaskCancelled},
		},
		Agents: []Agent{
			{Name: "ann", Role: "worker", Model: "scripted", State: AgentWorking, Source: "protocol", Since: ago(42 * time.Second), Task: "metrics", Turn: 5, Checkpoint: 9, Tokens: 18200, Cost: 0.41, Memory: 212e6, Added: 120, Deleted: 14, Activity: []int{1, 4, 9, 2, 0, 0, 3, 7}, Note: "bash go test ./..."},
			{Name: "bob", Role: "worker", Model: "scripted", State: AgentWorking, Source: "protocol", Since: ago(125 * time.Second), Task: "json", Turn: 3, Checkpoint: 4, Tokens: 9300, Cost: 0.004, Memory: 1.4e9, Added: 8, Activity: []int{2}},
			{Name: "cyd", Role: "reviewer", Model: "claude", State: AgentWaiting, Source: "screen", Since: ago(7 * time.Minute), Task: "unicode", Turn: 2, Checkpoint: 2, Note: "asks for approval"},
		},
		Needs: []Need{
			{Kind: NeedAnswer, Agent: "cyd", Task: "unicode", Text: "Run rm -rf build? (y/n)", Since: ago(7 * time.Minute)},
			{Kind: NeedBudget, Agent: "bob", Text: "bob has reached its limit of turns (3)", Answer: []string{"budget", "bob", "--turns", "+10", "--run", "demo"}, Label: "10 more turns"},
			{Kind: NeedPlan, Text: "PLAN.md is a draft", Answer: []string{"plan", "approve"}, Label: "approve"},
			{Kind: NeedBlocked, Task: "unicode", Agent: "cyd", Text: "needs a decision on grapheme clusters"},
		},
		Overlaps: []Overlap{
			{A: "ann", B: "bob", Path: "count.go", Where: "12-18", Kind: "content"},
			{A: "cyd", B: "merged", Path: "docs/数える.md", Kind: "modify/delete"},
		},
		Plan: "# Word count\n\nCount **lines**, words and bytes.\n\n- small\n- fast\n\n```go\nfunc main() {}\n```\n",
		Log: []Line{
			{ago(11 * time.Minute), LevelInfo, "run demo started"},
			{ago(9 * time.Minute), LevelInfo, "parse claimed by ann"},
			{ago(8 * time.Minute), LevelGood, "parse passed its check, merged to muntin/demo/merged"},
			{ago(5 * time.Minute), LevelWarn, "cyd asks for approval"},
			{ago(3 * time.Minute), LevelGood, "count passed its check, merged to muntin/demo/merged"},
			{ago(50 * time.Second), LevelBad, "metrics failed its check: TestServe: want 200, have 404"},
			{ago(42 * time.Second), LevelInfo, "metrics goes back to ann with the output, attempt 2"},
		},
		Hints: []string{"muntin attach demo", "muntin logs ann -f"},
	}
}

func TestRenderGolden(t *testing.T) {
	t.Parallel()
	done := sample()
	done.Phase = PhaseDone
	for i := range done.Tasks {
		done.Tasks[i].State, done.Tasks[i].Note = TaskDone, ""
	}
	for i := range done.Agents {
		done.Agents[i].State, done.Agents[i].Note, done.Agents[i].Task = AgentIdle, "", ""
	}
	trouble := sample()
	trouble.Phase = PhaseFailed
	trouble.Problems = []string{"TODO.md:12: task docs depends on itself", "TODO.md:14: unknown id ^x", "TODO.md:15: unknown id ^y"}
	big := sample()
	big.Agents = nil
	for i := range 200 {
		a := sample().Agents[i%3]
		a.Name = fmt.Sprintf("worker-%03d", i)
		big.Agents = append(big.Agents, a)
	}
	messages := []Message{
		{ID: "01A", Agent: "ann", From: "user", Kind: "prompt", State: "done", Text: "and tests", Time: ago(time.Hour)},
		{ID: "01B", Agent: "cyd", From: "orchestrator", Kind: "steer", State: "held", Why: "a person is typing", Text: "keep it small", Time: ago(time.Minute)},
		{ID: "01C", Agent: "bob", From: "ann", Kind: "followup", State: "failed", Why: "not handed over in time", Text: "look at count.go", Time: ago(time.Minute)},
	}
	screen := Screen{Cols: 80, Rows: 24, Lines: []string{"\x1b[1m> Count the words\x1b[m", "", "  \x1b[32m+ func count()\x1b[0m", "数える \x1b[2J bad", ""}}
	text := &input{act: act{argv: []string{"send", "ann", textMark, "--run", "demo"}, ask: "prompt for ann"}, text: []rune("and the tests, näturlich 数える")}
	for _, tt := range []struct {
		name          string
		view          View
		width, height int
		ui            ui
	}{
		{"fleet-300x100", sample(), 300, 100, ui{}},
		{"fleet-200x50", sample(), 200, 50, ui{}},
		{"fleet-120x40", sample(), 120, 40, ui{}},
		{"fleet-80x24", sample(), 80, 24, ui{}},
		{"fleet-60x15", sample(), 60, 15, ui{}},
		{"fleet-60x36", sample(), 60, 36, ui{}},
		{"fleet-40x12", sample(), 40, 12, ui{}},
		{"fleet-20x5", sample(), 20, 5, ui{}},
		{"big-80x24", big, 80, 24, ui{places: [tabCount]place{{key: "worker-120", top: 118}}}},
		{"board-120x40", sample(), 120, 40, ui{tab: TabBoard}},
		{"board-60x15", sample(), 60, 15, ui{tab: TabBoard, places: [tabCount]place{TabBoard: {key: "docs"}}}},
		{"agent-80x24", sample(), 80, 24, ui{tab: TabAgent, agent: "bob", screen: screen}},
		{"overlap-80x24", sample(), 80, 24, ui{tab: TabOverlap}},
		{"messages-80x24", sample(), 80, 24, ui{tab: TabMessages, messages: messages, places: [tabCount]place{TabMessages: {index: 2}}}},
		{"needs-80x24", sample(), 80, 24, ui{tab: TabNeeds}},
		{"needs-60x15", sample(), 60, 15, ui{tab: TabNeeds, places: [tabCount]place{TabNeeds: {index: 1}}}},
		{"story-80x24", sample(), 80, 24, ui{tab: TabStory}},
		{"filter-80x24", sample(), 80, 24, ui{filter: "WORKER json", filtering: true}},
		{"input-80x24", sample(), 80, 24, ui{input: text}},
		{"help-80x24", sample(), 80, 24, ui{help: true}},
		{"page-80x24", sample(), 80, 24, ui{page: &page{title: "PLAN.md", plan: true}}},
		{"failed-80x24", sample(), 80, 24, ui{status: "no such task: ^x", bad: true}},
		{"ascii-80x24", sample(), 80, 24, ui{plain: true}},
		{"done-120x30", done, 120, 30, ui{}},
		{"trouble-80x24", trouble, 80, 24, ui{}},
		{"leave-80x24", sample(), 80, 24, ui{leave: true, owner: true}},
		{"empty-80x24", View{Run: "new"}, 80, 24, ui{}},
	} {
		tt.ui.canDo = true
		f := frame{View: tt.view, ui: tt.ui, width: tt.width, height: tt.height, now: noon(), theme: newPalette(term.DefaultTheme())}
		text, _ := f.render()
		golden(t, tt.name+".txt", trimmed(text))
	}
	styled, _ := frame{View: sample(), width: 80, height: 24, now: noon(), theme: newPalette(term.DefaultTheme())}.render()
	golden(t, "styled-80x24.ansi", styled)
}

func trimmed(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(ansi.Strip(s), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", name, got)
	}
}

// The drawing has the size it was asked for, whatever is in it.
func FuzzRenderSize(f *testing.F) {
	f.Add(80, 24, "text", 3)
	f.Add(1, 1, "\x1b[31m\n\t\u202e数える", 100)
	f.Add(31, 7, strings.Repeat("👩‍👩‍👧", 40), 9)
	f.Add(200, 16, "", 0)
	f.Fuzz(func(t *testing.T, width, height int, text string, n int) {
		width, height, n = width%320, height%120, n%250
		tab := Tab(max(n, 0)) % tabCount
		v := View{Run: text, Repo: text, Branch: text, Phase: Phase(text), Started: ago(time.Hour), Problems: []string{text, text, text}, Hints: []string{text}}
		states := []TaskState{TaskOpen, TaskClaimed, TaskDone, TaskBlocked, TaskCancelled, TaskWaiting, TaskState(text)}
		for i := range n {
			v.Tasks = append(v.Tasks, Task{ID: text, Text: text, State: states[i%len(states)], Agent: text, Attempt: i, After: []string{text}, Note: text})
			v.Agents = append(v.Agents, Agent{Name: text, Role: text, State: AgentState(text), Source: text, Since: ago(time.Minute), Task: text, Turn: i, Tokens: i * 7919, Note: text})
			v.Log = append(v.Log, Line{noon(), LevelInfo, text})
			v.Needs = append(v.Needs, Need{Kind: NeedBlocked, Agent: text, Task: text, Text: text, Answer: []string{text}, Label: text})
			v.Overlaps = append(v.Overlaps, Overlap{A: text, B: text, Path: text, Where: text, Kind: text})
		}
		v.Plan = text
		u := ui{tab: tab, canDo: n%2 == 0, status: text, screen: Screen{Lines: []string{text, text}}}
		switch n % 11 {
		case 1:
			u.filter, u.filtering = text, true
		case 3:
			u.input = &input{act: act{argv: []string{text, textMark}, ask: text}, text: []rune(text)}
		case 5:
			u.page = &page{title: text, plan: true}
		case 7:
			u.sure, u.busy = &act{argv: []string{text}}, text
		case 9:
			u.help = true
		}
		out, _ := frame{View: v, ui: u, width: width, height: height, now: noon(), theme: newPalette(term.DefaultTheme())}.render()
		if width <= 0 || height <= 0 {
			if out != "" {
				t.Errorf("%dx%d: %q", width, height, out)
			}
			return
		}
		lines := strings.Split(out, "\n")
		if len(lines) != height {
			t.Errorf("%d lines, want %d", len(lines), height)
		}
		for _, line := range lines {
			if term.Width(line) > width {
				t.Errorf("%d cells, want at most %d: %q", term.Width(line), width, line)
			}
			if bare := ansi.Strip(line); term.CleanLine(bare) != bare {
				t.Errorf("not clean: %q", line)
			}
		}
	})
}

func TestAgeAndCount(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", time.Minute: "1m 00s", 3725 * time.Second: "1h 02m", 50 * time.Hour: "2d 2h",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%s) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int]string{999: "999", 1000: "1.0k", 99_900: "99.9k", 123_456: "123k", 2_500_000: "2.5M"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	first, second := sample(), sample()
	if err := Plain(&b, View{}, first); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 1+len(first.Tasks)+len(first.Agents)+len(first.Log) {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
	b.Reset()
	second.Phase = PhaseDone
	second.Tasks[2].State = TaskDone
	second.Tasks = second.Tasks[:7]
	second.Agents[0] = Agent{Name: "ann", State: AgentIdle, Turn: 5}
	second.Agents[1].Tokens++ // no line for it
	second.Log = append(second.Log[2:], Line{noon(), LevelGood, "all\nmerged"})
	second.Problems = []string{"a problem"}
	if err := Plain(&b, first, second); err != nil {
		t.Fatal(err)
	}
	want := `run demo: done
problem: a problem
task metrics: done by ann, attempt 2: check failed: TestServe: want 200, have 404
task windows: removed
agent ann: idle, turn 5
12:00:00 good: all merged
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
	b.Reset()
	if err := Plain(&b, second, second); err != nil || b.Len() > 0 {
		t.Errorf("no change: %q, %v", b.String(), err)
	}
}

func BenchmarkRender(b *testing.B) {
	v := sample()
	for i := range 200 {
		v.Tasks = append(v.Tasks, Task{ID: fmt.Sprintf("t%d", i), Text: "Some task of the board", State: TaskOpen})
		v.Agents = append(v.Agents, v.Agents[i%3])
	}
	for b.Loop() {
		frame{View: v, width: 200, height: 60, now: noon(), theme: newPalette(term.DefaultTheme())}.render()
	}
}
