package tui

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent/extension"
	"muntin/agent/extension/examples"
	"muntin/agent/harness"
)

const guardManifest = `protocol: 1
name: guard
command: [sh, ./main.sh]
gates: [{on: tool_call, tools: [write]}, {on: session_switch}]
commands: [{name: greet, description: says hello}, {name: more}]
`

const guardProgram = `. ./muntin.sh
on_tool_call() { notify "looked at $(get toolName)" warning; status "guard on"; confirm "May it write?" || block "the user said no"; }
on_session_switch() { reply '{"cancel":true,"reason":"stay here"}'; }
on_command_greet() { text "hello $(get args)
and welcome"; }
on_command_more() { send_message "hello"; }
muntin_run
`

// guard is a host with an extension that asks.
func guard(t *testing.T) *extension.Host {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "guard")
	if err := examples.Write(dir, "guard", "hello-sh"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{extension.ManifestName: guardManifest, "main.sh": guardProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, problems := extension.Load(extension.Place{Dir: dir, One: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	h, err := extension.New(t.Context(), extension.Options{Extensions: all, State: t.TempDir(), Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestLiveExtensionAsks(t *testing.T) {
	t.Parallel()
	l := runLive(t, func(s *setup) { s.ext, s.link = guard(t), newLink() })
	l.sees("❯")
	l.keys("/gre")
	l.sees("/greet", "says hello")
	l.keys("et you\r")
	l.sees("❯ /greet you", "hello you", "and welcome")
	l.link.messages <- Incoming{ID: "p1", Kind: KindPrompt, Text: "work", From: "planner"}
	l.sees("guard: looked at write", "guard: May it write?", "  yes", "▸ no", "guard on")
	l.until("telling the supervisor", func() bool { return strings.HasSuffix(l.link.all(), "waits guard: May it write?") })
	l.keys("\x1b[A\r")
	l.sees("● write  lib/x.sh (2 lines)", "✓ ")
	if !strings.Contains(l.link.all(), "waits guard: May it write?\nwaits \n") {
		t.Errorf("the link was told\n%s", l.link.all())
	}
	l.until("the file", l.exists("lib/x.sh"))
	if err := os.Remove(filepath.Join(l.dir, "lib/x.sh")); err != nil {
		t.Fatal(err)
	}
	l.keys("work\r")
	l.sees("guard: looked at write", "guard: looked at write", "guard: May it write?")
	l.keys("\x1b") // no answer is no
	l.sees("the user said no", "✓ ")
	l.keys("/more\r") // a message while no turn goes on begins one
	l.sees("hello yourself")
}

func TestLiveQuestions(t *testing.T) {
	t.Parallel()
	l := runLive(t, func(*setup) {})
	l.sees("❯")
	answers := make(chan harness.Answer, 1)
	ask := func(q harness.Question) {
		q.Extension = "quiz"
		go func() { answers <- l.ui.ui.Ask(t.Context(), q) }()
	}
	ask(harness.Question{Kind: harness.AskSelect, Title: "Which?", Text: "One of\nthese.", Options: []string{"red", "green", "blue"}})
	l.sees("quiz: Which?", "One of", "these.", "▸ red", "  green")
	l.keys("gr\r")
	if a := <-answers; !a.Answered || a.Value != "green" {
		t.Errorf("%+v", a)
	}
	ask(harness.Question{Kind: harness.AskInput, Title: "Name?", Default: "x"})
	l.sees("quiz: Name?", "› x", "Enter answers")
	l.keys("yz\r")
	if a := <-answers; !a.Answered || a.Value != "xyz" {
		t.Errorf("%+v", a)
	}
	// Two at once: the second waits; one whose time is over goes away.
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		answers <- l.ui.ui.Ask(ctx, harness.Question{Kind: harness.AskConfirm, Title: "First?", Extension: "quiz"})
	}()
	l.sees("quiz: First?")
	l.ui.ui.Status(harness.Status{Extension: "quiz", Text: "2 of 3"})
	l.sees("2 of 3")
	ask(harness.Question{Kind: harness.AskConfirm, Title: "Second?"})
	cancel()
	if a := <-answers; a.Answered {
		t.Errorf("%+v", a)
	}
	l.sees("quiz: Second?")
	l.keys("y\r") // narrows down to yes
	if a := <-answers; !a.Answered || !a.Confirmed {
		t.Errorf("%+v", a)
	}
	l.ui.ui.Status(harness.Status{Extension: "quiz"})
	l.until("the status's end", func() bool { return !strings.Contains(l.text(), "2 of 3") })
}

func TestPlainExtensionAsks(t *testing.T) {
	t.Parallel()
	u := run(t, func(s *setup) { s.ext = guard(t) })
	u.typeLine("/greet me")
	u.see("hello me\nand welcome")
	u.typeLine("work")
	u.see("guard: looked at write", "guard: May it write?", "  1  yes", "  2  no")
	u.typeLine("perhaps")
	u.see("That is none of them")
	u.typeLine("y")
	u.see("✓ ")
	u.until("the file", u.exists("lib/x.sh"))
	u.in.Close()
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	if a := u.ui.Ask(t.Context(), harness.Question{Kind: harness.AskConfirm, Title: "still?"}); a.Answered {
		t.Errorf("%+v: nobody is there", a)
	}
}
