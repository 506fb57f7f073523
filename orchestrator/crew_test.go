package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/checkpoint"
	"muntin/internal/gittest"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator/board"
	"muntin/orchestrator/worktree"
)

// team is a crew on a real repository, with two agents in worktrees of their own.
type team struct {
	*Crew
	t    *testing.T
	repo *gittest.Repo
	todo string
}

func newTeam(t *testing.T, todo string) *team {
	t.Helper()
	tm := &team{t: t, repo: gittest.New(t)}
	tm.todo = tm.repo.Path("TODO.md")
	tm.repo.Write("TODO.md", todo)
	tm.repo.Write("base.txt", "base\n")
	tm.repo.Commit("start")
	repo, err := state.FindRepo(tm.repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Dir(tm.repo.Dir)
	git, err := worktree.Open(t.Context(), worktree.Options{Repo: repo, Root: filepath.Join(top, "wt"), Trash: filepath.Join(top, "trash"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	head, _, err := git.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	members := map[string]Member{}
	for _, name := range []string{"ada", "bob"} {
		wt, err := git.Add(t.Context(), filepath.Join(top, "wt", "r", name), worktree.AgentBranch("r", name), head)
		if err != nil {
			t.Fatal(err)
		}
		members[name] = Member{WorkDir: wt.Path, Worktree: &wt}
	}
	if err := git.CreateBranch(t.Context(), worktree.Integration("r"), head); err != nil {
		t.Fatal(err)
	}
	tm.Crew = NewCrew(CrewOptions{
		Board:   NewBoardReader(board.File{Path: tm.todo, LockPath: filepath.Join(top, "lock")}, 0),
		Git:     git,
		Members: members, Run: "r", Branch: worktree.Integration("r"), Env: os.Environ(), Timeout: time.Minute, Checks: 2, Now: time.Now,
	})
	return tm
}

func (tm *team) write(dir, name, text string) {
	tm.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		tm.t.Fatal(err)
	}
}

// tree is the checkpoint of an agent's files, as its supervisor would take it.
func (tm *team) tree(agent string) string {
	tm.t.Helper()
	store, err := checkpoint.Open(tm.t.Context(), checkpoint.Options{Worktree: tm.Members[agent].WorkDir, Ref: CheckpointRef("r", agent)})
	if err != nil {
		tm.t.Fatal(err)
	}
	saved, _, err := store.Save(tm.t.Context(), checkpoint.Meta{Run: "r", Agent: agent})
	if err != nil {
		tm.t.Fatal(err)
	}
	return saved.Tree
}

func (tm *team) do(e Effect) Input {
	tm.t.Helper()
	return tm.Do(tm.t.Context(), e)
}

func (tm *team) board() string {
	tm.t.Helper()
	b, err := os.ReadFile(tm.todo)
	if err != nil {
		tm.t.Fatal(err)
	}
	return string(b)
}

func TestCrewClaimsAndMarksOnTheBoard(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "# Tasks\n\nSome words.\n\n- [ ] first ^a\n- [ ] second after:a ^b\n")
	in := tm.do(Effect{Kind: EffectClaim, Task: "a", Agent: "ada"})
	if !in.Result.OK || in.Rev != 1 || in.Tasks[0].State != TaskActive {
		t.Fatalf("claim: %+v %+v", in, in.Result)
	}
	if again := tm.do(Effect{Kind: EffectClaim, Task: "a", Agent: "ada"}); !again.Result.OK || again.Rev != 2 {
		t.Errorf("the same claim again: %+v", again.Result)
	}
	if other := tm.do(Effect{Kind: EffectClaim, Task: "a", Agent: "bob"}); other.Result.OK {
		t.Error("a second agent got it too")
	}
	if none := tm.do(Effect{Kind: EffectClaim, Task: "zzz", Agent: "bob"}); none.Result.OK {
		t.Error("a task that is not there was claimed")
	}
	tm.do(Effect{Kind: EffectMark, Task: "a", Agent: "ada", State: TaskOpen})
	if got := tm.board(); !strings.Contains(got, "- [ ] first ^a\n") {
		t.Errorf("given back, the board is\n%s", got)
	}
	tm.do(Effect{Kind: EffectClaim, Task: "a", Agent: "bob"})
	tm.do(Effect{Kind: EffectMark, Task: "a", Agent: "bob", State: TaskBlocked, Why: "the check failed"})
	if got := tm.board(); !strings.Contains(got, "- [!] first @bob ^a\n") || !strings.Contains(got, "the check failed") {
		t.Errorf("blocked, the board is\n%s", got)
	}
	tm.repo.Write("TODO.md", strings.Replace(tm.board(), "[!]", "[x]", 1))
	done := tm.do(Effect{Kind: EffectMark, Task: "a", Agent: "bob", State: TaskOpen})
	if !done.Result.OK || done.Tasks[0].State != TaskDone || !done.Tasks[1].Ready {
		t.Errorf("what a person ticked was changed: %+v", done.Tasks)
	}
}

func TestCrewReadsABoardThatPeopleWrote(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "- [ ] Parse the config\n- [ ] Group\n  - [x] one ^one\n  - [ ] two ^two\n- [>] unknown mark\n- [ ] mine @ada !1\n")
	in, problems, err := tm.Board.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, task := range in.Tasks {
		text := task.ID + ":" + string(task.State)
		if task.Group {
			text += ":group"
		}
		if task.Ready {
			text += ":ready"
		}
		got = append(got, text)
	}
	want := "parse-the-config:open:ready group:open:group one:done two:open:ready mine:open:ready"
	if strings.Join(got, " ") != want {
		t.Errorf("tasks %v, want %s", got, want)
	}
	if len(problems) != 1 {
		t.Errorf("problems %v: want one about the mark", problems)
	}
	if err := os.Remove(tm.todo); err != nil {
		t.Fatal(err)
	}
	if in, _, err := tm.Board.Read(t.Context()); err != nil || len(in.Tasks) != 0 || in.Tasks == nil {
		t.Errorf("without a file: %+v, %v", in, err)
	}
}

func TestCrewRunsChecks(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "")
	tm.write(tm.Members["ada"].WorkDir, "here.txt", "in the worktree\n")
	in := tm.do(Effect{Kind: EffectCheck, Task: "a", Agent: "ada", Text: `cat here.txt; echo "$MUNTIN_RUN/$MUNTIN_TASK/$MUNTIN_AGENT" >&2`})
	if !in.Result.OK || in.Result.Output != "in the worktree\nr/a/ada\n" {
		t.Errorf("%+v", in.Result)
	}
	in = tm.do(Effect{Kind: EffectCheck, Agent: "ada", Text: "echo why; exit 3"})
	if in.Result.OK || in.Result.Error != "exit status 3" || in.Result.Output != "why\n" {
		t.Errorf("%+v", in.Result)
	}
	tm.Timeout = 50 * time.Millisecond
	in = tm.do(Effect{Kind: EffectCheck, Agent: "ada", Text: "sleep 1000"})
	if in.Result.OK || !strings.HasPrefix(in.Result.Error, "stopped after") {
		t.Errorf("%+v", in.Result)
	}
}

func TestCrewMergesWhatWasChecked(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "")
	ada, bob := tm.Members["ada"].WorkDir, tm.Members["bob"].WorkDir
	tm.write(ada, "ada.txt", "checked\n")
	tree := tm.tree("ada")
	tm.write(ada, "ada.txt", "changed after the check\n")
	in := tm.do(Effect{Kind: EffectMerge, Task: "a", Agent: "ada", Tree: tree, Text: "Do a (^a)"})
	if !in.Result.OK || in.Result.Commit == "" {
		t.Fatalf("%+v", in.Result)
	}
	if got := tm.repo.Git("show", tm.Branch+":ada.txt"); got != "checked" {
		t.Errorf("merged %q, want what was checked", got)
	}
	if got := tm.repo.Git("log", "-1", "--format=%B", worktree.AgentBranch("r", "ada")); !strings.HasPrefix(got, "Do a (^a)\n") || !strings.Contains(got, "Muntin-Agent: ada") {
		t.Errorf("the commit says %q", got)
	}
	if again := tm.do(Effect{Kind: EffectMerge, Task: "a", Agent: "ada", Tree: tree, Text: "Do a (^a)"}); !again.Result.OK {
		t.Errorf("the same merge again: %+v", again.Result)
	}

	// The other agent changes the same file in another way.
	tm.write(bob, "ada.txt", "mine\n")
	in = tm.do(Effect{Kind: EffectMerge, Task: "b", Agent: "bob", Tree: tm.tree("bob"), Text: "Do b"})
	if in.Result.OK || len(in.Result.Conflicts) != 1 || in.Result.Conflicts[0] != "ada.txt" {
		t.Errorf("%+v", in.Result)
	}
	before := tm.repo.Git("rev-parse", tm.Branch)
	if in.Result.Commit != "" && in.Result.Commit != before {
		t.Errorf("a conflict moved the branch to %s", in.Result.Commit)
	}

	// The run's check sees the merged files, in a folder of its own that goes.
	run := tm.do(Effect{Kind: EffectRunCheck, Text: "cat ada.txt; pwd"})
	lines := strings.Split(strings.TrimSpace(run.Result.Output), "\n")
	if !run.Result.OK || len(lines) != 2 || lines[0] != "checked" || run.Result.Commit != before {
		t.Fatalf("%+v", run.Result)
	}
	if _, err := os.Stat(lines[1]); !os.IsNotExist(err) {
		t.Errorf("the check's folder is still there: %v", err)
	}
}

func TestCrewPreparesAWorktreeForItsNextTask(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "")
	tm.write(tm.Members["ada"].WorkDir, "ada.txt", "work\n")
	if in := tm.do(Effect{Kind: EffectMerge, Agent: "ada", Tree: tm.tree("ada"), Text: "work"}); !in.Result.OK {
		t.Fatalf("%+v", in.Result)
	}
	if in := tm.do(Effect{Kind: EffectPrepare, Agent: "bob"}); !in.Result.OK {
		t.Fatalf("%+v", in.Result)
	}
	if got, err := os.ReadFile(filepath.Join(tm.Members["bob"].WorkDir, "ada.txt")); err != nil || string(got) != "work\n" {
		t.Errorf("bob sees %q, %v", got, err)
	}
	if got := tm.repo.Git("status", "--porcelain"); got != "" {
		t.Errorf("the person's own folder was changed: %s", got)
	}
}

// A prompt that only waits in an inbox was not accepted, and is not lost.
func TestCrewDoesNotTakeAFiledPromptForASentOne(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "")
	dir := state.AgentDir{Name: "ada", Path: t.TempDir(), Socket: filepath.Join(t.TempDir(), "none.sock")}
	tm.Members["ada"] = Member{Dir: dir, WorkDir: tm.Members["ada"].WorkDir}
	e := Effect{Kind: EffectSend, ID: id.New(time.Now()), Task: "a", Agent: "ada", Msg: pty.KindPrompt, Text: "work"}
	in := tm.do(e)
	if in.Result.OK || !strings.Contains(in.Result.Error, "waits in its inbox") || in.Result.State != string(pty.StateQueued) {
		t.Errorf("%+v", in.Result)
	}
	e.Msg = pty.KindSteer
	e.ID = id.New(time.Now())
	if in := tm.do(e); !in.Result.OK {
		t.Errorf("a steer needs no answer: %+v", in.Result)
	}
	files, err := os.ReadDir(dir.Inbox())
	if err != nil || len(files) != 2 {
		t.Errorf("the inbox holds %v, %v", files, err)
	}
}
