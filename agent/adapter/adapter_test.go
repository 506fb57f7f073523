package adapter_test

import (
	"testing"
	"time"

	"muntin/agent/adapter"
)

func TestFor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		argv []string
		want string
	}{
		{[]string{"muntin", "agent", "--model", "x"}, adapter.BuiltIn},
		{[]string{"/usr/local/bin/muntin", "agent"}, adapter.BuiltIn},
		{[]string{"muntin", "ls"}, adapter.Generic},
		{[]string{"muntin"}, adapter.Generic},
		{[]string{"/opt/bin/claude", "--settings", "x"}, "claude"},
		{[]string{"codex"}, "codex"}, {[]string{"gemini"}, "gemini"}, {[]string{"qwen"}, "qwen"},
		{[]string{"opencode"}, "opencode"}, {[]string{"pi"}, "pi"},
		{[]string{"env", "A=1", "B=2", "claude"}, "claude"},
		{[]string{"/usr/bin/env"}, adapter.Generic},
		{[]string{"bash"}, adapter.Shell}, {[]string{"-zsh"}, adapter.Shell}, {[]string{"/bin/sh", "-i"}, adapter.Shell},
		{[]string{"bash", "--norc", "--noprofile", "-i"}, adapter.Shell},
		{[]string{"bash", "--rcfile", "x", "-i"}, adapter.Shell},
		{[]string{"bash", "-c", "claude"}, adapter.Generic},
		{[]string{"bash", "-lc", "claude"}, adapter.Generic},
		{[]string{"sh", "script.sh"}, adapter.Generic},
		{[]string{"aider"}, adapter.Generic}, {nil, adapter.Generic}, {[]string{""}, adapter.Generic},
	}
	for _, test := range tests {
		if got := adapter.For(test.argv).Name; got != test.want {
			t.Errorf("For(%q) = %s, want %s", test.argv, got, test.want)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, name := range adapter.Names() {
		a, ok := adapter.Lookup(name)
		if !ok || a.Name != name {
			t.Errorf("Lookup(%q) = %q, %v", name, a.Name, ok)
			continue
		}
		typed := a.Quiet > 0 && a.ReadyQuiet > 0 && len(a.Submit) > 0 && len(a.Abort) > 0
		if typed == a.Link {
			t.Errorf("%s is neither a link nor something that can be typed into: %+v", name, a)
		}
	}
	if a, ok := adapter.Lookup("fish"); !ok || a.Name != adapter.Shell || !a.Foreground {
		t.Errorf("fish is %+v", a)
	}
	if _, ok := adapter.Lookup("nothing"); ok {
		t.Error("found nothing")
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	a := adapter.Adapter{SubmitDelay: time.Second, LongDelay: time.Minute}
	if a.Delay(adapter.LongText) != time.Second || a.Delay(adapter.LongText+1) != time.Minute {
		t.Error("the delay does not follow the length")
	}
	a.LongDelay = 0
	if a.Delay(1<<20) != time.Second {
		t.Error("without a long delay the short one counts")
	}
}
