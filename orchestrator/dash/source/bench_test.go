package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	creackpty "github.com/creack/pty"

	"muntin/agent/adapter"
	"muntin/agent/pty"
	"muntin/internal/state"
	"muntin/orchestrator"
	"muntin/orchestrator/dash"
	"muntin/recipes"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// benchChild is the test binary as another program: "print" writes five lines a
// second, "fleet N M" is a dashboard of N agents with M events a second each,
// "pane DIR" a supervisor of what repeats its fifo, "view DIR" the dashboard's
// view of it.
func benchChild(what string) int {
	ctx := context.Background()
	f := strings.Fields(what)
	var err error
	switch f[0] {
	case "print":
		for i := range ticks(ctx, 200*time.Millisecond) {
			fmt.Printf("line %d of something that an agent says\n", i)
		}
	case "fleet":
		n, _ := strconv.Atoi(f[1])
		rate, _ := strconv.Atoi(f[2])
		err = fleet(ctx, n, rate)
	case "pane":
		shell, _ := adapter.Lookup(adapter.Generic)
		_, err = pty.Run(ctx, pty.Options{
			Run: "r", Agent: filepath.Base(f[1]), Dir: agentDir(f[1]), WorkDir: f[1], Out: os.Stdout, Adapter: shell,
			Argv: []string{"sh", "-c", `while read -r line <"$1"; do printf '\r%s' "$line"; done`, "sh", filepath.Join(f[1], "fifo")},
		})
	case "view":
		err = view(ctx, f[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func agentDir(dir string) state.AgentDir {
	return state.AgentDir{Path: dir, Socket: filepath.Join(dir, "s")}
}

func ticks(ctx context.Context, every time.Duration) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		t := time.NewTicker(every)
		defer t.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if !yield(i) {
					return
				}
			}
		}
	}
}

// fleet shows n agents, of which each has rate events a second.
func fleet(ctx context.Context, n, rate int) error {
	s := New(Options{Recipe: &recipes.Recipe{}, Now: time.Now})
	var agents []orchestrator.Agent
	for i := range n {
		agents = append(agents, orchestrator.Agent{Name: fmt.Sprintf("agent-%03d", i), Role: "worker"})
	}
	st := orchestrator.NewState(orchestrator.Settings{Run: "bench"}, agents)
	for _, a := range agents {
		a.State, a.Since = pty.AgentIdle, time.Now()
		if rate > 0 {
			a.State = pty.AgentWorking
		}
		st.Agents[a.Name] = a
	}
	views := make(chan dash.View)
	go s.Run(ctx, views)
	s.Update(st, nil)
	if rate > 0 {
		// Made beforehand: what making them costs is the reducer's.
		states := make([]orchestrator.State, 200)
		for i := range states {
			st.Agents = maps.Clone(st.Agents)
			a := st.Agents[agents[i%n].Name]
			a.Seq, a.Turn, a.Doing = a.Seq+1, i, fmt.Sprintf("bash step %d", i)
			st.Agents[a.Name] = a
			states[i] = st
		}
		go func() {
			for i := range ticks(ctx, time.Second/time.Duration(rate*n)) {
				s.Update(states[i%len(states)], nil)
			}
		}()
	}
	return dash.Run(ctx, dash.Options{In: os.Stdin, Out: os.Stdout, Views: views, Env: os.Environ()})
}

// view shows an agent's screen.
func view(ctx context.Context, dir string) error {
	views := make(chan dash.View, 1)
	views <- dash.View{Run: "r", Agents: []dash.Agent{{Name: filepath.Base(dir), State: dash.AgentIdle}}}
	return dash.Run(ctx, dash.Options{
		In: os.Stdin, Out: os.Stdout, Views: views, Env: os.Environ(), Tab: dash.TabAgent, Live: oneAgent(dir),
	})
}

// oneAgent is a dash.Live of the agent in a folder.
type oneAgent string

func (o oneAgent) Screen(ctx context.Context, _ string, fn func(dash.Screen)) {
	for range ticks(ctx, 20*time.Millisecond) {
		if err := follow(ctx, agentDir(string(o)), fn); err == nil || ctx.Err() != nil {
			return
		}
	}
}

func (oneAgent) Messages(context.Context) ([]dash.Message, error) { return nil, nil }

// spawn runs the test binary as a child, on a terminal of its own.
func spawn(b *testing.B, what string) (*exec.Cmd, *os.File) {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "SOURCE_TEST_CHILD="+what, "TERM=xterm-256color")
	tty, err := creackpty.StartWithSize(cmd, &creackpty.Winsize{Rows: 50, Cols: 160})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = tty.Close()
	})
	return cmd, tty
}

// cpu is what a process has used, of itself.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/schedstat", pid)); err != nil {
		b.Skip("no /proc/PID/schedstat")
	}
	total := time.Duration(0)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range tasks {
		if text, err := os.ReadFile(path); err == nil {
			ns, _ := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			total += time.Duration(ns)
		}
	}
	return total
}

func switches(pid int) (n int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, path := range tasks {
		text, _ := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			k := 0
			if _, err := fmt.Sscanf(line, "voluntary_ctxt_switches: %d", &k); err == nil {
				n += k
			}
		}
	}
	return n
}

const window = 5 * time.Second

// BenchmarkFleet is the dashboard's share of a core with agents at rest and at
// 10 events a second each.
func BenchmarkFleet(b *testing.B) {
	for _, n := range []int{1, 10, 50, 100, 200} {
		for _, rate := range []int{0, 10} {
			b.Run(fmt.Sprintf("agents=%d/events=%d", n, rate), func(b *testing.B) {
				cmd, tty := spawn(b, fmt.Sprintf("fleet %d %d", n, rate))
				go func() { _, _ = io.Copy(io.Discard, tty) }()
				<-time.After(2 * time.Second)
				for b.Loop() {
					before, woken := cpu(b, cmd.Process.Pid), switches(cmd.Process.Pid)
					<-time.After(window)
					b.ReportMetric(100*float64(cpu(b, cmd.Process.Pid)-before)/float64(window), "cpu%")
					b.ReportMetric(float64(switches(cmd.Process.Pid)-woken)/window.Seconds(), "wakeups/s")
				}
			})
		}
	}
}

// BenchmarkPoll is what asking tmux for every pane's screen ten times a second
// costs, a process each: the processes' and the server's share of a core.
func BenchmarkPoll(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 10, 50} {
		for _, what := range []string{"idle", "busy"} {
			b.Run(fmt.Sprintf("panes=%d/%s", n, what), func(b *testing.B) {
				server := tmuxtest.Server(b)
				argv := []string{"sleep", "1000"}
				if what == "busy" {
					argv = []string{"env", "SOURCE_TEST_CHILD=print", exe}
				}
				spec := tmux.WindowSpec{Layout: tmux.Tiled}
				for range n {
					spec.Panes = append(spec.Panes, tmux.PaneSpec{Argv: argv, Dir: "/"})
				}
				out, err := server.Spawn(b.Context(), tmux.SessionSpec{Name: "poll", Cols: 200, Rows: 200, Dir: "/"}, []tmux.WindowSpec{spec})
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					server1 := cpu(b, server.Epoch().PID)
					used, rounds := poll(b, server, out.Panes)
					b.ReportMetric(100*float64(used+cpu(b, server.Epoch().PID)-server1)/float64(window), "cpu%")
					b.ReportMetric(float64(rounds)/window.Seconds(), "rounds/s")
				}
			})
		}
	}
}

func poll(b *testing.B, server *tmux.Server, panes []tmux.PaneRef) (used time.Duration, rounds int) {
	ctx, cancel := context.WithTimeout(b.Context(), window)
	defer cancel()
	for range ticks(ctx, 100*time.Millisecond) {
		for _, p := range panes {
			cmd := exec.CommandContext(ctx, "tmux", "-u", "-S", server.Socket(), "capture-pane", "-p", "-t", string(p.ID))
			if _, err := cmd.Output(); err != nil && ctx.Err() == nil {
				b.Fatal(err)
			}
			if ctx.Err() != nil {
				return used, rounds
			}
			used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
		rounds++
	}
	return used, rounds
}

// BenchmarkLatency is from a byte that an agent prints to the dashboard that
// shows its screen, with others that print five lines a second.
func BenchmarkLatency(b *testing.B) {
	for _, n := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("agents=%d", n), func(b *testing.B) { latency(b, n) })
	}
}

func latency(b *testing.B, n int) {
	root := tmuxtest.Dir(b)
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(b.Context())
	b.Cleanup(func() { stop(); wg.Wait() })
	var first *os.File
	for i := range n {
		dir := filepath.Join(root, fmt.Sprint("a", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		if err := exec.Command("mkfifo", filepath.Join(dir, "fifo")).Run(); err != nil {
			b.Fatal(err)
		}
		fifo, err := os.OpenFile(filepath.Join(dir, "fifo"), os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = fifo.Close() })
		_, tty := spawn(b, "pane "+dir)
		wg.Go(func() { _, _ = io.Copy(io.Discard, tty) })
		if i == 0 {
			first = fifo
			continue
		}
		wg.Go(func() {
			for k := range ticks(ctx, 200*time.Millisecond) {
				_, _ = fmt.Fprintf(fifo, "line %d of something that an agent says\n", k)
			}
		})
	}
	_, tty := spawn(b, "view "+filepath.Join(root, "a0"))
	seen := make(chan byte, 1)
	wg.Go(func() { watchRuns(tty, seen) })
	mark := func(c byte) bool { // whether it was shown within a second
		_, _ = fmt.Fprintf(first, "%s\n", strings.Repeat(string(c), 40))
		for {
			select {
			case got := <-seen:
				if got == c {
					return true
				}
			case <-time.After(time.Second):
				return false
			}
		}
	}
	for i := 0; !mark('A' + byte(i%2)); i++ {
		if i == 20 {
			b.Fatal("the dashboard does not show the agent")
		}
	}
	var took []time.Duration
	i := byte(2)
	for b.Loop() {
		<-time.After(50 * time.Millisecond)
		start := time.Now()
		if !mark('A' + i) {
			b.Fatal("a line was not shown")
		}
		took = append(took, time.Since(start))
		i = (i + 1) % 26
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "ms-median")
	b.ReportMetric(float64(took[len(took)*9/10])/1e6, "ms-p90")
}

// watchRuns tells of each letter of which twenty are written in a row.
func watchRuns(r io.Reader, seen chan<- byte) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		for c := byte('A'); c <= 'Z'; c++ {
			// The renderer may write a run as one and "repeat it" (REP).
			if bytes.Contains(buf[:n], bytes.Repeat([]byte{c}, 20)) || bytes.Contains(buf[:n], []byte(string(c)+"\x1b[39b")) {
				select {
				case seen <- c:
				default:
				}
			}
		}
		if err != nil {
			return
		}
	}
}
