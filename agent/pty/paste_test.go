package pty

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func runRaw(t *testing.T, opt Options, bracketed bool) (*pane, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "raw.log")
	opt.Argv = []string{self(t)}
	opt.Adapter = quickFor("x")
	opt.Adapter.ReadyOutput = true
	opt.Env = []string{roleEnv + "=raw", "RAW_LOG=" + log}
	if bracketed {
		opt.Env = append(opt.Env, "RAW_PASTE=1")
	}
	p := runPane(t, opt)
	p.ready()
	p.screen.waitFor(t, "ready")
	return p, log
}

func hostile() string {
	return "-dash ; $(rm) `x` ${Y} #{pane_id} \\; 'q' \"d\"\n\ttab\tEnter C-c\n" +
		"é ü 漢字 👩‍👩‍👧‍👦 🇩🇪 \u202e rtl\n" + strings.Repeat("0123456789", 900) + "\nend;"
}

func TestPasteExact(t *testing.T) {
	t.Parallel()
	for _, bracketed := range []bool{true, false} {
		name := map[bool]string{true: "bracketed", false: "plain"}[bracketed]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, log := runRaw(t, Options{}, bracketed)
			text := hostile()
			want := text + "\r"
			if bracketed {
				want = pasteStart + text + pasteEnd + "\r"
			}
			if info := p.send(prompt(text), StateDone); info.State != StateDone {
				t.Fatalf("%+v", info)
			}
			got, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("read %d bytes\n%.300q\nwant %d\n%.300q", len(got), got, len(want), want)
			}
		})
	}
}

func TestPasteRefused(t *testing.T) {
	t.Parallel()
	p, log := runRaw(t, Options{}, true)
	c := p.client()
	for _, text := range []string{"a\x00b", strings.Repeat("x", maxText+1), ""} {
		if _, err := c.Send(testContext(t), prompt(text)); err == nil {
			t.Errorf("%.10q was taken", text)
		}
	}
	big := strings.Repeat("0123456789abcde\n", maxText/16)
	if info := p.send(prompt(big), StateDone); info.State != StateDone {
		t.Errorf("%+v", info)
	}
	got, err := os.ReadFile(log)
	if err != nil || string(got) != pasteStart+big+pasteEnd+"\r" {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

func TestPasteLineMode(t *testing.T) {
	t.Parallel()
	argv := []string{"/bin/cat"}
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	p.ready()
	info := p.send(prompt("short\n"+strings.Repeat("x", lineMax+1)), StateDone)
	if info.State != StateFailed || !strings.Contains(info.Why, "whole lines") {
		t.Errorf("%+v", info)
	}
	if info := p.send(prompt("one\ntwo"), StateDone); info.State != StateDone {
		t.Errorf("%+v", info)
	}
	p.screen.waitFor(t, "two\r\n")
}

// While a person types, and while their text stands unsent, a message is held;
// it comes after them, and the pane is told.
func TestTypingGuard(t *testing.T) {
	t.Parallel()
	shown := make(chan bool, 16)
	p, log := runRaw(t, Options{Hold: 300 * time.Millisecond, OnHeld: func(on bool) { shown <- on }}, true)
	keys := func(s string) {
		if _, err := p.screen.ptmx.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	keys("human")
	waitFile(t, log, "human")
	m := prompt("machine")
	p.send(m, StateQueued)
	for _, why := range []error{errTyping, errDraft} {
		p.event(why.Error(), func(ev Event) bool {
			return ev.Message != nil && ev.Message.State == StateHeld && ev.Message.Why == why.Error()
		})
	}
	if st, err := p.client().Status(testContext(t)); err != nil || !st.Held || st.Queued != 1 || !<-shown {
		t.Errorf("%+v, %v", st, err)
	}
	keys("\r")
	if info := p.send(m, StateAccepted); !info.State.Reached(StateAccepted) {
		t.Fatalf("%+v", info)
	}
	held := 0
	for _, ev := range p.events() {
		if ev.Message != nil && ev.Message.State == StateHeld {
			held++
		}
	}
	if held > 3 { // while typing, for the draft, and again for the Enter
		t.Errorf("held %d times", held)
	}
	got, err := os.ReadFile(log)
	if err != nil || string(got) != "human\r"+pasteStart+"machine"+pasteEnd+"\r" {
		t.Errorf("read %q, %v", got, err)
	}
}

// Reports of the terminal itself hold nothing back.
func TestReportsAreNotTyping(t *testing.T) {
	t.Parallel()
	p, log := runRaw(t, Options{Hold: time.Hour}, true)
	if _, err := p.screen.ptmx.WriteString("\x1b[I\x1b[12;1R"); err != nil {
		t.Fatal(err)
	}
	waitFile(t, log, "R")
	if info := p.send(prompt("now"), StateAccepted); !info.State.Reached(StateAccepted) {
		t.Errorf("%+v", info)
	}
}

// Keys of a person who types without a pause never fall into a block.
func TestNoInterleaving(t *testing.T) {
	t.Parallel()
	p, log := runRaw(t, Options{Hold: time.Nanosecond, HoldDraft: time.Nanosecond}, true)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(300 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := p.screen.ptmx.WriteString("~"); err != nil {
					return
				}
			}
		}
	})
	block := strings.Repeat("block ", 700)
	for range 5 {
		if info := p.send(prompt(block), StateAccepted); !info.State.Reached(StateAccepted) {
			t.Errorf("%+v", info)
		}
		p.send(message(KindSteer, block), StateAccepted)
	}
	close(stop)
	wg.Wait()
	got, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), pasteStart+block+pasteEnd+"\r"); n != 10 {
		t.Errorf("%d of 10 blocks are whole", n)
	}
}
