package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/agent/llm/llmtest"
	"muntin/internal/gittest"
	"muntin/internal/state"
	"muntin/orchestrator"
)

// TestChaos kills a fleet's processes at random while it works a board, brings
// it back with `muntin resume` after each kill, and compares the end with what
// an undisturbed run makes: see chaosFleet.verify. MUNTIN_SOAK=1 kills 100
// times and more: MUNTIN_KILLS says how often, MUNTIN_SEED which way.
func TestChaos(t *testing.T) {
	t.Parallel()
	kills, tasks, agents := 10, 12, 3
	seed := uint64(time.Now().UnixNano())
	if os.Getenv("MUNTIN_SOAK") != "" {
		kills, tasks, agents = 100, 30, 4
	}
	if n, err := strconv.Atoi(os.Getenv("MUNTIN_KILLS")); err == nil {
		kills = n
	}
	if n, err := strconv.ParseUint(os.Getenv("MUNTIN_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("MUNTIN_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // which process is killed is no secret
	done := map[string]int{}
	for round := 1; kills > 0; round++ {
		f := newChaosFleet(t, agents, tasks)
		f.random, f.kills = random, done
		n := f.work(kills)
		f.verify()
		kills -= n
		t.Logf("round %d: %d kills: %v", round, n, done)
		if t.Failed() {
			return
		}
		if n == 0 {
			t.Fatal("nothing was killed")
		}
	}
}

// chaosRun is the name of the run that is disturbed.
const chaosRun = "chaos"

// A chaosFleet is a run whose agents do what their script in the repository
// says, task by task, on a board with a person's text between the tasks.
type chaosFleet struct {
	t       *testing.T
	home    string
	muntin  string
	env     []string
	repo    *gittest.Repo
	run     orchestrator.Run
	agents  int
	tasks   int
	random  *rand.Rand
	kills   map[string]int
	resumes int
}

// The work of a task can be begun again at any point, as that of a good agent
// can. Every third one changes a file that the others change too.
const chaosScript = `#!/bin/sh
# do.sh <task> [<branch>]: does a task; with a branch, settles a conflict with it first.
rm -f "$(git rev-parse --git-path index.lock)"
settle() {
	sed -i '/^[<=>]\{7\}/d' shared.txt
	LC_ALL=C sort -u -o shared.txt shared.txt
	git add -A && git commit -qm "settle $1"
}
if git rev-parse -q --verify MERGE_HEAD >/dev/null; then settle "$1"; fi
if [ -n "$2" ]; then
	git add -A; git commit -qm "wip $1"
	git merge -q "$2" || settle "$1"
fi
mkdir -p out
echo "$1" >"out/$1.txt"
case $1 in
*0|*3|*6|*9)
	echo "$1" >>shared.txt
	LC_ALL=C sort -u -o shared.txt shared.txt
	;;
esac
`

const chaosCheck = `: chaoscheck; sleep 0.1; test "$(cat out/$MUNTIN_TASK.txt)" = $MUNTIN_TASK && ! grep '^[<=>]' shared.txt`

func chaosTask(i int) string { return fmt.Sprintf("t%03d", i) }

// chaosModel calls the script for whatever task it is told of.
func chaosModel() llmtest.Script {
	return llmtest.Script{Choose: func(_ int, r llmtest.Request) llmtest.Reply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "tool" {
			return llmtest.Reply{Text: "Done."}
		}
		var task, prompt string
		for _, m := range r.Messages {
			if m.Role == "user" {
				prompt = m.Text()
			}
		}
		if _, rest, ok := strings.Cut(prompt, "^t"); ok && len(rest) >= 3 {
			task = "t" + rest[:3]
		}
		if task == "" {
			return llmtest.Reply{Text: "I do not know what to do."}
		}
		line := "sh ./do.sh " + task
		if strings.Contains(prompt, "git merge ") {
			line += " muntin/" + chaosRun + "/merged"
		}
		args, _ := json.Marshal(map[string]string{"command": line})
		return llmtest.Reply{Text: "I do it.", Tools: []llmtest.ToolCall{{Name: "bash", Arguments: string(args)}}}
	}}
}

func newChaosFleet(t *testing.T, agents, tasks int) *chaosFleet {
	t.Helper()
	muntin, err := exec.LookPath("muntin") // this test binary, by the name that testscript gave it
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("/tmp", "mc")
	if err != nil {
		t.Fatal(err)
	}
	server := llmtest.NewServer(chaosModel())
	f := &chaosFleet{t: t, home: home, muntin: muntin, agents: agents, tasks: tasks}
	f.env = append(gittest.Env(), "HOME="+home, "XDG_STATE_HOME="+home+"/state", "XDG_RUNTIME_DIR="+home, "XDG_CONFIG_HOME="+home+"/config",
		"MUNTIN_TMUX_SOCKET="+home+"/t.sock", "OPENAI_BASE_URL="+server.URL, "OPENAI_API_KEY=none", "SHELL=/bin/sh", "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	t.Cleanup(func() {
		_, _ = f.try("down", "--all", "--now")
		for _, p := range f.processes() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		server.Close()
		if t.Failed() && os.Getenv("MUNTIN_KEEP") != "" {
			t.Log("kept:", home)
			return
		}
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	f.repo = gittest.Init(t, filepath.Join(home, "repo"))
	// The lock of an agent's own `git maintenance` that is killed is git's to leave.
	f.repo.Git("config", "maintenance.auto", "false")
	f.repo.Write("do.sh", chaosScript)
	f.repo.Write("shared.txt", "a\nz\n")
	f.repo.Write("TODO.md", f.board())
	f.repo.Commit("start")
	var recipe strings.Builder
	fmt.Fprintf(&recipe, "muntin: 1\nname: %s\nmodel: openai/m\nattempts: 100\ncheck: %q\nagents:\n", chaosRun, chaosCheck)
	fmt.Fprintf(&recipe, "  - {name: w, role: worker, count: %d, restart: on-failure, restarts: 100}\n", agents)
	if err := os.WriteFile(filepath.Join(home, "chaos.yaml"), []byte(recipe.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// prose is what stands before a task: a person's.
func prose(i int) string { return fmt.Sprintf("Thoughts before %d, *kept* as they are.\n", i) }

func (f *chaosFleet) board() string {
	var b strings.Builder
	b.WriteString("# Tasks\n\nA line of mine.\n")
	for i := range f.tasks {
		fmt.Fprintf(&b, "\n%s\n- [ ] Write %s ^%s\n", prose(i), chaosTask(i), chaosTask(i))
	}
	return b.String()
}

// try runs muntin and returns all that it prints.
func (f *chaosFleet) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.muntin, args...)
	cmd.Dir, cmd.Env = f.repo.Dir, f.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (f *chaosFleet) must(args ...string) string {
	f.t.Helper()
	out, err := f.try(args...)
	if err != nil {
		f.t.Fatalf("muntin %q: %v\n%s", args, err, out)
	}
	return out
}

// work runs the fleet until all tasks are settled, and kills up to most times
// on the way. It returns how often it did.
func (f *chaosFleet) work(most int) int {
	f.must("up", f.home+"/chaos.yaml")
	f.find()
	ended := time.Now().Add(time.Minute + time.Duration(most)*4*time.Second)
	n := 0
	for !f.settled() {
		if time.Now().After(ended) {
			f.t.Fatalf("the run is not done after %d kills\n%s\n%s", n, f.must("ls"), f.repo.Read("TODO.md"))
		}
		if n < most && f.kill() {
			n++
			f.resume()
		}
		f.pause(time.Duration(f.random.IntN(250)) * time.Millisecond)
	}
	return n
}

// find reads the run that has been started.
func (f *chaosFleet) find() {
	f.t.Helper()
	vars := map[string]string{}
	for _, kv := range f.env {
		key, value, _ := strings.Cut(kv, "=")
		vars[key] = value
	}
	layout, err := state.NewLayout(func(key string) string { return vars[key] })
	if err != nil {
		f.t.Fatal(err)
	}
	runs, err := orchestrator.AllRuns(layout)
	if err != nil || len(runs) != 1 {
		f.t.Fatalf("runs %v, error %v", runs, err)
	}
	f.run = runs[0]
}

// pause waits, so that a kill comes at any moment of the work.
func (f *chaosFleet) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-f.t.Context().Done():
	}
}

// settled tells whether the run has nothing to do any more, for good or bad.
func (f *chaosFleet) settled() bool {
	switch orchestrator.LastStanding(f.run.Dir).Phase {
	case orchestrator.PhaseDone:
		return true
	case orchestrator.PhaseWaiting:
		// What was killed may still be coming back.
		s, err := orchestrator.Now(f.run)
		if err != nil {
			f.t.Fatal(err)
		}
		return s.Count(orchestrator.TaskOpen)+s.Count(orchestrator.TaskActive) == 0
	}
	return false
}

// resume brings the run back as a person does, who now and then waits a while.
func (f *chaosFleet) resume() {
	if f.random.IntN(4) == 0 {
		f.pause(time.Duration(f.random.IntN(1500)) * time.Millisecond)
	}
	f.resumes++
	out, err := f.try("resume", chaosRun)
	if err != nil {
		f.t.Errorf("resume: %v\n%s", err, out)
	}
}

// verify compares what is there with what an undisturbed run leaves.
func (f *chaosFleet) verify() {
	f.t.Helper()
	f.verifyMerged()
	f.verifyBoard()
	f.verifyPrompts()
	out, err := f.try("down", "--within", "10s")
	if err != nil {
		f.t.Errorf("down: %v\n%s", err, out)
	}
	f.verifyLeft()
}

// verifyMerged looks for every task's work on the integration branch, once.
func (f *chaosFleet) verifyMerged() {
	t, branch := f.t, f.run.Branch
	want := []string{"a", "z"}
	for i := range f.tasks {
		id := chaosTask(i)
		if got, err := f.repo.Try(nil, "show", branch+":out/"+id+".txt"); err != nil || got != id {
			t.Errorf("out/%s.txt on %s is %q: %v", id, branch, got, err)
		}
		if strings.ContainsAny(id[3:], "0369") {
			want = append(want, id)
		}
		merges := strings.Fields(f.repo.Git("log", "--format=%H", "--grep", "^Merge Write "+id+" ", branch)) // none if it was a fast-forward
		if len(merges) > 1 {
			t.Errorf("%s has landed %d times: %v", id, len(merges), merges)
		}
	}
	slices.Sort(want)
	if got := f.repo.Git("show", branch+":shared.txt"); got != strings.Join(want, "\n") {
		t.Errorf("shared.txt:\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	names := strings.Fields(f.repo.Git("ls-tree", "-r", "--name-only", branch))
	if len(names) != f.tasks+3 {
		t.Errorf("files on %s: %v", branch, names)
	}
}

// verifyBoard looks for every task, done, and for every byte of the person's.
func (f *chaosFleet) verifyBoard() {
	todo := f.repo.Read("TODO.md")
	for i := range f.tasks {
		if !strings.Contains(todo, "\n"+prose(i)) {
			f.t.Errorf("the text before task %d is gone", i)
		}
		if n := strings.Count(todo, "^"+chaosTask(i)); n != 1 {
			f.t.Errorf("^%s stands %d times on the board", chaosTask(i), n)
		}
	}
	if n := strings.Count(todo, "- [x] Write "); n != f.tasks || strings.Count(todo, "- [") != n {
		f.t.Errorf("%d of %d tasks are done:\n%s\n%s", n, f.tasks, todo, f.story())
	}
	if out, err := f.try("todo", "ls", "--json"); err != nil {
		f.t.Errorf("todo ls: %v\n%s", err, out)
	}
}

// story is the end of the run's facts.
func (f *chaosFleet) story() string {
	s, err := orchestrator.Now(f.run)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, fact := range s.Facts {
		fmt.Fprintln(&b, fact.Time.Format("15:04:05.000"), fact.Text)
	}
	return b.String()
}

// verifyPrompts makes sure that no message was accepted, or reached a
// conversation, twice.
func (f *chaosFleet) verifyPrompts() {
	names, err := f.run.AgentNames()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range names {
		dir := f.run.Dir.Agent(name)
		accepted := map[string]int{}
		f.lines(dir.Events(), func(line []byte) error {
			var e struct {
				Kind    string
				Message *struct{ ID, State string }
			}
			err := json.Unmarshal(line, &e)
			if e.Kind == "message" && e.Message != nil && e.Message.State == "accepted" {
				accepted[e.Message.ID]++
			}
			return err
		})
		heard := map[string]int{}
		f.lines(dir.Session(), func(line []byte) error {
			var e struct {
				Origin *struct{ ID string }
			}
			err := json.Unmarshal(line, &e)
			if e.Origin != nil {
				heard[e.Origin.ID]++
			}
			return err
		})
		for id, n := range accepted {
			if n > 1 {
				f.t.Errorf("%s accepted message %s %d times", name, id, n)
			}
		}
		for id, n := range heard {
			if n > 1 {
				f.t.Errorf("message %s stands %d times in the conversation of %s", id, n, name)
			}
		}
	}
}

// lines reads a file of JSON lines. Every one must be whole.
func (f *chaosFleet) lines(path string, fn func([]byte) error) {
	text, err := os.ReadFile(path)
	if err != nil {
		f.t.Error(err)
		return
	}
	for line := range strings.Lines(string(text)) {
		if err := fn([]byte(line)); err != nil {
			f.t.Errorf("%s: %v in %q", path, err, line)
		}
	}
}

// verifyLeft looks at what is there when the run is down: sound objects and
// chains, no process, no lock of git, no journal of something half done.
func (f *chaosFleet) verifyLeft() {
	t := f.t
	if out, err := f.repo.Try(nil, "fsck", "--full", "--strict", "--no-dangling"); err != nil || strings.Contains(out, "error") {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
	if out, err := f.try("checkpoint", "verify"); err != nil {
		t.Errorf("checkpoint verify: %v\n%s", err, out)
	}
	for _, p := range f.processes() {
		if p.kind != killTmux && p.pid != os.Getpid() {
			t.Errorf("process %d is left: %q", p.pid, p.argv)
		}
	}
	_ = filepath.WalkDir(f.repo.Path(".git"), func(path string, d os.DirEntry, _ error) error {
		if d != nil && strings.HasSuffix(path, ".lock") && !strings.Contains(path, "/muntin/") {
			t.Errorf("a lock is left: %s", path)
		}
		return nil
	})
	if out := f.repo.Git("status", "--porcelain"); out != "M TODO.md" && out != " M TODO.md" {
		t.Errorf("the person's own worktree: %q", out)
	}
	if out := f.repo.Git("worktree", "list", "--porcelain"); strings.Contains(out, "locked") || strings.Contains(out, "prunable") || strings.Count(out, "worktree ") != f.agents+1 {
		t.Errorf("worktrees:\n%s", out)
	}
}
