package panes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"muntin/agent/adapter"
	"muntin/agent/pty"
	"muntin/internal/state"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// superviseVar has this test binary be the supervisor of the agent whose
// folder it names.
const (
	superviseVar = "MUNTIN_TEST_SUPERVISE"
	sleepVar     = "MUNTIN_TEST_SLEEP" // the agent sleeps, and says nothing
)

func TestMain(m *testing.M) {
	dir := os.Getenv(superviseVar)
	if dir == "" {
		goleak.VerifyTestMain(m)
		return
	}
	name := filepath.Base(dir)
	// 8 KB, then the last line, then the end at once.
	argv := []string{"sh", "-c", `yes 0123456789012345678901234567890 | head -c 8192; echo "last of $1"`, "sh", name}
	if os.Getenv(sleepVar) != "" {
		argv = []string{"sleep", "1000"}
	}
	exit, err := pty.Run(context.Background(), pty.Options{
		Run: "r", Agent: name, Dir: state.AgentDir{Name: name, Path: dir, Socket: filepath.Join(dir, "s")},
		Argv: argv, WorkDir: dir, Adapter: adapter.For(nil), In: os.Stdin, Out: os.Stdout,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(exit.Code)
}

// What an agent writes in the moment before it ends is on its pane: tmux alone
// loses it (of 20 such panes, all).
func TestLastWordsOfSupervisedPanes(t *testing.T) {
	t.Parallel()
	const n = 20
	tmuxtest.Each(t, func(t *testing.T, server *tmux.Server) {
		base := tmuxtest.Dir(t)
		specs := make([]tmux.PaneSpec, n)
		for i := range specs {
			dir := filepath.Join(base, "a"+strconv.Itoa(i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			specs[i] = tmux.PaneSpec{Argv: []string{os.Args[0], "-test.run=^$"}, Env: map[string]string{superviseVar: dir}, Meta: map[string]string{"name": "a" + strconv.Itoa(i)}}
		}
		// A first session keeps the server, and the connection, from the start.
		hold := tmux.SessionSpec{Name: "hold", Dir: "/", Argv: []string{"sleep", "1000"}}
		if _, _, _, err := server.NewSession(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		if err := server.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		out, err := server.Spawn(t.Context(), tmux.SessionSpec{Name: "fleet", Dir: base}, []tmux.WindowSpec{{Panes: specs}})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for i, ref := range out.Panes {
			tmuxtest.Wait(t, "the agent has ended", func() bool {
				sn, err := server.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				p, err := sn.Pane(ref)
				if err != nil {
					t.Fatal(err)
				}
				return p.Dead
			})
			text, err := server.Capture(t.Context(), ref, tmux.CaptureOptions{Join: true, History: -1})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, fmt.Sprintf("last of a%d", i)) {
				seen++
			}
		}
		if seen != n {
			t.Errorf("the last lines of %d panes of %d were seen", seen, n)
		}
	})
}
