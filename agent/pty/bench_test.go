package pty

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	creack "github.com/creack/pty"

	"muntin/agent/adapter"
	"muntin/internal/durable"
	"muntin/internal/state"
)

// A benchPane is a command on a pty, bare or under a supervisor process.
type benchPane struct {
	b    *testing.B
	cmd  *exec.Cmd
	ptmx *os.File
	dir  state.AgentDir
}

func benchStart(b *testing.B, o superOptions, bare bool) *benchPane {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p := &benchPane{b: b}
	if bare {
		p.cmd = exec.Command(o.Argv[0], o.Argv[1:]...)
		p.cmd.Env = append(os.Environ(), o.Env...)
	} else {
		sockets, err := os.MkdirTemp("", "mb")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { os.RemoveAll(sockets) })
		p.dir = state.AgentDir{Name: "a", Path: filepath.Join(b.TempDir(), "a"), Socket: filepath.Join(sockets, "s")}
		o.Dir = p.dir
		raw, err := json.Marshal(o)
		if err != nil {
			b.Fatal(err)
		}
		p.cmd = exec.Command(exe)
		p.cmd.Env = append(os.Environ(), roleEnv+"=supervisor", "PTY_TEST_OPTIONS="+string(raw))
	}
	if p.ptmx, err = creack.StartWithSize(p.cmd, &creack.Winsize{Rows: 50, Cols: 200}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.ptmx.Close()
	})
	return p
}

// readUntil reads until the end mark comes, and answers the fence.
func (p *benchPane) readUntil(mark string) {
	p.b.Helper()
	buf, tail := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := p.ptmx.Read(buf)
		if err != nil {
			p.b.Fatalf("before %q came: %v; the end is %.200q", mark, err, tail)
		}
		tail = append(tail, buf[:n]...)
		if bytes.Contains(tail, []byte(mark)) {
			return
		}
		tail = tail[max(len(tail)-200, 0):]
	}
}

// cpu is what the process and its threads have run so far.
func (p *benchPane) cpu() time.Duration {
	p.b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		p.b.Skip("needs /proc")
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has just ended
		}
		if n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64); err == nil {
			sum += time.Duration(n)
		}
	}
	return sum
}

// private is the memory that only this process has, in bytes.
func (p *benchPane) private() int {
	p.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.cmd.Process.Pid))
	if err != nil {
		p.b.Skip("needs /proc")
	}
	sum := 0
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "Private_") && len(f) > 1 {
			n, _ := strconv.Atoi(f[1])
			sum += n << 10
		}
	}
	return sum
}

func (p *benchPane) client() *Client {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for {
		c, err := Dial(ctx, p.dir.Socket)
		if err == nil {
			p.b.Cleanup(func() { c.Close() })
			return c
		}
		if wait(ctx, 5*time.Millisecond) != nil {
			p.b.Fatal(err)
		}
	}
}

// awaitReady waits until the agent takes prompts.
func (p *benchPane) awaitReady() {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	err := p.client().Subscribe(ctx, 1, func(ev Event) error {
		if ev.Kind == EventReady {
			return errReached
		}
		return nil
	})
	if err == nil || ctx.Err() != nil {
		p.b.Fatal("it was never ready")
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkRelay is the supervisor's CPU time for a megabyte of text.
func BenchmarkRelay(b *testing.B) {
	const megabytes = 16
	script := `x=$(seq -f '%080.0f' 1200); i=0; while [ $i -lt ` + strconv.Itoa(megabytes*10) + ` ]; do printf '%s\n' "$x"; i=$((i+1)); done; echo the-end; exec sleep 1000`
	for b.Loop() {
		p := benchStart(b, superOptions{Argv: sh("read x; " + script), Adapter: adapter.Adapter{Name: "x"}}, false)
		p.client()
		before := p.cpu()
		start := time.Now()
		if _, err := p.ptmx.WriteString("\r"); err != nil {
			b.Fatal(err)
		}
		p.readUntil("the-end")
		b.ReportMetric(float64((p.cpu()-before).Microseconds())/1000/megabytes, "ms-cpu/MB")
		b.ReportMetric(megabytes/time.Since(start).Seconds(), "MB/s")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkKeystroke is a key's way to the program and back, with the
// supervisor and without it, in turn.
func BenchmarkKeystroke(b *testing.B) {
	o := superOptions{Argv: sh("stty raw -echo; printf up; exec cat"), Adapter: adapter.Adapter{Name: "x"}}
	panes := []*benchPane{benchStart(b, o, true), benchStart(b, o, false)}
	for _, p := range panes {
		p.readUntil("up")
	}
	var took [2][]time.Duration
	key := []byte{'k'}
	for b.Loop() {
		for i, p := range panes {
			start := time.Now()
			if _, err := p.ptmx.Write(key); err != nil {
				b.Fatal(err)
			}
			if _, err := p.ptmx.Read(key); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
		<-time.After(2 * time.Millisecond) // as people type: everything is asleep
	}
	bare, with := median(took[0]), median(took[1])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(bare.Microseconds())/1000, "ms-bare")
	b.ReportMetric(float64((with-bare).Microseconds())/1000, "ms-added")
}

// BenchmarkSendRead is from send to all bytes being read by the program: the
// supervisor says delivered when none are unread (FIONREAD), with the submit
// delay of the adapter at zero.
func BenchmarkSendRead(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	ad := quick(adapter.For([]string{"x"}))
	ad.ReadyOutput, ad.SubmitDelay, ad.Quiet = true, 0, 20*time.Millisecond
	o := superOptions{Argv: []string{exe}, Adapter: ad, Env: []string{roleEnv + "=raw", "RAW_LOG=" + os.DevNull, "RAW_PASTE=1"}}
	benchSend(b, o, StateDelivered)
}

// BenchmarkSendAccepted is from send to the built-in agent's word that it has
// the message.
func BenchmarkSendAccepted(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	o := superOptions{Argv: []string{exe}, Adapter: builtInAdapter(), Env: []string{roleEnv + "=agent", "AGENT_LOG=" + os.DevNull}}
	benchSend(b, o, StateAccepted)
}

// floor is what the disk takes for a message that is filed and for the line that
// says that it is typed, beside everything else.
func floor(b *testing.B, text string) time.Duration {
	b.Helper()
	dir := b.TempDir()
	log, err := durable.OpenLog(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	start := time.Now()
	err = errors.Join(durable.WriteFile(filepath.Join(dir, "m"), []byte(text), 0o600), log.Append(Event{Seq: 1}), log.Sync())
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func builtInAdapter() adapter.Adapter { a, _ := adapter.Lookup(adapter.BuiltIn); return a }

func benchSend(b *testing.B, o superOptions, until MessageState) {
	b.Helper()
	p := benchStart(b, o, false)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := p.ptmx.Read(buf); err != nil {
				return
			}
		}
	}()
	p.awaitReady()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	text := strings.Repeat("2 KB of text. ", 146)
	var took, disk []time.Duration
	for b.Loop() {
		disk = append(disk, floor(b, text))
		m := prompt(text)
		start := time.Now()
		info, err := Deliver(ctx, p.dir, Delivery{Message: m, Until: until})
		if err != nil || !info.State.Reached(until) {
			b.Fatalf("%+v, %v", info, err)
		}
		took = append(took, time.Since(start))
		if _, err := Deliver(ctx, p.dir, Delivery{Message: m, Until: StateDone}); err != nil {
			b.Fatal(err)
		}
	}
	mid := median(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(mid.Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(median(disk).Microseconds())/1000, "ms-disk")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
}

// BenchmarkRest is what an idle supervisor costs: memory that only it has,
// before anything and after a megabyte of output, with a screen made and given
// up; and CPU time in three seconds.
func BenchmarkRest(b *testing.B) {
	o := superOptions{Argv: bashArgv(b), Adapter: adapter.For(bashArgv(b)), Env: []string{"PS1=$ "}}
	for b.Loop() {
		p := benchStart(b, o, false)
		p.awaitReady()
		b.ReportMetric(float64(p.private())/(1<<20), "MB-start")
		before := p.cpu()
		<-time.After(3 * time.Second)
		b.ReportMetric(float64((p.cpu()-before).Microseconds())/1000, "ms-cpu-in-3s")
		if _, err := p.ptmx.WriteString("seq -f '%080.0f' 12000; echo the-'end'\r"); err != nil {
			b.Fatal(err)
		}
		p.readUntil("the-end\r")
		<-time.After(time.Second)
		b.ReportMetric(float64(p.private())/(1<<20), "MB-after-output")
	}
	b.ReportMetric(0, "ns/op")
}

func bashArgv(b *testing.B) []string {
	b.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		b.Skip("bash is not installed")
	}
	return []string{path, "--norc", "--noprofile", "-i"}
}

// BenchmarkRecord records a megabyte of text in pieces as a pty gives them.
func BenchmarkRecord(b *testing.B) {
	text := bytes.Repeat([]byte("\x1b[32mok\x1b[m  some/path/of/a/package 0.123s and more of the line\r\n"), 1<<20/64)
	b.SetBytes(int64(len(text)))
	r, err := openRecorder(filepath.Join(b.TempDir(), "screen.cast"), 0, []string{"a-secret-value", "another-secret"})
	if err != nil {
		b.Fatal(err)
	}
	r.resize(80, 24)
	for b.Loop() {
		for at := 0; at < len(text); at += 4000 {
			r.output(text[at:min(at+4000, len(text))])
		}
	}
	if err := r.close(0); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkScan reads a megabyte of coloured text.
func BenchmarkScan(b *testing.B) {
	text := bytes.Repeat([]byte("\x1b[32mok\x1b[m  some/path/of/a/package 0.123s and more of the line\r\n"), 1<<20/64)
	b.SetBytes(int64(len(text)))
	var s scanner
	for b.Loop() {
		s.feed(text)
	}
	runtime.KeepAlive(&s)
}
