package pty

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"muntin/agent/adapter"
)

// starter is a program that takes its first prompt from its command line and
// tells its status.
const starter = `printf '\033]7501;state=idle:app=x\033\\ready\n'
if [ -n "$1" ]; then printf %s "$1" >"$GOT"; printf '\033]7501;state=working:app=x\033\\'; printf '\033]7501;state=done:app=x\033\\'; fi
exec cat >/dev/null`

func TestFirstPromptOnCommandLine(t *testing.T) {
	t.Parallel()
	dir, got := newDir(t), filepath.Join(t.TempDir(), "got")
	ad := quickFor("x")
	ad.Status, ad.ReadyOutput = true, true
	first, second := prompt("-n 'the first'\r\n$(one)\x1b[201~"), prompt("the second")
	for _, m := range []Message{first, second} {
		if err := Enqueue(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	argv := sh(starter)
	asked := 0
	p := runPane(t, Options{
		Dir: dir, Argv: argv, Adapter: ad, Env: append(os.Environ(), "GOT="+got), Limits: true, Checkpoints: &fakeCheckpointer{},
		First: func(text string) ([]string, bool) {
			asked++
			return append(slices.Clone(argv), "sh", text), true
		},
		Advise: func(context.Context) string { return "an old version" },
	})
	p.event("the end of the first", func(ev Event) bool {
		return ev.Message != nil && ev.Message.ID == first.ID && ev.Message.State == StateDone
	})
	data, err := os.ReadFile(got)
	if want := "-n 'the first'\n$(one)"; err != nil || string(data) != want || asked != 1 {
		t.Errorf("it got %q (%v), asked %d times; want %q", data, err, asked, want)
	}
	var kinds []string
	for _, ev := range p.events() {
		switch {
		case ev.Message != nil && ev.Message.ID == first.ID:
			kinds = append(kinds, string(ev.Message.State)+":"+string(ev.Message.Evidence))
		case ev.Start != nil:
			kinds = append(kinds, "start")
			if !slices.Equal(ev.Start.Argv, argv) {
				t.Errorf("the prompt is in the log: %q", ev.Start.Argv)
			}
		case ev.Checkpoint != nil && len(kinds) < 3:
			kinds = append(kinds, "checkpoint:"+ev.Checkpoint.Cause)
		case ev.TurnEnd != nil && ev.TurnEnd.Message == first.ID:
			if r := ev.TurnEnd.Resources; r == nil || r.Processes < 1 {
				t.Errorf("it holds %+v", r)
			}
		}
	}
	want := "queued: checkpoint:start typing: start delivered:process accepted:terminal done:terminal"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("steps\n%s\nwant\n%s", got, want)
	}
	p.event("the warning", func(ev Event) bool { return ev.Warning != nil && ev.Warning.Text == "an old version" })
	p.event("the second's delivery", func(ev Event) bool {
		return ev.Message != nil && ev.Message.ID == second.ID && ev.Message.State == StateDelivered
	})
}

// A program that cannot be started has not taken its prompt: the next life has.
func TestFirstPromptUnstarted(t *testing.T) {
	t.Parallel()
	dir, got := newDir(t), filepath.Join(t.TempDir(), "got")
	ad := quickFor("x")
	ad.Status, ad.ReadyOutput = true, true
	m := prompt("once")
	if err := Enqueue(dir, m); err != nil {
		t.Fatal(err)
	}
	opt := Options{Run: "r", Agent: "a", Dir: dir, Argv: []string{"/nowhere/at/all"}, Adapter: ad, Env: append(os.Environ(), "GOT="+got)}
	opt.First = func(text string) ([]string, bool) { return append(slices.Clone(opt.Argv), "sh", text), true }
	if exit, err := Run(testContext(t), opt); err == nil || exit.Code != 127 {
		t.Fatalf("%+v, %v", exit, err)
	}
	opt.Argv = sh(starter)
	p := runPane(t, opt)
	p.event("its end", func(ev Event) bool {
		return ev.TurnEnd != nil && ev.TurnEnd.Message == m.ID && ev.TurnEnd.Reason == TurnDone
	})
	if data, err := os.ReadFile(got); err != nil || string(data) != m.Text {
		t.Errorf("it got %q, %v", data, err)
	}
}

func TestWatchFirst(t *testing.T) {
	t.Parallel()
	ad := quickFor("x")
	ad.ReadyOutput, ad.ReadyQuiet = true, time.Second
	start := time.Unix(1000, 0)
	at := func(s, still int) sight {
		return sight{now: start.Add(time.Duration(s) * time.Second), output: 9, still: time.Duration(still) * time.Second, own: true}
	}
	w := watch{on: ad}
	w.begin(watchReady, "m", 0, start)
	w.hear(cue{kind: adapter.SignalStatus, at: 1}, adapter.MeansIdle, start) // it takes prompts, and has one
	if v, again := w.look(at(5, 5)); v != nothing || again.after != 10*time.Second {
		t.Errorf("still for 5 s: %v %+v", v, again)
	}
	if v, _ := w.look(at(16, 16)); v != ignored || w.mode != watchRest {
		t.Errorf("still for 16 s: %v", v)
	}
	w.begin(watchReady, "m", 0, start)
	if got := w.hear(cue{kind: adapter.SignalHook, at: 1}, adapter.MeansWorking, start); !slices.Equal(got, []verdict{answered}) || w.mode != watchTurn {
		t.Errorf("a turn: %v", got)
	}
	w.begin(watchReady, "m", 0, start)
	if got := w.hear(cue{kind: adapter.SignalHook, at: 1}, adapter.MeansError, start); !slices.Equal(got, []verdict{answered, failed}) || w.mode != watchRest {
		t.Errorf("a turn that failed at once: %v", got)
	}
}

// A program holds its own memory and that of what it has started.
func TestResources(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r := (&child{pid: os.Getpid()}).resources()
	if r == nil || r.Processes < 2 || runtime.GOOS == "linux" && r.Memory < 1<<20 {
		t.Errorf("it holds %+v", r)
	}
	if r := (&child{pid: 1 << 30}).resources(); r != nil {
		t.Errorf("a process that is not there holds %+v", r)
	}
}

// An agent is ready when its user's text shows and check succeeds; when they do
// not in time, a person is asked for.
func TestReadiness(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "flag")
	ad := quickFor("x")
	ad.ReadyOutput = true
	p := runPane(t, Options{
		Argv: sh(`echo up; read -r line; echo "now it is serving"; exec cat >/dev/null`), Adapter: ad,
		Ready: Readiness{Text: "it is serving", Timeout: 300 * time.Millisecond, Check: func(context.Context) error { _, err := os.Stat(flag); return err }},
	})
	waits := p.event("a person", func(ev Event) bool { return ev.Waiting != nil })
	if want := `it is not ready after 300ms: "it is serving" is not on its screen`; waits.Waiting.Text != want {
		t.Errorf("it waits for %+v", waits.Waiting)
	}
	if _, err := p.screen.ptmx.WriteString("\r"); err != nil {
		t.Fatal(err)
	}
	p.screen.waitFor(t, "serving")
	if st, err := p.client().Status(testContext(t)); err != nil || st.State != AgentStarting {
		t.Errorf("without its check it is %+v, %v", st, err)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ready()
}
