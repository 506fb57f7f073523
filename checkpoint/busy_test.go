package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const busyEnv = "CHECKPOINT_TEST_BUSY"

// busyChild is a process that adds a line to a file again and again, until its input ends.
func busyChild() bool {
	file := os.Getenv(busyEnv)
	if file == "" {
		return false
	}
	stop := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		close(stop)
	}()
	for n := 1; ; n++ {
		select {
		case <-stop:
			return true
		default:
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err == nil {
			_, err = fmt.Fprintln(f, n)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			fmt.Println("error", err)
			return true
		}
		if n == 1 {
			fmt.Println("ready")
		}
	}
}

// startBusy starts the process; stop ends it.
func startBusy(r *repo, file string) (stop func()) {
	r.t.Helper()
	exe, err := os.Executable()
	must(r, err)
	cmd := exec.Command(exe)
	cmd.Env = append(gitEnv(), busyEnv+"="+r.path(file))
	in, err := cmd.StdinPipe()
	must(r, err)
	out, err := cmd.StdoutPipe()
	must(r, err)
	must(r, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		r.t.Fatalf("the other process says %q, %v", line, err)
	}
	return func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			r.t.Error(err)
		}
	}
}

// lines checks that no line of the other process is missing, and returns the first.
func (r *repo) lines(text string) string {
	r.t.Helper()
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	before := 0
	for i, line := range all {
		n, err := strconv.Atoi(line)
		if err != nil && i == 0 {
			continue // the content that a restore gave it
		}
		if err != nil || before > 0 && n != before+1 {
			r.t.Fatalf("line %d is %q after %d", i, line, before)
		}
		before = n
	}
	return all[0]
}

// TestRestoreBusyProcess restores under another process that never stops to
// write: that is detected, tried again and told, and nothing is lost. When
// the process has ended the restore goes through, and its undo brings back all that it wrote.
func TestRestoreBusyProcess(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	names := []string{"a", "b", "deep/d"}
	for _, f := range names {
		r.write(f, "old\n")
	}
	r.write("log", "old\n")
	s := r.open(Options{})
	target, _ := r.save(s, Meta{})
	change := func() {
		for _, f := range append(names, "extra") {
			r.write(f, "new\n")
		}
	}
	r.remove("log")
	stop := startBusy(r, "log")
	change()
	deadline := time.Now().Add(time.Minute)
	for {
		first := r.lines(r.read("log"))
		rep, err := s.Restore(t.Context(), target)
		if err == nil { // the process had no turn all the while
			change()
			if time.Now().After(deadline) {
				t.Fatal("another process was never in the way")
			}
			continue
		}
		if !errors.Is(err, ErrBusy) || !slices.Contains(paths(rep.Conflicts), "log") {
			t.Fatalf("%+v, %v", rep, err)
		}
		if got := r.lines(r.read("log")); got != first {
			t.Errorf("the file of the other process began with %q and begins with %q", first, got)
		}
		break
	}
	for _, f := range append(names, "extra") {
		if got := r.read(f); got != "new\n" {
			t.Errorf("%s was changed: %q", f, got)
		}
	}
	stop()
	wrote := r.read("log")
	rep, err := s.Restore(t.Context(), target)
	if err != nil || rep.Now.Tree != target.Tree || s.interrupted() {
		t.Fatalf("after the other process: %+v, %v", rep, err)
	}
	if _, err := s.Undo(t.Context()); err != nil || r.read("log") != wrote {
		t.Errorf("what the other process wrote is in no checkpoint: %v", err)
	}
}
