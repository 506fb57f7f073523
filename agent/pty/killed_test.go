package pty

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/adapter"
)

// TestKilledInEachState kills a supervisor while a message is in each of its
// states, and starts it anew: it goes on in the same log, with the same
// conversation, and gives no message twice.
func TestKilledInEachState(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fake   fakeTUI
		submit time.Duration
		at     MessageState // it is killed when this is told
		shows  string       // and this shows
		keeps  string       // or the conversation holds this
		want   MessageState
		why    string
		by     adapter.Evidence
		taken  int // by the first life
	}{
		"queued":                  {fakeTUI{Trust: true}, 0, StateQueued, "trust", "", StateDone, "", adapter.ByTerminal, 0},
		"typed":                   {fakeTUI{}, time.Minute, stateTyping, "the message", "", StateFailed, whyTyped, "", 0},
		"delivered":               {fakeTUI{Mute: true, Busy: time.Minute}, 0, StateDelivered, "", `"prompt"`, StateFailed, whyAccepted, adapter.ByTranscript, 1},
		"delivered and not taken": {fakeTUI{Mute: true, Lazy: true}, 0, StateDelivered, "", "", StateFailed, whyTyped, "", 0},
		"answered unseen":         {fakeTUI{Mute: true}, 0, StateDelivered, "", `"done"`, StateDone, "", adapter.ByTranscript, 1},
		"accepted":                {fakeTUI{Busy: time.Minute}, 0, StateAccepted, "", `"prompt"`, StateFailed, whyAccepted, adapter.ByTranscript, 1},
		"done":                    {fakeTUI{}, 0, StateDone, "", "", StateDone, "", "", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, home := newDir(t), t.TempDir()
			fake := test.fake
			fake.Status, fake.Log, fake.Keeps = true, filepath.Join(home, "log"), filepath.Join(home, "c1.jsonl")
			o := superOptions{Dir: dir, Argv: []string{self(t)}, Adapter: keeper(), Env: tuiEnv(t, fake), Conversation: Conversation{ID: "c1"}}
			o.Adapter.SubmitDelay = max(test.submit, o.Adapter.SubmitDelay)
			first := startProcess(t, o)
			c := dialWhenUp(t, dir, first.done)
			m := prompt("this is the message")
			if _, err := c.Send(testContext(t), m); err != nil {
				t.Fatal(err)
			}
			start := waitEvent(t, c, "start", func(ev Event) bool { return ev.Kind == EventStart })
			waitEvent(t, c, string(test.at), func(ev Event) bool { return ev.Message != nil && ev.Message.ID == m.ID && ev.Message.State == test.at })
			if test.shows != "" {
				first.screen.waitFor(t, test.shows)
			}
			if test.keeps != "" {
				waitFile(t, fake.Keeps, test.keeps)
			}
			waitFile(t, dir.Screen(), "\\u001b[2J") // it is written now and then
			if err := first.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			first.wait(t)
			waitGone(t, start.Start.ChildPID)
			before := eventsOf(t, dir) // complete to its last line

			fake = fakeTUI{Status: true, Log: fake.Log, Keeps: fake.Keeps}
			o.Env, o.Adapter = tuiEnv(t, fake), keeper()
			second := startProcess(t, o)
			c = dialWhenUp(t, dir, second.done)
			info, err := Deliver(testContext(t), dir, Delivery{Message: m, Until: StateDone})
			if err != nil || info.State != test.want || info.Why != test.why {
				t.Errorf("it is %+v, %v; want %s: %s", info, err, test.want, test.why)
			}
			next := prompt("another one")
			if info, err := Deliver(testContext(t), dir, Delivery{Message: next, Until: StateDone}); err != nil || info.State != StateDone {
				t.Errorf("the next one is %+v, %v", info, err)
			}
			if err := c.Stop(testContext(t)); err != nil {
				t.Fatal(err)
			}
			second.wait(t)
			checkLives(t, dir.Screen(), before, eventsOf(t, dir), test.taken)
			if by := lastOf(eventsOf(t, dir), m.ID).Evidence; test.by != "" && by != test.by {
				t.Errorf("known by %q, want %q", by, test.by)
			}
			counts := map[string]int{}
			for _, line := range lines(t, fake.Log) {
				text, err := base64.StdEncoding.DecodeString(line)
				if err != nil {
					t.Fatal(err)
				}
				counts[string(text)]++
			}
			want := test.taken
			if test.want == StateDone {
				want = 1
			}
			if counts[m.Text] != want || counts[next.Text] != 1 || len(counts) > 2 {
				t.Errorf("it took %v, want the message %d times", counts, want)
			}
		})
	}
}

// keeper is the adapter of a program with a composer that tells its status and
// keeps its conversation in FAKE_HOME.
func keeper() adapter.Adapter {
	ad := quickFor("x")
	ad.ReadyOutput, ad.ReadyPaste, ad.Status = true, true, true
	ad.Quiet = time.Second
	ad.HomeEnv, ad.Transcript, ad.Format = "FAKE_HOME", "{id}.jsonl", adapter.FormatRecords
	return ad
}

func tuiEnv(t *testing.T, fake fakeTUI) []string {
	t.Helper()
	raw, err := json.Marshal(fake)
	if err != nil {
		t.Fatal(err)
	}
	return []string{roleEnv + "=tui", "FAKE_TUI=" + string(raw), "FAKE_HOME=" + filepath.Dir(fake.Keeps)}
}

// checkLives checks that the second life went on where the first was killed.
func checkLives(t *testing.T, cast string, before, after []Event, prompts int) {
	t.Helper()
	open := 0
	for i, ev := range after {
		if ev.Seq != int64(i)+1 {
			t.Fatalf("event %d has number %d", i+1, ev.Seq)
		}
		switch ev.Kind {
		case EventTurnStart:
			open++
		case EventTurnEnd:
			open--
		}
		if open < 0 || open > 1 {
			t.Errorf("event %d: %d turns are open", ev.Seq, open)
		}
	}
	if len(after) <= len(before) || after[len(before)-1].Time != before[len(before)-1].Time {
		t.Error("the log was not gone on with")
	}
	data, err := os.ReadFile(cast)
	if err != nil {
		t.Fatal(err)
	}
	text := castText(t, cast)
	if strings.Count(string(data), `"m"`) != 1 || !strings.Contains(text, "it has kept "+string(rune('0'+prompts))+" prompts") {
		t.Errorf("the recording is not of both lives: %q", text)
	}
}

func lastOf(events []Event, id string) (last MessageInfo) {
	for _, ev := range events {
		if ev.Message != nil && ev.Message.ID == id {
			last = *ev.Message
		}
	}
	return last
}
