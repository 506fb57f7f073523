package tmux_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// A key opens its program in a popup, with the pane's id, in the pane's folder,
// whatever is in the program's path.
func TestBindPopups(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	ctx := t.Context()
	dir := filepath.Join(tmuxtest.Dir(t), "a 'b' #(touch x) \"c\" $d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	prog := filepath.Join(dir, "prog")
	if err := os.WriteFile(prog, []byte("#!/bin/sh\nprintf '%s\\n' \"popup in $PWD\" \"with $*\"\nread x\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, _, pane := session(t, s, "first", "sh", "-c", `cd "$1" && exec cat`, "sh", dir)
	outer, terminal := attach(t, s, first)
	waitText(t, outer, terminal, "detaches")
	for _, key := range []string{"", "uu", "C-x", ";", "\x01"} {
		if err := s.BindPopups(ctx, key, nil); err == nil {
			t.Errorf("key %q was bound", key)
		}
	}
	keys := []tmux.PopupKey{{Key: "d", Note: "a 'note' #{x}", Argv: []string{prog, "one two"}}}
	if err := s.BindPopups(ctx, "u", keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"\x02", "u", "d"} { // one by one, or tmux takes them for a paste
		if err := outer.SendKeys(ctx, terminal, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	screen := waitText(t, outer, terminal, "with one two "+string(pane.ID))
	if !strings.Contains(screen, "popup in "+filepath.Dir(dir)) {
		t.Errorf("screen:\n%s", screen)
	}
	if bound, err := s.BoundKey(ctx, "u"); err != nil || bound != "switch-client -T "+tmux.KeyTable {
		t.Errorf("bound: %q, %v", bound, err)
	}
	if bound, err := s.BoundKey(ctx, "d"); err != nil || bound != "detach-client" {
		t.Errorf("bound: %q, %v", bound, err)
	}
	if err := s.UnbindPopups(ctx, "u"); err != nil {
		t.Fatal(err)
	}
	if bound, err := s.BoundKey(ctx, "u"); err != nil || bound != "" {
		t.Errorf("bound: %q, %v", bound, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("a path was run")
	}
	lines, err := tmux.PopupBindings("u", keys)
	if err != nil || len(lines) != 2 {
		t.Errorf("%q, %v", lines, err)
	}
}
