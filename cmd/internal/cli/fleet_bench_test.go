package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/internal/gittest"
	"muntin/internal/state"
	"muntin/orchestrator"
)

// A benchFleet is a run of scripted agents of muntin's own.
type benchFleet struct {
	b      *testing.B
	home   string
	repo   *gittest.Repo
	muntin string
	env    []string
	run    orchestrator.Run
}

const benchScript = `version: 1
name: tiny
rules:
  - match: '\^t'
    steps:
      - tools:
          - name: bash
            arguments: {command: "echo done >>work-$MUNTIN_AGENT.txt"}
      - text: Done.
steps:
  - text: I do not know what to say.
`

// upFleet brings up a run of so many agents on an empty board.
func upFleet(b *testing.B, muntin string, agents int) *benchFleet {
	b.Helper()
	f := &benchFleet{b: b, home: shortDir(b), muntin: muntin}
	f.env = append(gittest.Env(), "HOME="+f.home, "XDG_STATE_HOME="+f.home+"/state", "XDG_RUNTIME_DIR="+f.home, "XDG_CONFIG_HOME="+f.home+"/config",
		"MUNTIN_TMUX_SOCKET="+f.home+"/t.sock", "MUNTIN_SCRIPT_SPEED=0", "SHELL=/bin/sh", "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	f.repo = gittest.Init(b, filepath.Join(f.home, "repo"))
	f.repo.Write("tiny.yaml", benchScript)
	f.repo.Write("TODO.md", "# Tasks\n")
	f.repo.Git("config", "maintenance.auto", "false")
	f.repo.Commit("start")
	write(b, f.home+"/fleet.yaml", fmt.Sprintf("muntin: 1\nname: fleet\nmodel: scripted/./tiny.yaml\ncheck: 'true'\nagents:\n  - {name: w, role: worker, count: %d}\n", agents))
	b.Cleanup(func() { _ = f.command("down", "--all", "--now").Run() })
	run(b, f.command("up", "--anyway", "--wait", "10m", f.home+"/fleet.yaml"))
	vars := map[string]string{}
	for _, kv := range f.env {
		key, value, _ := strings.Cut(kv, "=")
		vars[key] = value
	}
	layout, err := state.NewLayout(func(key string) string { return vars[key] })
	if err != nil {
		b.Fatal(err)
	}
	runs, err := orchestrator.AllRuns(layout)
	if err != nil || len(runs) != 1 {
		b.Fatalf("runs %v, error %v", runs, err)
	}
	f.run = runs[0]
	return f
}

func (f *benchFleet) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(f.muntin, argv...)
	cmd.Env, cmd.Dir = f.env, f.repo.Dir
	return cmd
}

// orchestrator is the process of the run's orchestrator.
func (f *benchFleet) orchestrator() int {
	text, err := os.ReadFile(f.run.Dir.Lock())
	if err != nil {
		f.b.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		f.b.Fatal(err)
	}
	return pid
}

// cpu is the time that a process has used, and that its children have that ended
// (proc_pid_stat(5), in ticks of 10 ms).
func (f *benchFleet) cpu(pid int) (own, children time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		f.b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	ticks := func(i int) time.Duration {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			f.b.Fatal(err)
		}
		return time.Duration(n) * 10 * time.Millisecond
	}
	return ticks(11) + ticks(12), ticks(13) + ticks(14)
}

// settle waits until the run's journal says that all of the tasks are done.
func (f *benchFleet) settle(limit time.Duration) {
	f.b.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); orchestrator.LastStanding(f.run.Dir).Phase != orchestrator.PhaseDone; <-tick.C {
		if time.Now().After(end) {
			out, _ := f.command("todo", "ls").CombinedOutput()
			f.b.Fatalf("the run is not done: %s", out)
		}
	}
}

// BenchmarkFleet has scripted agents do ten tiny tasks each, to the end: each is a
// turn with a tool, a checkpoint, a check, a commit, a merge and a fleet point.
func BenchmarkFleet(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("CPU and memory are read from /proc")
	}
	muntin := buildMuntin(b)
	for _, agents := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			for b.Loop() {
				workFleet(b, muntin, agents, 10*agents)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func workFleet(b *testing.B, muntin string, agents, tasks int) {
	f := upFleet(b, muntin, agents)
	var todo strings.Builder
	todo.WriteString("# Tasks\n\n")
	for i := range tasks {
		fmt.Fprintf(&todo, "- [ ] Do task %d ^t%04d\n", i, i)
	}
	pid := f.orchestrator()
	before, beforeChildren := f.cpu(pid)
	start := time.Now()
	write(b, f.run.Todo, todo.String())
	f.settle(30 * time.Minute)
	wall := time.Since(start)
	own, children := f.cpu(pid)
	out, err := f.command("ls", "--json").Output()
	if err != nil {
		b.Fatal(err)
	}
	var rows []struct{ Agents []struct{ PID int } }
	if err := json.Unmarshal(out, &rows); err != nil {
		b.Fatal(err)
	}
	held := 0
	for _, a := range rows[0].Agents {
		held += resident(b, a.PID)
		for _, child := range childrenOf(b, a.PID) {
			held += resident(b, child)
		}
	}
	b.ReportMetric(wall.Seconds(), "s")
	b.ReportMetric(float64(tasks)/wall.Seconds(), "tasks/s")
	b.ReportMetric(100*float64(own-before)/float64(wall), "%core")
	b.ReportMetric(ms(own-before)/float64(tasks), "cpu-ms/task")
	b.ReportMetric(ms(children-beforeChildren)/float64(tasks), "git-cpu-ms/task")
	b.ReportMetric(float64(resident(b, pid))/1024, "MB")
	b.ReportMetric(float64(held)/1024/float64(agents), "MB/agent")
	run(b, f.command("down", "--now"))
}

// childrenOf is children, where there may be none.
func childrenOf(b *testing.B, pid int) []int {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		return nil
	}
	return children(b, pid)
}

// BenchmarkDispatch measures from the save of a board of 200 tasks, with 20 idle agents,
// to the prompt that follows being in its agent's inbox, by the time in the agent's log.
func BenchmarkDispatch(b *testing.B) {
	muntin := buildMuntin(b)
	f := upFleet(b, muntin, 20)
	var todo strings.Builder
	todo.WriteString("# Tasks\n\n")
	for i := range 200 {
		fmt.Fprintf(&todo, "- [x] Done long ago %d ^old%d\n", i, i)
	}
	write(b, f.run.Todo, todo.String())
	f.settle(time.Minute)
	var list []time.Duration
	n := 0
	for b.Loop() {
		n++
		task := fmt.Sprintf("t%04d", n)
		text, err := os.ReadFile(f.run.Todo)
		if err != nil {
			b.Fatal(err)
		}
		saved := time.Now()
		write(b, f.run.Todo, fmt.Sprintf("%s- [ ] Do it %d ^%s\n", text, n, task))
		list = append(list, f.queued(task).Sub(saved))
		f.done(task)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(median(list)), "ms")
}

// done waits until a task is done on the board.
func (f *benchFleet) done(task string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		text, err := os.ReadFile(f.run.Todo)
		if err != nil {
			f.b.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "- [x]") && strings.Contains(line, "^"+task) {
				return
			}
		}
		if time.Now().After(end) {
			f.b.Fatalf("%s is not done:\n%s", task, text)
		}
	}
}

// queued waits for the prompt of a task, and returns when it was in its inbox.
func (f *benchFleet) queued(task string) time.Time {
	names, err := f.run.AgentNames()
	if err != nil {
		f.b.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		for _, name := range names {
			var at time.Time
			_, _ = pty.ReadEvents(f.run.Dir.Agent(name), 0, func(e pty.Event, _ int64) error {
				if e.Message != nil && e.Message.Task == task && e.Message.State == pty.StateQueued {
					at = e.Time
				}
				return nil
			})
			if !at.IsZero() {
				return at
			}
		}
	}
	f.b.Fatalf("no prompt for %s", task)
	return time.Time{}
}
