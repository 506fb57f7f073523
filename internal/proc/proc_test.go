package proc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunCapturesAndReports(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}})
	var exit *ExitError
	if !errors.As(err, &exit) || res.Code != 3 || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if want := "sh: exit status 3: err"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestRunMergesStreamsAsTheyCome(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "echo a; echo b >&2; echo c"}, Merge: true})
	if err != nil || string(res.Stdout) != "a\nb\nc\n" || len(res.Stderr) > 0 {
		t.Errorf("%q, %q, %v", res.Stdout, res.Stderr, err)
	}
}

func TestRunReportsTheCPUTime(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}})
	if err != nil || res.CPU <= 0 || res.CPU > 2*res.Duration+time.Second {
		t.Errorf("%v of CPU in %v, %v", res.CPU, res.Duration, err)
	}
}

func TestRunPassesArgumentsAsTheyAre(t *testing.T) {
	t.Parallel()
	arg := "$(touch x); `id` 'a' \"b\" \\ \n*"
	res, err := Run(t.Context(), Spec{Argv: []string{"printf", "%s", arg}})
	if err != nil || string(res.Stdout) != arg {
		t.Errorf("%q, %v", res.Stdout, err)
	}
}

func TestRunUsesDirEnvAndStdin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	res, err := Run(t.Context(), Spec{
		Argv: []string{"/bin/sh", "-c", "pwd -P; echo $X; cat"}, Dir: dir, Env: []string{"X=1"}, Stdin: strings.NewReader("in"),
	})
	if err != nil || !strings.HasSuffix(string(res.Stdout), "\n1\nin") {
		t.Errorf("%q, %v", res.Stdout, err)
	}
}

func TestTheChildHasNoTerminal(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "(: </dev/tty) 2>/dev/null && echo reached; ps -o sid= -o pid= -p $$ | xargs"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(res.Stdout))
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("session and process: %q", res.Stdout)
	}
}

func TestRunReportsAMissingCommand(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Spec{Argv: []string{"no-such-command-here"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-command-here") {
		t.Errorf("%v", err)
	}
	if _, err := Run(t.Context(), Spec{}); err == nil {
		t.Error("no command at all was taken")
	}
}

func TestRunKeepsTheEndOfLongOutput(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"}, Keep: 100})
	if err != nil || len(res.Stdout) != 100 || !strings.HasSuffix(string(res.Stdout), "line 1999\n") {
		t.Errorf("%d bytes, %v", len(res.Stdout), err)
	}
}

func TestTimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	done := make(chan struct{})
	var res Result
	var err error
	go func() {
		defer close(done)
		res, err = Run(t.Context(), Spec{
			Argv:    []string{"sh", "-c", "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000"},
			Stdout:  w,
			Timeout: 100 * time.Millisecond, Grace: 100 * time.Millisecond,
		})
		w.Close()
	}()
	line, readErr := bufio.NewReader(r).ReadString('\n')
	if readErr != nil {
		t.Fatal(readErr)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	<-done
	if !res.TimedOut || err == nil {
		t.Errorf("%+v, %v", res, err)
	}
	wantGone(t, line)
}

func TestReapKillsWhatTheShellLeft(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"}, Reap: true})
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, string(res.Stdout))
}

func TestADaemonThatKeepsThePipeDoesNotHang(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "sleep 1000 & echo $!"}, Grace: 50 * time.Millisecond, Reap: true})
	if err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	wantGone(t, string(res.Stdout))
}

func TestContextEndsTheProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	go func() {
		_, _ = bufio.NewReader(r).ReadString('\n')
		cancel(errors.New("enough"))
		_, _ = io.Copy(io.Discard, r)
	}()
	res, err := Run(ctx, Spec{Argv: []string{"sh", "-c", "echo ready; exec sleep 1000"}, Stdout: w})
	w.Close()
	if err == nil || !strings.Contains(err.Error(), "enough") || res.Signal != syscall.SIGTERM {
		t.Errorf("%+v, %v", res, err)
	}
}

// wantGone waits until the process of the pid in text is no more.
func wantGone(t *testing.T, text string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d is still there", pid)
		}
	}
}
