package pty

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"muntin/agent/adapter"
)

func scanAll(pieces ...string) (*scanner, []cue) {
	s := &scanner{}
	var got []cue
	s.heard = func(c cue) { got = append(got, c) }
	for _, p := range pieces {
		s.feed([]byte(p))
	}
	return s, got
}

func TestSignals(t *testing.T) {
	t.Parallel()
	msg := base64.StdEncoding.EncodeToString([]byte("429: no more"))
	tests := []struct {
		in   string
		want []string
	}{
		{"\x1b]7501;state=working:app=codex\x1b\\", []string{"status=working"}},
		{"\x1b]7501;state=blocked:app=codex:kind=permission\x07", []string{"status=blocked:permission"}},
		{"\x1b]7501;state=error:app=pi:msg=" + msg + "\x07", []string{"status=error|429: no more"}},
		{"\x1b]7501;?\x07", nil},
		{"\x1b]0;◇  Ready (x)\x07text\x1b]2;two; parts\x1b\\", []string{"title=◇  Ready (x)", "title=two; parts"}},
		{"\x1b]1;icon\x07", nil},
		{"\x1b]9;Approval requested: ls\x07", []string{"notify=Approval requested: ls"}},
		{"\x1b]9;4;1;50\x07", nil},
		{"\x1b]777;notify;Title;body; more\x07", []string{"notify=Title: body; more"}},
		{"\x1b]777;preexec\x07", nil},
		{"\x1b]133;D;3\x07\x1b]133;A\x07", []string{"command=D;3", "command=A"}},
		{"ding\x07dong\x07", []string{"bell=", "bell="}},
		{"\x1bPq#0;2\x07still sixel\x1b\\\x07", []string{"bell="}},
		{"\x1b_Gf=100;\x07data\x1b\\", nil},
		{"\x1b]52;c;" + strings.Repeat("QQ", 4000) + "\x07\x07", []string{"bell="}},
		{"\x1b]0;broken\x18\x07", []string{"bell="}},
		{"\x1b]0;cut off\x1b[31mred\x07", []string{"bell="}},
		{"\x1b]0;a\x1b\x1b]0;b\x07", []string{"title=b"}},
	}
	for _, test := range tests {
		for cut := 0; cut <= min(len(test.in), 60); cut++ {
			_, cues := scanAll(test.in[:cut], test.in[cut:])
			var got []string
			for _, c := range cues {
				line := string(c.kind) + "=" + c.text
				if c.kind == adapter.SignalStatus && c.note != "" {
					line += "|" + c.note
				}
				got = append(got, line)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%.60q split at %d: %q, want %q", test.in, cut, got, test.want)
			}
		}
	}
}

func TestScanPositions(t *testing.T) {
	t.Parallel()
	s, cues := scanAll("ab\x07c", "d\x1b]2;t", "itle\x07")
	if len(cues) != 2 || cues[0].at != 3 || cues[1].at != 15 {
		t.Errorf("%+v", cues)
	}
	s.feed([]byte("\x1b[2Jx"))
	if got := s.fresh.Load(); got != 19 {
		t.Errorf("emptied at %d", got)
	}
}

func TestKeyboardFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int32
	}{
		{"\x1b[>1u", 1}, {"\x1b[>1u\x1b[>9u", 9}, {"\x1b[>1u\x1b[>9u\x1b[<u", 1}, {"\x1b[>1u\x1b[<5u", 0},
		{"\x1b[=3u", 3}, {"\x1b[=3u\x1b[=8;2u", 11}, {"\x1b[=3u\x1b[=1;3u", 2}, {"\x1b[?u", 0}, {"\x1b[u", 0}, {"\x1b[>1u\x1bc", 0},
		{strings.Repeat("\x1b[>2u", 40) + strings.Repeat("\x1b[<u", 40), 0},
	}
	for _, test := range tests {
		if s, _ := scanAll(test.in); s.kitty.Load() != test.want {
			t.Errorf("%.40q: %d, want %d", test.in, s.kitty.Load(), test.want)
		}
	}
	for _, test := range []struct {
		keys  string
		flags int32
		want  string
	}{
		{"\r", 0, "\r"}, {"\r", 1, "\r"}, {"\r", 9, "\x1b[13u"}, {"\x1b", 1, "\x1b[27u"}, {"\x03", 1, "\x1b[99;5u"}, {"\x03", 4, "\x03"}, {"ab", 9, "ab"},
	} {
		if got := string(kittyKeys([]byte(test.keys), test.flags)); got != test.want {
			t.Errorf("%q with flags %d: %q, want %q", test.keys, test.flags, got, test.want)
		}
	}
}

func TestDraft(t *testing.T) {
	t.Parallel()
	tests := []struct {
		keys string
		want bool // something stands there
	}{
		{"a", true}, {"a\x7f", false}, {"é\x7f", false}, {"\x7f\x7fa", true}, {"abc\r", false}, {"abc\rd", true},
		{"abc\x03", false}, {"abc\x15", false}, {"\x1b[A", true}, {"\x1b[B\x1b[C\x1bOD", false}, {"\x1b[I\x1b[12;1R", false},
		{"\x1b[200~two\rlines\x1b[201~", true}, {"\x1b[200~x\x1b[201~\r", false}, {"\x1b[13u", false}, {"x\x1b[13u", false}, {"\x1b[97u", true},
		{"\x1b[97u\x1b[99;5u", false}, {"\x1b", false}, {"\x1bb", false}, {"\t", false}, {"a\n", true},
	}
	for _, test := range tests {
		var d draft
		if d.feed([]byte(test.keys)); d.n > 0 != test.want {
			t.Errorf("%q: %d", test.keys, d.n)
		}
	}
	shell := draft{shell: true}
	if shell.feed([]byte("ls\n")); shell.n != 0 {
		t.Errorf("a shell's line: %d", shell.n)
	}
}

func TestHear(t *testing.T) {
	t.Parallel()
	codex, _ := adapter.Lookup("codex")
	bash, _ := adapter.Lookup(adapter.Shell)
	gemini, _ := adapter.Lookup("gemini")
	status := func(text string, at int64) cue { return cue{kind: adapter.SignalStatus, text: text, at: at} }
	title := func(text string, at int64) cue { return cue{kind: adapter.SignalTitle, text: text, at: at} }
	command := func(text string, at int64) cue { return cue{kind: adapter.SignalCommand, text: text, at: at} }
	tests := []struct {
		name string
		on   adapter.Adapter
		mode watchMode
		cues []cue
		want []verdict
	}{
		{"a turn", codex, watchAnswer, []cue{status("idle", 90), status("working", 110), status("done", 120), status("idle", 130)}, []verdict{answered, over}},
		{"done at once", codex, watchAnswer, []cue{status("done", 110)}, []verdict{answered, over}},
		{"an idle of before", codex, watchAnswer, []cue{status("idle", 110), status("working", 120), status("idle", 130)}, []verdict{answered, over}},
		{"a person's", codex, watchRest, []cue{status("working", 10), status("error", 20)}, []verdict{person, failed}},
		{"an approval", codex, watchTurn, []cue{status("blocked:permission", 110), status("blocked:permission", 111), status("working", 120), status("done", 130)}, []verdict{waits, resumed, over}},
		{"an abort", codex, watchTurn, []cue{status("working", 110), status("idle", 120)}, []verdict{over}},
		{"a title against a status", gemini, watchTurn, []cue{status("working", 110), title("◇  Ready", 115), status("idle", 120)}, []verdict{over}},
		{"titles", gemini, watchAnswer, []cue{title("✦  Working…", 110), title("✋  Action Required (d)", 115), title("✦  Working…", 116), title("◇  Ready (d)", 120)}, []verdict{answered, waits, resumed, over}},
		{"a shell's marks", bash, watchAnswer, []cue{command("C", 110), command("D;2", 120), command("A", 121)}, []verdict{answered, failed}},
		{"marks that are none", codex, watchAnswer, []cue{command("C", 110), command("D;2", 120)}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := watch{on: test.on}
			w.begin(test.mode, "m", 100, time.Now())
			if test.mode == watchRest {
				w.mark = 0
			}
			var got []verdict
			for _, c := range test.cues {
				got = append(got, w.hear(c, test.on.Means(c.kind, c.text), time.Now())...)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// A program that tells of its work is not judged by its screen: output is no
// answer, and stillness no end, before long.
func TestHearGoesBeforeScreen(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	w := watch{on: adapter.Adapter{Quiet: time.Second}}
	w.begin(watchTurn, "", 0, start)
	w.hear(cue{kind: adapter.SignalStatus, at: 1}, adapter.MeansIdle, start)
	w.begin(watchAnswer, "m", 100, start)
	see := func(at, still time.Duration) verdict {
		v, _ := w.look(sight{now: start.Add(at), output: 200, still: still, own: true})
		return v
	}
	for i, want := range []verdict{nothing, unheard, nothing} { // the key is pressed once more
		if v := see(time.Duration(i)*signalRetry*4/5+signalRetry/5*time.Duration(min(i, 1)), 0); v != want {
			t.Errorf("output alone, look %d: %v", i, v)
		}
	}
	if v := see(signalAnswer, 0); v != answered {
		t.Errorf("output after a while: %v", v)
	}
	if v := see(signalAnswer+3*time.Second, 3*time.Second); v != nothing {
		t.Errorf("a still screen: %v", v)
	}
	w.hear(cue{kind: adapter.SignalStatus, at: 300}, adapter.MeansApproval, start)
	if v := see(time.Hour, time.Hour); v != nothing {
		t.Errorf("a screen that waits for a person: %v", v)
	}
	w.hear(cue{kind: adapter.SignalStatus, at: 301}, adapter.MeansWorking, start)
	if v := see(2*time.Hour, time.Hour); v != over {
		t.Errorf("a screen that was still for long: %v", v)
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("\x1b[?2004h text \x1b[?1049l\x07"), 3)
	f.Add([]byte("\x1b]7501;state=error:msg=QQ==\x1b\\\x1b[>1u\x1b[2J"), 9)
	f.Add([]byte("\x1b[?\x18\x1bc\x1b]0;t\x07\x1bP\x07\x1b\\"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = max(min(cut, len(data)), 0)
		given := bytes.Clone(data)
		a, whole := scanAll(string(data))
		b, split := scanAll(string(data[:cut]), string(data[cut:]))
		if !slices.Equal(whole, split) || a.pasting.Load() != b.pasting.Load() || a.altScr.Load() != b.altScr.Load() ||
			a.kitty.Load() != b.kitty.Load() || a.fresh.Load() != b.fresh.Load() {
			t.Fatalf("%q split at %d differs:\n%+v\n%+v", data, cut, whole, split)
		}
		if !bytes.Equal(given, data) {
			t.Fatal("the bytes were changed")
		}
		for _, c := range whole {
			if c.at <= 0 || c.at > int64(len(data)) {
				t.Fatalf("%+v of %d bytes", c, len(data))
			}
		}
	})
}

func FuzzDraft(f *testing.F) {
	f.Add([]byte("abc\x1b[200~x\x1b[201~\r"))
	f.Add([]byte("\x1b[A\x1b\x1b[97;5u\x7f"))
	f.Fuzz(func(t *testing.T, keys []byte) {
		var d draft
		if d.feed(keys); d.n < 0 {
			t.Fatalf("%q: %d", keys, d.n)
		}
		d.paste = false
		if d.feed([]byte("\r")); d.n != 0 {
			t.Fatalf("%q and Enter: %d", keys, d.n)
		}
	})
}
