package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/orchestrator"
	"muntin/recipes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shown keeps the messages for terminals.
type shown []string

func (s *shown) Message(_ context.Context, session, text string) error {
	*s = append(*s, session+"|"+text)
	return nil
}

// notifier makes one of a recipe's text, with a log that is returned.
func notifier(t *testing.T, text string) (*Notifier, *bytes.Buffer) {
	t.Helper()
	r, err := recipes.Parse("test", []byte("muntin: 1\nname: x\nagents: [{name: a}]\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	run := orchestrator.Run{Info: orchestrator.Info{Name: "x", Root: t.TempDir(), Repo: "/repo", Session: "s"}}
	n := New(Options{Recipe: r, Run: run, Environ: os.Environ(), Log: slog.New(slog.NewJSONHandler(&log, nil)), Now: time.Now})
	t.Cleanup(n.client.CloseIdleConnections)
	return n, &log
}

func notice(on recipes.Event) orchestrator.Notice {
	return orchestrator.Notice{
		Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Event: on, Agent: "ada", Task: "t1", Text: `^t1 is done: say "hi"; $(touch no)`,
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	n, log := notifier(t, `
hooks:
  - {on: task-done, run: [sh, -c, 'echo $MUNTIN_RUN $MUNTIN_AGENT $MUNTIN_TASK $MUNTIN_EVENT "$MUNTIN_TEXT" >hook; echo said']}
  - {on: exit, run: [sh, -c, 'echo why; exit 3']}
  - {on: exit, run: [no-such-program]}
`)
	if err := n.Notify(t.Context(), notice(recipes.EventTaskDone)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(n.Run.Root, "hook"))
	if want := "x ada t1 task-done ^t1 is done: say \"hi\"; $(touch no)\n"; err != nil || string(got) != want {
		t.Errorf("the hook wrote %q, want %q: %v", got, want, err)
	}
	err = n.Notify(t.Context(), notice(recipes.EventExit))
	if err == nil || !strings.Contains(err.Error(), "hook: sh: exit status 3") || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("two failing hooks: %v", err)
	}
	for _, want := range []string{`"output":"said\n"`, `"output":"why\n"`, `"code":3`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if err := n.Notify(t.Context(), notice(recipes.EventReady)); err != nil {
		t.Errorf("an event that nobody waits for: %v", err)
	}
}

func TestWays(t *testing.T) {
	t.Parallel()
	n, _ := notifier(t, `
notify:
  - {on: [task-done, ready], by: bell}
  - {on: [task-done], by: tmux}
  - {on: [ready], by: command, run: [sh, -c, 'echo $MUNTIN_EVENT >told']}
`)
	if err := n.Notify(t.Context(), notice(recipes.EventReady)); err == nil || !strings.Contains(err.Error(), "bell: there is no terminal") {
		t.Errorf("a bell without a terminal: %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.Run.Root, "told")); err != nil {
		t.Errorf("the others are not told when one fails: %v", err)
	}
	var out bytes.Buffer
	var on shown
	n.Terminal, n.Messenger = &out, &on
	if err := n.Notify(t.Context(), notice(recipes.EventTaskDone)); err != nil {
		t.Fatal(err)
	}
	if want := (shown{`s|x: ^t1 is done: say "hi"; $(touch no)`}); out.String() != "\a" || !slices.Equal(on, want) {
		t.Errorf("terminal %q, tmux %q", out.String(), on)
	}
}

// A storm of events tells a person some, and then how many there were.
func TestRate(t *testing.T) {
	t.Parallel()
	n, _ := notifier(t, "notify: [{on: [merged], by: tmux}]\n")
	now := time.Now()
	var on shown
	n.Now, n.Messenger = func() time.Time { return now }, &on
	for range most + 5 {
		if err := n.Notify(t.Context(), notice(recipes.EventMerged)); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(window)
	if err := n.Notify(t.Context(), notice(recipes.EventMerged)); err != nil {
		t.Fatal(err)
	}
	if len(on) != most+1 || !strings.HasSuffix(on[most], " (and 5 more)") {
		t.Errorf("%d were told, the last %q", len(on), on[len(on)-1])
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	var got []byte
	status := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/hook/s3cret" {
			t.Errorf("%s %s, %v", r.Method, r.URL, r.Header)
		}
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	n, _ := notifier(t, "notify: [{on: [run-done], by: webhook, url: "+server.URL+"/hook/s3cret}]\n")
	if err := n.Notify(t.Context(), notice(recipes.EventRunDone)); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(got, &m); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"version": 1.0, "run": "x", "repo": "/repo", "event": "run-done", "agent": "ada", "task": "t1", "time": "2026-11-30T12:00:00Z", "text": notice("").Text} {
		if m[key] != want {
			t.Errorf("%s is %v, want %v", key, m[key], want)
		}
	}
	for _, status = range []int{http.StatusTemporaryRedirect, http.StatusForbidden} {
		if err := n.Notify(t.Context(), notice(recipes.EventRunDone)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("status %d: %v", status, err)
		}
	}
	server.Close()
	if err := n.Notify(t.Context(), notice(recipes.EventRunDone)); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("without a server: %v", err)
	}
}

// The text of a notification is an argument, and cannot end the sequence it is in.
func TestDesktop(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin"} {
		argv := desktopArgv(system, "title", `" & do shell script "x`)
		if argv[len(argv)-1] != `" & do shell script "x` || argv[len(argv)-2] != "title" {
			t.Errorf("%s: %q", system, argv)
		}
	}
	if got := printable("a\x1b]0;b\x07c\nd"); got != "a]0;bcd" {
		t.Errorf("%q", got)
	}
}
