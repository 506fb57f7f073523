package tmux_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// waitChannel is WaitFor with an end.
func waitChannel(t *testing.T, s *tmux.Server, channel string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return s.WaitFor(ctx, channel)
}

// client waits for the one client that is attached.
func client(t *testing.T, s *tmux.Server) tmux.Client {
	t.Helper()
	var list []tmux.Client
	tmuxtest.Wait(t, "one client is attached", func() bool {
		var err error
		if list, err = s.Clients(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(list) == 1
	})
	return list[0]
}

func TestClients(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		first, _, _ := session(t, s, "first")
		second, _, _ := session(t, s, "second")
		if list, err := s.Clients(ctx); err != nil || len(list) != 0 {
			t.Error(list, err)
		}
		_, _ = attach(t, s, first)
		c := client(t, s)
		if c.Session != first || c.Cols != 200 || c.Control || c.ReadOnly || c.PID == 0 || c.Term == "" || !strings.HasPrefix(c.Name, "/dev/") {
			t.Errorf("%+v", c)
		}
		if err := s.SwitchClient(ctx, c.Name, second); err != nil {
			t.Error(err)
		}
		if c := client(t, s); c.Session != second {
			t.Errorf("%+v", c)
		}
		mustBe(t, "SwitchClient", s.SwitchClient(ctx, "/dev/none", first), tmux.ErrNoSuchClient)
		mustBe(t, "SwitchClient", s.SwitchClient(ctx, "", first), tmux.ErrNoSuchClient)
		mustBe(t, "DetachClient", s.DetachClient(ctx, ""), tmux.ErrNoSuchClient)
		mustBe(t, "Popup", s.Popup(ctx, "", tmux.PopupSpec{Argv: idle(), Dir: "/"}), tmux.ErrNoSuchClient)
		mustBe(t, "Menu", s.Menu(ctx, "x", "", tmux.MenuItem{}), tmux.ErrNoSuchClient)
		if err := s.DetachAll(ctx, first); err != nil { // not where it is
			t.Error(err)
		}
		client(t, s)
		if err := s.DetachClient(ctx, c.Name); err != nil {
			t.Error(err)
		}
		tmuxtest.Wait(t, "nobody is attached", func() bool { list, err := s.Clients(ctx); return err == nil && len(list) == 0 })
		_, _ = attach(t, s, first)
		client(t, s)
		if err := s.DetachAll(ctx, first); err != nil {
			t.Error(err)
		}
		tmuxtest.Wait(t, "nobody is attached", func() bool { list, err := s.Clients(ctx); return err == nil && len(list) == 0 })
	})
}

func TestPopup(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx, dir := t.Context(), t.TempDir()
		id, _, ref := session(t, s, "a")
		outer, terminal := attach(t, s, id)
		name := client(t, s).Name
		file := filepath.Join(dir, "got")
		script := `printf '<%s|%s|%s>' "$1" "$V" "$(pwd)" >"$2"; echo shown-now; read line`
		text := "-x #{pid} #(id) $HOME %H;"
		spec := tmux.PopupSpec{
			Argv: []string{"sh", "-c", script, "sh", text, file}, Dir: dir, Env: map[string]string{"V": text}, Title: text, Cols: 60, Rows: 10,
		}
		done := make(chan error, 1)
		go func() { done <- s.Popup(ctx, name, spec) }()
		waitFile(t, file, "<"+text+"|"+text+"|"+dir+">")
		screen := waitText(t, outer, terminal, "shown-now")
		if s.Version().AtLeast(3, 3) && !strings.Contains(screen, text) {
			t.Errorf("no title:\n%s", screen)
		}
		pane(t, s, ref) // others get through meanwhile
		if err := outer.SendKeys(ctx, terminal, []byte("\r")); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		var refused *tmux.CommandError
		err := s.Popup(ctx, name, tmux.PopupSpec{Argv: []string{"sh", "-c", "exit 7"}, Dir: "/"})
		if !errors.As(err, &refused) || !strings.Contains(refused.Text, "7") {
			t.Errorf("status 7: %v", err)
		}
		// Called off, it is closed.
		called, cancel := context.WithCancel(ctx)
		go func() {
			done <- s.Popup(called, name, tmux.PopupSpec{Argv: []string{"sh", "-c", "echo to-be-closed; exec sleep 1000"}, Dir: "/"})
		}()
		waitText(t, outer, terminal, "to-be-closed")
		cancel()
		mustBe(t, "called off", <-done, context.Canceled)
		tmuxtest.Wait(t, "the popup is gone", func() bool {
			text, err := outer.Capture(ctx, terminal, tmux.CaptureOptions{})
			return err == nil && !strings.Contains(text, "to-be-closed")
		})
	})
}

func TestMenu(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		id, _, _ := session(t, s, "a")
		outer, terminal := attach(t, s, id)
		name := client(t, s).Name
		text := "-x #{pid} #(id) #[fg=red] $HOME ~ %H%% \"q\" 'q' \\ {};"
		done := make(chan error, 1)
		go func() {
			done <- s.Menu(ctx, name, "Title "+text,
				tmux.MenuItem{Name: "-first", Key: 'f', Cmds: []tmux.Cmd{tmux.SignalCmd("never")}},
				tmux.MenuItem{},
				tmux.MenuItem{Name: "Item " + text, Key: 'k', Cmds: []tmux.Cmd{{"set-buffer", "-b", "chosen", "--", text}, tmux.SignalCmd("chosen")}})
		}()
		waitText(t, outer, terminal, "-first")
		screen := waitText(t, outer, terminal, "Item "+text)
		if !strings.Contains(screen, "Title "+text) || !strings.Contains(screen, "-first") {
			t.Errorf("menu:\n%s", screen)
		}
		if err := outer.SendKeys(ctx, terminal, []byte("k")); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-done, waitChannel(t, s, "chosen")); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Buffer(ctx, "chosen"); err != nil || got != text {
			t.Errorf("the command came as %q, %v", got, err)
		}
		if s.Menu(ctx, name, "", tmux.MenuItem{Name: "x", Key: '\n'}) == nil {
			t.Error("a key that is none was taken")
		}
	})
}

func TestHooks(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		id, window, ref := session(t, s, "a", "sh", "-c", "read line; exit 3")
		text := "#(id) ;\"'"
		err := errors.Join(
			s.SetHook(ctx, window, "pane-died", tmux.Cmd{"set-buffer", "-b", "hooked", "--", text}, tmux.SignalCmd("died")),
			s.SetHook(ctx, id, "client-attached", tmux.SignalCmd("never")),
			s.UnsetHook(ctx, id, "client-attached"), s.UnsetHook(ctx, id, "client-attached"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendKeys(ctx, ref, []byte("\r")); err != nil {
			t.Fatal(err)
		}
		if err := waitChannel(t, s, "died"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Buffer(ctx, "hooked"); err != nil || got != text {
			t.Errorf("the hook's command came as %q, %v", got, err)
		}
		if !pane(t, s, ref).Dead {
			t.Error("the pane is not dead")
		}
		// A hook of a person's own stays beside ours, and goes on when ours has gone.
		own := tmux.Cmd{"set-hook", "-w", "-t", string(window), "pane-died[0]", "display-message hi"}
		if _, err := s.Do(ctx, own); err != nil {
			t.Fatal(err)
		}
		if err := s.UnsetHook(ctx, window, "pane-died"); err != nil {
			t.Error(err)
		}
		replies, err := s.Do(ctx, tmux.Cmd{"show-hooks", "-w", "-t", string(window)})
		if err != nil || !strings.Contains(replies[0], "display-message hi") || strings.Contains(replies[0], "hooked") {
			t.Errorf("hooks %q, %v", replies, err)
		}
		if _, err := s.Do(ctx, tmux.Cmd{"new-session", "-d", "-s", "foreign", "sleep", "1000"}); err != nil {
			t.Fatal(err)
		}
		found, err := s.FindSession(ctx, "foreign")
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, "foreign", s.SetHook(ctx, found.ID, "client-attached", tmux.SignalCmd("x")), tmux.ErrForeign)
		mustBe(t, "missing", s.SetHook(ctx, tmux.SessionID("$77"), "client-attached", tmux.SignalCmd("x")), tmux.ErrNoSuchSession)
		mustBe(t, "missing", s.UnsetHook(ctx, tmux.PaneID("%77"), "pane-died"), tmux.ErrNoSuchPane)
		if s.SetHook(ctx, id, "pane-died[0]", tmux.SignalCmd("x")) == nil || s.SetHook(ctx, id, "no-such-hook", tmux.SignalCmd("x")) == nil {
			t.Error("a bad name was taken")
		}
	})
}

func TestWaitFor(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		session(t, s, "a")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.WaitFor(ctx, "never") }()
		if err := s.Signal(t.Context(), "before"); err != nil {
			t.Error(err)
		}
		if err := s.WaitFor(t.Context(), "before"); err != nil {
			t.Error(err)
		}
		cancel()
		mustBe(t, "called off", <-done, context.Canceled)
		if s.Signal(t.Context(), "-x") == nil || s.WaitFor(t.Context(), "") == nil {
			t.Error("a bad name was taken")
		}
	})
}
