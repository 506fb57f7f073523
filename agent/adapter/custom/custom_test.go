package custom_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muntin/agent/adapter"
	"muntin/agent/adapter/custom"
)

const whole = `muntin: 1
description: an agent of ours
submit: ctrl-j
abort: escape escape
submit_delay: 20ms
long_delay: 1s
quiet: 4s
ready_quiet: 500ms
ready_paste: true
steer: false
signals:
  - {kind: title, has: busy, means: working}
  - {kind: bell, means: approval}
  - {kind: hook, has: Stop, means: done}
screen:
  - {pattern: 'Allow\?', lines: 4, means: approval, note: it asks}
args: [--quiet]
new: [--session, '{id}']
resume: [--resume, '{id}']
fork: [--fork, '{id}']
alone: [--version]
env: {B: '2', A: '{files}/a'}
strip_env: [OTHER]
approval: {all: [--yes]}
versions: "3"
home: {env: OURS_HOME, dir: .ours}
transcript: {file: 'log/{id}.jsonl', format: pi}
`

func TestParse(t *testing.T) {
	t.Parallel()
	a, err := custom.Parse("ours", "ours.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "ours" || string(a.Submit) != "\n" || string(a.Abort) != "\x1b\x1b" || a.SubmitDelay != 20*time.Millisecond || a.Quiet != 4*time.Second ||
		!a.ReadyPaste || !a.NoSteer || a.Means(adapter.SignalTitle, "so busy") != adapter.MeansWorking || a.Means(adapter.SignalBell, "") != adapter.MeansApproval {
		t.Errorf("got %+v", a)
	}
	start, err := a.Prepare(adapter.Launch{Argv: []string{"ours", "x"}, FilesDir: "/f"})
	if got := strings.Join(start.Argv, " "); err != nil || got != "ours --session "+start.Conversation+" --quiet x" || start.Conversation == "" {
		t.Errorf("argv %q", got)
	}
	if !slices.Equal(start.Env, []string{"A=/f/a", "B=2"}) {
		t.Errorf("env %q", start.Env)
	}
	if again, err := a.Prepare(adapter.Launch{Argv: []string{"ours"}, Conversation: "c"}); err != nil || strings.Join(again.Argv, " ") != "ours --resume c --quiet" {
		t.Errorf("resumed as %q", again.Argv)
	}
	if s := a.See([]string{"Allow?"}, ""); s.Sight.Note != "it asks" {
		t.Errorf("the screen is %+v", s)
	}
	if got := a.Transcripts([]string{"OURS_HOME=/o"}, "c"); got != "/o/log/c.jsonl" {
		t.Errorf("transcript %q", got)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		src  string
		want []string // "line:col: text"
	}{
		"empty":       {"", []string{`1:1: want "muntin: 1"`}},
		"version":     {"muntin: 2\n", []string{`1:9: want "muntin: 1"`}},
		"unknown key": {"muntin: 1\nsubmitt: enter\n", []string{`2:1: unknown field "submitt"`}},
		"type":        {"muntin: 1\nsignals: no\n", []string{"2:10: "}},
		"syntax":      {"muntin: 1\nargs: [a\n", []string{"2:7: "}},
		"twice":       {"muntin: 1\nquiet: 1s\nquiet: 2s\n", []string{"3:1: "}},
		"many": {
			"muntin: 1\nsubmit: hyper\nquiet: soon\nsignals:\n  - {kind: smell, means: working}\n  - {kind: title, means: odd}\nscreen:\n  - {pattern: '(', means: limit}\n" +
				"  - {pattern: 'a', lines: 99, means: limit}\nenv: {MUNTIN_SOCKET: x}\ntranscript: {file: a}\n",
			[]string{
				`2:9: "hyper" is no key`, `3:8: want a duration`, `5:12: "smell" is none of title, notify, bell, hook`, `6:26: "odd" is none of`,
				`8:15: want a regular expression`, `9:27: lines: want 1 to`, `10:6: "MUNTIN_SOCKET"`, `11:13: transcript: want both`,
			},
		},
		"not a mapping": {"- a\n", []string{"1:"}},
		"too large":     {"muntin: 1\n#" + strings.Repeat("x", custom.MaxSize), []string{"1:1: the file is larger"}},
	}
	for name, test := range tests {
		_, err := custom.Parse("ours", "/d/ours.yaml", []byte(test.src))
		var bad *custom.Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v is no *Error", name, err)
			continue
		}
		lines := strings.Split(err.Error(), "\n/d/")
		if len(lines) != len(test.want) {
			t.Errorf("%s: %d problems, want %d:\n%v", name, len(lines), len(test.want), err)
			continue
		}
		for i, want := range test.want {
			if line := strings.TrimPrefix(lines[i], "/d/"); !strings.HasPrefix(line, "ours.yaml:"+want) {
				t.Errorf("%s: %q, want %q", name, line, want)
			}
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"ours": whole, "claude": "no", "broken": "muntin: 9\n"} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ program, want, fails string }{
		{"/opt/ours", "ours", ""}, {"claude", "claude", ""}, {"other", adapter.Generic, ""}, {"../x", adapter.Generic, ""}, {"broken", "", "broken.yaml:1:9"},
	}
	for _, test := range tests {
		a, err := custom.For(dir, []string{test.program})
		if a.Name != test.want || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %q, %v; want %q, %q", test.program, a.Name, err, test.want, test.fails)
		}
	}
	if got := custom.Names(dir); !slices.Equal(got, []string{"broken", "claude", "ours"}) {
		t.Errorf("names %q", got)
	}
	if _, err := custom.Find(dir, "none"); !errors.Is(err, custom.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
	if a, err := custom.Find(dir, "claude"); err != nil || a.Name != "claude" {
		t.Errorf("a built-in one: %q, %v", a.Name, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("muntin: 1\nscreen: [{pattern: '('}]\n")
	f.Fuzz(func(t *testing.T, src string) {
		a, err := custom.Parse("ours", "ours.yaml", []byte(src))
		var bad *custom.Error
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("%v is no *Error", err)
		}
		if err == nil && a.Check() != nil {
			t.Fatal(a.Check())
		}
	})
}
