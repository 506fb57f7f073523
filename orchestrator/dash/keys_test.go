package dash

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// recorder is the Commands of a model under test.
type recorder struct {
	out string
	err error
}

func (r *recorder) Run(_ context.Context, _ []string) (string, error) { return r.out, r.err }
func (r *recorder) Terminal(argv []string) *exec.Cmd {
	return exec.Command(argv[0])
}

// A driver presses keys on a model that has no program.
type driver struct {
	*model
	t    *testing.T
	said chan tea.Msg
	rec  recorder
}

func drive(t *testing.T, opts Options) *driver {
	t.Helper()
	d := &driver{t: t, said: make(chan tea.Msg, 8)}
	opts.Commands, opts.Now = &d.rec, noon
	d.model = newModel(t.Context(), opts)
	d.send = func(m tea.Msg) { d.said <- m }
	t.Cleanup(d.wait)
	d.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	d.Update(sample())
	d.View()
	return d
}

// press presses keys: words are Bubble Tea's names, with "text:" what is typed.
func (d *driver) press(keys ...string) (quit bool) {
	d.t.Helper()
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace,
		"space": tea.KeySpace,
	}
	for _, k := range keys {
		var list []tea.KeyPressMsg
		if text, ok := strings.CutPrefix(k, "text:"); ok {
			for _, r := range text {
				list = append(list, tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		} else if code, ok := special[k]; ok {
			list = append(list, tea.KeyPressMsg{Code: code})
		} else if letter, ok := strings.CutPrefix(k, "ctrl+"); ok {
			list = append(list, tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl})
		} else if k == "shift+tab" {
			list = append(list, tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift})
		} else {
			list = append(list, tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
		}
		for _, m := range list {
			_, cmd := d.Update(m)
			if cmd != nil {
				quit = quit || d.left
			}
			d.View()
		}
	}
	return quit
}

// came takes in what a command came to.
func (d *driver) came() doneMsg {
	msg := (<-d.said).(doneMsg)
	d.Update(msg)
	d.View()
	return msg
}

func TestTabKeys(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{})
	for i := range int(tabCount) {
		d.press(string(rune('1' + i)))
		if d.tab != Tab(i) {
			t.Errorf("key %d shows tab %d", i+1, d.tab)
		}
	}
	d.press("tab")
	if d.tab != TabFleet {
		t.Errorf("tab goes on to %d", d.tab)
	}
	d.press("shift+tab")
	if d.tab != TabStory {
		t.Errorf("shift+tab goes back to %d", d.tab)
	}
}

func TestMoveKeys(t *testing.T) {
	t.Parallel()
	at := func(d *driver) string { f := d.frame(); rows := f.rows(); return rows[f.chosen(rows)].key }
	d := drive(t, Options{})
	for _, step := range []struct{ key, want string }{
		{"down", "bob"}, {"j", "cyd"}, {"down", "cyd"}, {"up", "bob"}, {"k", "ann"}, {"up", "ann"}, {"end", "cyd"}, {"home", "ann"},
		{"G", "cyd"}, {"g", "ann"}, {"pgdown", "cyd"}, {"pgup", "ann"},
	} {
		d.press(step.key)
		if got := at(d); got != step.want {
			t.Errorf("%s: at %s, want %s", step.key, got, step.want)
		}
	}
	d.press("down")
	v := sample()
	v.Agents = slices.Insert(v.Agents, 0, Agent{Name: "new"})
	d.Update(v)
	if got := at(d); got != "bob" {
		t.Errorf("the choice went to %s when a row came", got)
	}
	d.press("7")
	v.Log = append(v.Log, Line{noon(), LevelInfo, "newest"})
	d.Update(v)
	if got := at(d); !strings.HasSuffix(got, "newest") {
		t.Errorf("the story does not follow its end: %s", got)
	}
	d.press("up")
	v.Log = append(v.Log, Line{noon(), LevelInfo, "newer"})
	d.Update(v)
	if got := at(d); !strings.Contains(got, "metrics goes back") {
		t.Errorf("the story moved under a person: %s", got)
	}
}

// Every key that does something shows first what command line it is, and runs that.
func TestActKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		keys []string
		want string
	}{
		{[]string{"s", "text:it's 3 o'clock", "enter"}, `send ann it's 3 o'clock --run demo`},
		{[]string{"s", "text:wrong words", "ctrl+w", "text:ones", "backspace", "enter"}, `send ann wrong one --run demo`},
		{[]string{"S", "text:smaller", "enter"}, `send ann smaller --run demo --steer`},
		{[]string{"x", "y"}, `send ann --run demo --abort`},
		{[]string{"d"}, `diff ann --run=demo`},
		{[]string{"l"}, `logs ann --run demo -n 400`},
		{[]string{"c"}, `checkpoint ls ann --run demo`},
		{[]string{"b", "enter"}, `budget ann --turns +10 --run demo`},
		{[]string{"2", "space"}, `todo reopen parse`},
		{[]string{"2", "down", "down", "space"}, `todo done metrics`},
		{[]string{"2", "down", "down", "c", "y"}, `todo release metrics`},
		{[]string{"2", "end", "up", "c", "text:bob", "enter"}, `todo claim docs --as bob`},
		{[]string{"2", "end", "up", "b", "text:no time", "enter"}, `todo block docs no time`},
		{[]string{"2", "end", "up", "x", "y"}, `todo cancel docs`},
		{[]string{"2", "end", "up", "e", "text:new words", "enter"}, `todo edit docs new words`},
		{[]string{"2", "end", "up", "i", "text:part", "enter"}, `todo add part --in docs`},
		{[]string{"2", "l"}, `todo log parse`},
		{[]string{"2", "n", "text:more", "enter"}, `todo add more`},
		{[]string{"2", "/", "text:unicode", "enter", "o"}, `todo reopen unicode`},
		{[]string{"3", "right", "s", "text:hi", "enter"}, `send bob hi --run demo`},
		{[]string{"4", "enter"}, `diff ann --run=demo`},
		{[]string{"4", "o"}, `overlap demo`},
		{[]string{"5", "enter"}, `msg show ann M1 --run demo`},
		{[]string{"5", "down", "r"}, `msg retry bob M2 --run demo`},
		{[]string{"5", "end", "x", "y"}, `msg cancel cyd M3 --run demo`},
		{[]string{"6", "down", "enter", "y"}, `budget bob --turns +10 --run demo`},
		{[]string{"6", "down", "down", "enter"}, `plan approve`},
		{[]string{"6", "end", "o"}, `todo reopen unicode`},
		{[]string{"6", "end", "t", "y"}, `todo done unicode`},
		{[]string{"6", "end", "x", "y"}, `todo cancel unicode`},
	} {
		d := drive(t, Options{})
		d.Update(messagesMsg{list: []Message{
			{ID: "M1", Agent: "ann", State: "done"}, {ID: "M2", Agent: "bob", State: "failed"}, {ID: "M3", Agent: "cyd", State: "queued"},
		}})
		d.press(tt.keys...)
		if d.busy == "" {
			t.Errorf("%q runs nothing", tt.keys)
			continue
		}
		msg := d.came()
		if d.status == "" && d.page == nil {
			t.Errorf("%q: nothing is said of what came of it", tt.keys)
		}
		if got := strings.Join(msg.ran, " "); got != tt.want {
			t.Errorf("%q runs %q, want %q", tt.keys, got, tt.want)
		}
	}
}

func TestAskedKeys(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{Owner: true})
	d.press("x", "n")
	d.press("s", "text:no", "esc")
	if d.busy != "" || d.input != nil || d.sure != nil {
		t.Error("what was not confirmed was run")
	}
	d.press("s", "enter")
	if d.input == nil {
		t.Error("an empty text was sent")
	}
	d.press("ctrl+c", "?")
	if !d.help {
		t.Error("no help")
	}
	d.press("x")
	if d.help || d.sure != nil {
		t.Error("a key in the help does more than leave it")
	}
	if d.press("q", "n") || d.left {
		t.Error("left without a yes")
	}
	if !d.press("q", "y") || !d.left {
		t.Error("did not leave")
	}
	if d := drive(t, Options{}); !d.press("q") {
		t.Error("a watcher is asked before it leaves")
	}
}

func TestFilterKeys(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{})
	d.press("/", "text:JSON", "enter")
	if rows := d.frame().rows(); len(rows) != 1 || rows[0].key != "bob" {
		t.Errorf("%d rows", len(rows))
	}
	d.press("esc")
	if rows := d.frame().rows(); len(rows) != 3 {
		t.Errorf("%d rows after esc", len(rows))
	}
	d.press("/", "text:nobody", "2")
	d.press("esc", "2")
	if d.tab != TabBoard || d.filter != "" {
		t.Errorf("tab %d, filter %q", d.tab, d.filter)
	}
}

func TestPageKeys(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{})
	d.rec.out = strings.Repeat("line\n", 200)
	d.press("l")
	d.came()
	last := 200 - d.lay.page
	for _, step := range []struct {
		key  string
		want int
	}{{"down", 1}, {"j", 2}, {"up", 1}, {"k", 0}, {"k", 0}, {"pgdown", d.lay.page}, {"space", 2 * d.lay.page}, {"pgup", d.lay.page}, {"end", last}, {"down", last}, {"home", 0}} {
		d.press(step.key)
		if d.page.top != step.want {
			t.Errorf("%s: at line %d, want %d", step.key, d.page.top, step.want)
		}
	}
	d.press("esc")
	if d.page != nil {
		t.Error("esc does not leave the page")
	}
	d.press("2", "p")
	if d.page == nil || !d.page.plan {
		t.Error("p does not show the plan")
	}
}

func TestFailureIsShown(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{})
	d.rec.out, d.rec.err = "muntin: run demo has \x1b[31mno agent\n   try: x\n", errors.New("exit status 2")
	d.press("d")
	d.came()
	if d.page != nil || !d.bad || d.status != "run demo has no agent" {
		t.Errorf("status %q, bad %v", d.status, d.bad)
	}
	d.press("down")
	if d.status != "" {
		t.Error("the failure stays when one goes on")
	}
}

// A popup presses its key by itself, and its end is the popup's.
func TestOnce(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{Tab: TabAgent, Agent: "bob", Key: "s", Once: true})
	if d.input == nil {
		t.Fatal("the key was not pressed")
	}
	d.press("text:hi", "enter")
	if msg := d.came(); strings.Join(msg.ran, " ") != "send bob hi --run demo" || !d.left {
		t.Errorf("ran %q, left %v", msg.ran, d.left)
	}
	d = drive(t, Options{Tab: TabAgent, Agent: "bob", Key: "d", Once: true})
	d.came()
	if d.left || d.page == nil {
		t.Error("an empty diff was not shown")
	}
	if !d.press("esc") {
		t.Error("the page's end is not the popup's")
	}
	d = drive(t, Options{Tab: TabAgent, Key: "s", Once: true})
	if !d.press("esc") {
		t.Error("a text that is not typed does not end the popup")
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{})
	d.canDo = false
	for tab := range tabCount {
		d.show(tab)
		for _, a := range d.frame().acts() {
			if a.argv != nil {
				t.Errorf("tab %d: a read-only dashboard would run %q", tab, a.argv)
			}
		}
	}
}

func TestMouse(t *testing.T) {
	t.Parallel()
	d := drive(t, Options{})
	click := func(x, y int) { d.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft}); d.View() }
	click(d.lay.tabs[TabStory].from, d.lay.tabY)
	if d.tab != TabStory {
		t.Errorf("a click on Story shows tab %d", d.tab)
	}
	d.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if f := d.frame(); f.chosen(f.rows()) != len(d.view.Log)-1-wheelRows {
		t.Errorf("the wheel goes to row %d", f.chosen(f.rows()))
	}
	click(d.lay.tabs[TabFleet].from, d.lay.tabY)
	click(10, d.lay.listY+1)
	if f := d.frame(); f.chosen(f.rows()) != 1 || d.tab != TabFleet {
		t.Error("a click does not choose the row")
	}
	click(10, d.lay.listY+1)
	if d.tab != TabAgent || d.agent != "bob" {
		t.Error("a click on the chosen row does not open it")
	}
	click(0, 0)
	click(500, 500)
}
