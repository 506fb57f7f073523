package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/agent"
)

func TestBash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, command string
		want          string
		isError       bool
	}{
		{"output", "echo one; echo two >&2; echo three", "one\ntwo\nthree", false},
		{"none", "true", "(no output)", false},
		{"code", "echo no; exit 3", "no\n\nCommand exited with code 3", true},
		{"code alone", "exit 1", "Command exited with code 1", true},
		{"signal", "kill -KILL $$", "Command exited with code 137", true},
		{"folder", "basename \"$PWD\"", "work", false},
		{"stdin is empty", "cat", "(no output)", false},
		{"bad utf-8", `printf 'a\377b'`, "a\uFFFDb", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, err := newEnv(t).try("bash", args{"command": c.command})
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(res); got != c.want || res.IsError != c.isError {
				t.Errorf("got %q, error %v; want %q, error %v", got, res.IsError, c.want, c.isError)
			}
		})
	}
}

func TestBashBadArguments(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fails("bash", args{"command": " "}, "command is empty")
	for _, timeout := range []any{0, -1, 1e10, "x"} {
		e.fails("bash", args{"command": "true", "timeout": timeout}, "")
	}
	if err := os.Remove(e.dir); err != nil {
		t.Fatal(err)
	}
	e.fails("bash", args{"command": "true"}, "working folder does not exist")
}

func TestBashLongOutputIsSpilled(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	res, err := e.try("bash", args{"command": "seq 1 5000"})
	if err != nil {
		t.Fatal(err)
	}
	var d bashDetails
	if err := json.Unmarshal(res.Details, &d); err != nil {
		t.Fatal(err)
	}
	text := textOf(res)
	if !strings.HasPrefix(text, "3001\n") || !strings.HasSuffix(text, "5000\n\n[Showing lines 3001-5000 of 5000. Full output: "+d.FullOutput+"]") {
		t.Errorf("got %q", clip(text))
	}
	info, err := os.Stat(d.FullOutput)
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(d.FullOutput) != e.spill {
		t.Fatalf("%s: %v, %v", d.FullOutput, info, err)
	}
	b, err := os.ReadFile(d.FullOutput)
	if err != nil || !strings.HasPrefix(string(b), "1\n2\n") || strings.Count(string(b), "\n") != 5000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	e.must("bash", args{"command": "seq 1 5000"})
	if kept, err := os.ReadDir(e.spill); err != nil || len(kept) != 1 {
		t.Errorf("the same output is kept %d times, %v", len(kept), err)
	}
}

func TestBashLongLine(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *Options) { o.SpillDir = "" })
	res, err := e.try("bash", args{"command": "echo first; head -c 300000 /dev/zero | tr '\\0' z; printf END"})
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(res)
	if !strings.Contains(text, "END\n\n[Showing last 50.0KB of line 2 (line is 293.0KB).") || !strings.Contains(text, "Full output not kept: there is no folder for it]") {
		t.Errorf("got %q", clip(text))
	}
}

func TestBashTimeoutEndsTheGroup(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	res, err := e.try("bash", args{"command": "sleep 300 & echo $! > pid; echo begun; wait", "timeout": 1.5})
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(res); !res.IsError || got != "begun\n\nCommand timed out after 1.5 seconds" {
		t.Errorf("got %q", got)
	}
	e.gone("pid")
}

func TestBashDefaultTimeout(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *Options) { o.BashTimeout = 300 * time.Millisecond })
	res, err := e.try("bash", args{"command": "sleep 300"})
	if err != nil || !strings.Contains(textOf(res), "timed out after 0.3 seconds") {
		t.Errorf("got %q, %v", textOf(res), err)
	}
}

// A background process that keeps the pipe must not hold the call, and ends
// with it; one without the pipe ends too.
func TestBashBackground(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	got := e.must("bash", args{"command": "sleep 300 & echo $! > a; sleep 300 >/dev/null 2>&1 & echo $! > b; echo done", "timeout": 60})
	if got != "done" {
		t.Errorf("got %q", got)
	}
	e.gone("a")
	e.gone("b")
}

// What a process substitution still writes after the shell's exit is not lost.
func TestBashDrains(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if !strings.HasSuffix(e.set.shell, "bash") {
		t.Fatal("bash is not installed")
	}
	if got := e.must("bash", args{"command": "echo x > >(cat)"}); got != "x" {
		t.Errorf("got %q", got)
	}
}

func TestBashAbort(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	tools, err := e.set.Tools("bash")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string // updates come from one goroutine, which has ended when Run returns
	update := func(r agent.ToolResult) {
		seen = append(seen, textOf(r))
		if strings.Contains(textOf(r), "begun") {
			cancel(errors.New("the person said so"))
		}
	}
	res, err := tools[0].Run(ctx, json.RawMessage(`{"command":"echo $$ > pid; echo begun; sleep 300"}`), update)
	if err != nil || !res.IsError || textOf(res) != "begun\n\nCommand aborted" {
		t.Errorf("got %q, %v", textOf(res), err)
	}
	if len(seen) == 0 {
		t.Error("no update was sent")
	}
	e.gone("pid")
}

// gone fails unless the process in the file has ended, or ends soon.
func (e *env) gone(file string) {
	e.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(e.content(file)))
	if err != nil {
		e.t.Fatal(err)
	}
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || zombie(pid) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			e.t.Fatalf("process %d is still there", pid)
		}
	}
}

// zombie reports a process that has ended and whose new parent has not noticed.
func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(b), ") Z ")
}

func TestTailOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, want string
		by             string
		partial        bool
	}{
		{"empty", "", "", "", false},
		{"short", "a\nb\n", "a\nb", "", false},
		{"lines", strings.Repeat("x\n", MaxLines+1), strings.TrimSuffix(strings.Repeat("x\n", MaxLines), "\n"), "lines", false},
		{"bytes", strings.Repeat("y", MaxBytes) + "\nend\n", "end", "bytes", false},
		{"exactly", strings.Repeat("y", MaxBytes) + "\n", strings.Repeat("y", MaxBytes), "", false},
		{"long line", "a\n" + strings.Repeat("é", MaxBytes), strings.Repeat("é", MaxBytes/2), "bytes", true},
	} {
		got, cut := tailOf(c.in)
		if got != c.want || cut.By != c.by || cut.LastPartial != c.partial {
			t.Errorf("%s: got %q, %+v", c.name, clip(got), cut)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0B", 512: "512B", 1024: "1.0KB", 12595: "12.3KB", 50 << 10: "50.0KB", 1258291: "1.2MB"} {
		if got := size(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
