package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator/board"
)

// agentDir is the folder of an agent that no supervisor serves.
func agentDir(t *testing.T) state.AgentDir {
	t.Helper()
	dir := t.TempDir()
	return state.AgentDir{Name: "ada", Path: dir, Socket: filepath.Join(dir, "s")}
}

func TestAMessageToAnAgentThatHasEndedWaitsAndIsTakenBack(t *testing.T) {
	t.Parallel()
	dir := agentDir(t)
	crew := NewCrew(CrewOptions{Members: map[string]Member{"ada": {Dir: dir}}, Now: time.Now})
	e := Effect{Kind: EffectSend, ID: id.New(time.Now()), Agent: "ada", Task: "a", Msg: pty.KindPrompt, Text: "Do it"}
	for range 2 { // carried out again it is the same message
		in := crew.Do(t.Context(), e)
		if in.Result.OK || !in.Result.Gone || in.Result.State != string(pty.StateQueued) {
			t.Fatalf("sent: %+v", in.Result)
		}
	}
	other := pty.Message{ID: id.New(time.Now()), Kind: pty.KindPrompt, Text: "from a person", From: "user", Task: "a", Time: time.Now()}
	if err := pty.Enqueue(dir, other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if in := crew.Do(t.Context(), Effect{Kind: EffectRecall, Agent: "ada", Task: "a"}); !in.Result.OK {
			t.Fatalf("recalled: %+v", in.Result)
		}
	}
	list, err := pty.Messages(dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	for _, m := range list {
		if want := map[string]pty.MessageState{e.ID: pty.StateFailed, other.ID: pty.StateQueued}[m.ID]; m.State != want {
			t.Errorf("the message of %s is %s, want %s", m.From, m.State, want)
		}
	}
	if in := crew.Do(t.Context(), Effect{Kind: EffectRestart, Agent: "ada"}); in.Result.OK {
		t.Error("something was started with nothing to start it")
	}
}

// A task that waits for a person by our hand goes on by it; one that a person
// has settled meanwhile stays as it is.
func TestCrewHoldsTasksOnTheBoard(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "- [ ] first ^a\n")
	tm.do(Effect{Kind: EffectClaim, Task: "a", Agent: "ada"})
	hold := Effect{Kind: EffectMark, Task: "a", Agent: "ada", State: TaskWaiting, Why: "budget: spent", Held: true}
	goOn := Effect{Kind: EffectMark, Task: "a", Agent: "ada", State: TaskActive, Held: true}
	for range 2 {
		if in := tm.do(hold); in.Tasks[0].State != TaskWaiting || in.Tasks[0].Reason != "budget: spent" {
			t.Fatalf("held: %+v", in.Tasks)
		}
		if in := tm.do(goOn); in.Tasks[0].State != TaskActive || in.Tasks[0].Claim != "ada" || in.Tasks[0].Reason != "" {
			t.Fatalf("going on: %+v", in.Tasks)
		}
	}
	tm.do(hold)
	if in := tm.do(Effect{Kind: EffectMark, Task: "a", Agent: "ada", State: TaskOpen, Held: true}); in.Tasks[0].State != TaskOpen || len(in.Tasks[0].Names) > 0 {
		t.Errorf("given back: %+v", in.Tasks)
	}
	file := board.File{Path: tm.todo, LockPath: filepath.Join(filepath.Dir(tm.repo.Dir), "lock")}
	for _, state := range []board.State{board.Done, board.Cancelled} {
		if _, _, err := file.Update(t.Context(), func(b *board.Board) error { return b.SetState("a", state) }); err != nil {
			t.Fatal(err)
		}
		before := tm.board()
		tm.do(hold)
		tm.do(goOn)
		if after := tm.board(); after != before || strings.Contains(after, "budget") {
			t.Errorf("%s by a person became\n%s", state, after)
		}
	}
}

func TestRequestsAreKeptUntilTheyAreTaken(t *testing.T) {
	t.Parallel()
	run := Run{Info: Info{Name: "r"}, Dir: state.Layout{State: t.TempDir(), Runtime: t.TempDir()}.RepoAt(t.TempDir()).Run("r")}
	if err := os.MkdirAll(run.Dir.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	taken := map[string]float64{}
	for i := range 3 {
		change := &BudgetChange{Of: Scope{Agent: "ada"}, Raises: []Raise{{Field: "turns", By: true, To: float64(i)}}}
		req, err := Ask(t.Context(), run, Request{Budget: change}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		taken[req.ID] = float64(i)
	}
	s := &server{ServeOptions: ServeOptions{Run: run}, inputs: make(chan Input)}
	done := make(chan error, 1)
	go func() { done <- s.followRequests(t.Context(), State{}) }()
	for range 3 {
		select {
		case in := <-s.inputs:
			if want, ok := taken[in.Request.ID]; !ok || in.Request.Budget.Raises[0].To != want {
				t.Errorf("taken: %+v", in.Request)
			}
			delete(taken, in.Request.ID)
		case err := <-done:
			t.Fatal(err)
		}
	}
}
