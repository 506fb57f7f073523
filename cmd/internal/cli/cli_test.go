package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

func testApp() (*app.App, *bytes.Buffer) {
	var out bytes.Buffer
	return &app.App{Streams: term.Plain(strings.NewReader(""), &out, &out), Theme: term.DefaultTheme(), Now: time.Now, Version: "v1", Dir: "."}, &out
}

func TestCommandsBearTheNamesTheyAreFoundBy(t *testing.T) {
	t.Parallel()
	a, _ := testApp()
	for _, c := range commands() {
		if got := c.make(a).Name(); got != c.name {
			t.Errorf("command %q is listed as %q", got, c.name)
		}
	}
}

func TestOnlyTheCommandThatIsCalledIsMade(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"--version": 0, "up demo": 1, "": len(commands()), "help up": len(commands()), "nosuch": len(commands())} {
		if got := len(wanted(commands(), strings.Fields(args))); got != want {
			t.Errorf("%q makes %d commands, want %d", args, got, want)
		}
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	t.Parallel()
	a, out := testApp()
	if code := Run(t.Context(), a, nil); code != app.ExitOK {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	for _, c := range commands() {
		if shown := strings.Contains(out.String(), "\n  "+c.name+" "); shown != (c.group != "") {
			t.Errorf("%s in the help: %v", c.name, shown)
		}
	}
}

func TestAPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	a, out := testApp()
	a.Layout.State = t.TempDir()
	a.Signals = nil // the command that is run will trip over it
	if code := Run(t.Context(), a, []string{"ls"}); code != app.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(out.String(), "internal error") || strings.Contains(out.String(), "goroutine") {
		t.Errorf("printed %q", out)
	}
	log, err := os.ReadFile(a.Layout.State + "/crash.log")
	if err != nil || !strings.Contains(string(log), "goroutine") {
		t.Errorf("the log: %q, %v", log, err)
	}
}

func TestUsageErrorsHaveTheirExitCode(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"nosuch", "todo nosuch", "up", "up a b", "ls extra", "ls --nosuch", "logs ada --json --screen", "send", "rollback ada"} {
		a, out := testApp()
		a.Layout.State = t.TempDir()
		a.Signals = func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
		if code := Run(t.Context(), a, strings.Fields(line)); code != app.ExitUsage {
			t.Errorf("muntin %s: exit code %d, want %d\n%s", line, code, app.ExitUsage, out)
		}
		if !strings.Contains(out.String(), "--help") {
			t.Errorf("muntin %s does not point to the help: %s", line, out)
		}
	}
}
