package tmux_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// connect gives the server a control connection for the length of the test.
func connect(t testing.TB, s *tmux.Server) {
	t.Helper()
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// transports runs a test over each way to the server, with every tmux binary.
// start makes the first session, without which there is nothing to connect to.
func transports(t *testing.T, test func(t *testing.T, s *tmux.Server, ref tmux.PaneRef)) {
	t.Helper()
	for _, way := range []string{"process", "control"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
				_, _, ref := session(t, s, "first")
				if way == "control" {
					connect(t, s)
				}
				test(t, s, ref)
				if s.Connected() != (way == "control") {
					t.Errorf("connected: %v", s.Connected())
				}
			})
		})
	}
}

// What Do promises holds over both transports, to the letter of the errors.
func TestDoContract(t *testing.T) {
	t.Parallel()
	print := func(text string) tmux.Cmd { return tmux.Cmd{"display-message", "-p", text} }
	long := strings.Repeat("long line ", 50_000)
	cases := map[string]struct {
		cmds []tmux.Cmd
		want []string
		err  string
		kind error
	}{
		"none":       {nil, nil, "", nil},
		"one":        {[]tmux.Cmd{print("a")}, []string{"a"}, "", nil},
		"silent":     {[]tmux.Cmd{{"set-option", "-g", "@x", "1"}}, []string{""}, "", nil},
		"empty line": {[]tmux.Cmd{print("")}, []string{""}, "", nil},
		"several":    {[]tmux.Cmd{print("a"), {"set-option", "-g", "@x", "1"}, print("b")}, []string{"a", "", "b"}, "", nil},
		"percent":    {[]tmux.Cmd{print("%%0 %%end 1 2 1"), print("%%begin 1 2 1")}, []string{"%0 %end 1 2 1", "%begin 1 2 1"}, "", nil},
		"lines": {
			[]tmux.Cmd{{"set-option", "-g", "@x", "a\n%end 1 1 1\n\n"}, print("#{@x}")},
			[]string{"", "a\n%end 1 1 1\n\n"}, "", nil,
		},
		"long": {[]tmux.Cmd{{"set-option", "-g", "@x", long}, print("#{@x}")}, []string{"", long}, "", nil},
		"fails first": {
			[]tmux.Cmd{{"kill-pane", "-t", "%4711"}, print("not reached")},
			nil, "tmux kill-pane: can't find pane: %4711", tmux.ErrNoSuchPane,
		},
		"fails later": {
			[]tmux.Cmd{print("a"), {"kill-session", "-t", "=nosuch"}, print("not reached")},
			[]string{"a"}, "tmux kill-session: can't find session: nosuch", tmux.ErrNoSuchSession,
		},
		"fails inside": {
			[]tmux.Cmd{print("a"), {"if-shell", "-F", "1", "kill-pane -t %4711"}, print("b")},
			[]string{"a", "", "b"}, "tmux display-message: can't find pane: %4711", tmux.ErrNoSuchPane,
		},
		"nested": {
			[]tmux.Cmd{{"if-shell", "-F", "1", `if-shell -F 1 "display-message -p x ; display-message -p y" ; display-message -p z`}, print("b")},
			[]string{"x\ny\nz", "b"}, "", nil,
		},
		"unknown flag": {[]tmux.Cmd{{"kill-pane", "-y"}}, nil, "kill-pane", nil},
		"unknown":      {[]tmux.Cmd{print("a"), {"no-such-command"}}, nil, "unknown command: no-such-command", nil},
		"no name":      {[]tmux.Cmd{{"kill-pane;"}}, nil, "not a command name", nil},
		"nul":          {[]tmux.Cmd{print("a\x00b")}, nil, "NUL", nil},
	}
	var mu sync.Mutex
	texts := map[string]string{} // by binary and case, of the transport that was first
	transports(t, func(t *testing.T, s *tmux.Server, _ tmux.PaneRef) {
		for name, tc := range cases {
			got, err := s.Do(t.Context(), tc.cmds...)
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s: replies %.200q, want %.200q", name, got, tc.want)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if (err == nil) != (tc.err == "") || !strings.Contains(text, tc.err) {
				t.Errorf("%s: error %q, want %q", name, text, tc.err)
			}
			if tc.kind != nil && !errors.Is(err, tc.kind) {
				t.Errorf("%s: error %v is not %v", name, err, tc.kind)
			}
			mu.Lock()
			key := s.Version().Raw + " " + name
			if other, ok := texts[key]; ok && other != text {
				t.Errorf("%s: the transports differ:\n%s\n%s", key, other, text)
			}
			texts[key] = text
			mu.Unlock()
		}
	})
}

// The session that the client is attached to can be ended over it, and the
// connection comes back on another.
func TestKillTheSessionWeAreAttachedTo(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		var ids []tmux.SessionID
		names := []string{"a", "b", "c"}
		for _, name := range names {
			id, _, _ := session(t, s, name)
			ids = append(ids, id)
		}
		connect(t, s)
		for i, id := range ids[:2] {
			if err := s.KillSession(t.Context(), id, names[i]); err != nil {
				t.Error(err)
			}
			if ok, err := s.HasSession(t.Context(), names[i]); ok || err != nil {
				t.Errorf("session %s: %v, %v", names[i], ok, err)
			}
		}
		tmuxtest.Wait(t, "the connection is back", s.Connected)
		if err := s.KillServer(t.Context()); err != nil {
			t.Error(err)
		}
		_, err := s.Snapshot(t.Context())
		mustBe(t, "Snapshot", err, tmux.ErrNoServer)
	})
}
