package cli_test

import (
	"bytes"
	"encoding/json"
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

	"muntin/agent/llm/llmtest"
	"muntin/internal/gittest"
)

// These benchmarks run the real binary against the raw floor of what it does,
// in turn, so that a noisy machine slows both. They report medians; see
// docs/performance.md. Each needs a handful of rounds: -benchtime 20x.

// build builds a program as script/build does and returns its path.
func build(b *testing.B, pkg, dir string) string {
	b.Helper()
	out := filepath.Join(b.TempDir(), "muntin") // agents of our own are known by this name
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building %s: %v\n%s", pkg, err, msg)
	}
	return out
}

func buildMuntin(b *testing.B) string { return build(b, "muntin/cmd/muntin", ".") }

// run runs a command to its end and returns how long it took and its CPU time.
func run(b *testing.B, cmd *exec.Cmd) (wall, cpu time.Duration) {
	b.Helper()
	var msg bytes.Buffer
	cmd.Stderr = &msg
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %v\n%s", cmd.Args, err, msg.String())
	}
	return time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func median(list []time.Duration) time.Duration {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ratio is the median of the pairs' ratios: a slow spell hits both of a pair.
func ratio(a, b []time.Duration) float64 {
	var list []float64
	for i := range a {
		list = append(list, float64(a[i])/float64(b[i]))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkStart measures `muntin --version` against an empty Go program: one
// run of each in turn, as commands are run, and ten of each in a row, where the
// small one finds all of itself in the processor's caches.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	write(b, filepath.Join(dir, "go.mod"), "module empty\n\ngo 1.26\n")
	write(b, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	empty, muntin := build(b, ".", dir), buildMuntin(b)
	b.Run("in turn", func(b *testing.B) { startUp(b, 1, muntin, empty) })
	b.Run("in a row", func(b *testing.B) { startUp(b, 10, muntin, empty) })
}

// startUp runs both programs runs times each, in turn, and that ten times a
// round.
func startUp(b *testing.B, runs int, muntin, empty string) {
	series := func(argv ...string) (wall, cpu time.Duration) {
		for range runs {
			w, c := run(b, exec.Command(argv[0], argv[1:]...))
			wall, cpu = wall+w, cpu+c
		}
		return wall / time.Duration(runs), cpu / time.Duration(runs)
	}
	var ours, floor, oursCPU, floorCPU []time.Duration
	for b.Loop() {
		for range 10 {
			w, c := series(muntin, "--version")
			ours, oursCPU = append(ours, w), append(oursCPU, c)
			w, c = series(empty)
			floor, floorCPU = append(floor, w), append(floorCPU, c)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(median(ours)), "ms")
	b.ReportMetric(ms(median(floor)), "ms-floor")
	b.ReportMetric(ratio(ours, floor), "x-wall")
	b.ReportMetric(ms(median(oursCPU)), "cpu-ms")
	b.ReportMetric(ratio(oursCPU, floorCPU), "x-cpu")
}

// BenchmarkUp10 measures `muntin up` with ten scripted agents, to all of them
// being ready, against a shell loop of ten `git worktree add` and
// `tmux split-window`.
func BenchmarkUp10(b *testing.B) {
	muntin := buildMuntin(b)
	home := shortDir(b)
	env := append(os.Environ(), "XDG_STATE_HOME="+home+"/state", "XDG_RUNTIME_DIR="+home, "MUNTIN_TMUX_SOCKET="+home+"/t.sock",
		"LC_ALL=C.UTF-8", "MUNTIN_SCRIPT_SPEED=0", "GIT_CONFIG_GLOBAL=/dev/null")
	repo := filepath.Join(home, "repo")
	benchRepo(b, repo)
	write(b, filepath.Join(home, "ten.yaml"), "muntin: 1\nname: ten\nmodel: scripted/demo\nagents:\n  - {name: a, role: idle, count: 10}\n")
	floorScript := `set -e
tmux -f /dev/null -S "$1/floor.sock" new-session -d -s floor -x 200 -y 50
i=0
while [ $i -lt 10 ]; do
	git -C "$1/repo" worktree add -q -b "floor/$2/$i" "$1/floor/$2/$i" HEAD
	tmux -S "$1/floor.sock" split-window -d -t floor: -c "$1/floor/$2/$i"
	tmux -S "$1/floor.sock" select-layout -t floor: tiled
	i=$((i + 1))
done`
	command := func(argv ...string) *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env, cmd.Dir = env, repo
		return cmd
	}
	b.Cleanup(func() {
		_ = command(muntin, "down", "--all").Run()
		_ = command("tmux", "-S", home+"/floor.sock", "kill-server").Run()
	})
	var ours, floor []time.Duration
	n := 0
	for b.Loop() {
		n++
		w, _ := run(b, command(muntin, "up", home+"/ten.yaml"))
		ours = append(ours, w)
		run(b, command(muntin, "down"))
		w, _ = run(b, command("sh", "-c", floorScript, "sh", home, strconv.Itoa(n)))
		floor = append(floor, w)
		run(b, command("tmux", "-S", home+"/floor.sock", "kill-server"))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(median(ours)), "ms")
	b.ReportMetric(ms(median(floor)), "ms-floor")
	b.ReportMetric(ratio(ours, floor), "x-wall")
}

// BenchmarkFirstRequest measures the CPU time of `muntin agent -p` up to its
// first request on the wire, as the kernel counts it for all its threads.
func BenchmarkFirstRequest(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("the CPU time of a living process is read from /proc")
	}
	muntin := buildMuntin(b)
	dir := b.TempDir()
	benchRepo(b, filepath.Join(dir, "repo"))
	var pid int
	var list []time.Duration
	server := llmtest.NewServer(llmtest.Script{Choose: func(int, llmtest.Request) llmtest.Reply {
		list = append(list, threadsCPU(b, pid))
		return llmtest.Reply{Text: "hello"}
	}})
	defer server.Close()
	for b.Loop() {
		cmd := exec.Command(muntin, "agent", "-p", "hello", "--model", "openai/m")
		cmd.Dir = filepath.Join(dir, "repo")
		cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+server.URL, "OPENAI_API_KEY=none", "XDG_STATE_HOME="+dir)
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		pid = cmd.Process.Pid
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(median(list)), "cpu-ms")
}

// BenchmarkIdle measures what one idle agent holds: its supervisor and the
// built-in agent, resident, after one turn.
func BenchmarkIdle(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("memory is read from /proc")
	}
	muntin := buildMuntin(b)
	home := shortDir(b)
	server := llmtest.NewServer(modelScript())
	defer server.Close()
	repo := filepath.Join(home, "repo")
	env := append(os.Environ(), "XDG_STATE_HOME="+home+"/state", "XDG_RUNTIME_DIR="+home, "MUNTIN_TMUX_SOCKET="+home+"/t.sock",
		"LC_ALL=C.UTF-8", "OPENAI_BASE_URL="+server.URL, "OPENAI_API_KEY=none")
	benchRepo(b, repo)
	write(b, filepath.Join(home, "one.yaml"), "muntin: 1\nname: one\nagents:\n  - {name: a, role: idle, model: openai/m}\n")
	command := func(argv ...string) *exec.Cmd {
		cmd := exec.Command(muntin, argv...)
		cmd.Env, cmd.Dir = env, repo
		return cmd
	}
	b.Cleanup(func() { _ = command("down", "--all").Run() })
	var total, supervisor int
	for b.Loop() {
		run(b, command("up", home+"/one.yaml"))
		run(b, command("send", "a", "write hello", "--wait"))
		out, err := command("ls", "--json").Output()
		if err != nil {
			b.Fatal(err)
		}
		var rows []struct{ Agents []struct{ PID int } }
		if err := json.Unmarshal(out, &rows); err != nil {
			b.Fatal(err)
		}
		pane := rows[0].Agents[0].PID
		supervisor = resident(b, pane)
		total = supervisor
		for _, child := range children(b, pane) {
			total += resident(b, child)
		}
		run(b, command("down"))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(total)/1024, "MB-rss")
	b.ReportMetric(float64(supervisor)/1024, "MB-supervisor")
}

func shortDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/tmp", "mb")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// benchRepo makes a repository of 500 small files in 25 folders.
func benchRepo(b *testing.B, dir string) {
	b.Helper()
	repo := gittest.Init(b, dir)
	for i := range 500 {
		repo.Write(filepath.Join(fmt.Sprintf("d%02d", i%25), fmt.Sprintf("f%03d.txt", i)), strings.Repeat(fmt.Sprintln("line", i), 200))
	}
	repo.Commit("start")
}

func write(b *testing.B, path, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// threadsCPU is the time all threads of a process have run: the first field of
// their schedstat, in nanoseconds.
func threadsCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		b.Errorf("no threads of %d: %v", pid, err)
		return 0
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has just ended
		}
		n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Error(err)
		}
		sum += time.Duration(n)
	}
	return sum
}

// resident is a process's resident memory in KiB.
func resident(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("process %d has no VmRSS", pid)
	return 0
}

// children are the processes that any thread of a process has started.
func children(b *testing.B, pid int) []int {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("no threads of %d: %v", pid, err)
	}
	var list []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has just ended
		}
		for _, f := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				b.Fatal(err)
			}
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		b.Fatalf("process %d has no children", pid)
	}
	return list
}
