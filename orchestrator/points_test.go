package orchestrator

import (
	"os"
	"strings"
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/internal/durable"
	"muntin/internal/state"
)

// Of a long file only the end is read to take another point.
func TestLastPoints(t *testing.T) {
	t.Parallel()
	d := state.RunDir{Path: t.TempDir(), Name: "r"}
	if all, err := lastPoints(d); err != nil || len(all) != 0 {
		t.Fatalf("no file: %v, %v", all, err)
	}
	log, err := durable.OpenLog(pointsPath(d))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := log.Append(Point{ID: i + 1, Note: strings.Repeat("x", 500)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := lastPoints(d)
	if err != nil || len(all) == 0 || len(all) > 900 || all[len(all)-1].ID != 1000 {
		t.Errorf("%d points, %v", len(all), err)
	}
	if err := os.WriteFile(pointsPath(d), []byte("not JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Points(d); err == nil {
		t.Error("a damaged file is taken for an empty one")
	}
}

// A rollback lets go of what agents were at, and makes what was under way for it
// void, also when the journal is read again.
func TestBackInTheJournal(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/journal.jsonl"
	start := NewState(Settings{Attempts: 3, Branch: "b"}, []Agent{{Name: "a", Role: RoleWorker, Isolated: true}, {Name: "b", Role: RoleWorker, Isolated: true}})
	journal, st, _, err := OpenJournal(path, start, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []Input{
		{Kind: InputAgent, Agent: "a", Event: &pty.Event{Seq: 1, Kind: pty.EventReady}},
		{Kind: InputAgent, Agent: "b", Event: &pty.Event{Seq: 1, Kind: pty.EventReady}},
		{Kind: InputBoard, Rev: 1, Tasks: []Task{{ID: "t1", State: TaskOpen, Ready: true}, {ID: "t2", State: TaskOpen, Ready: true}}},
		{Kind: InputBack, Back: &Back{Point: 1, Agents: []string{"a"}}},
	} {
		in.Time = time.Now().UTC()
		next, effects := Reduce(st, in)
		if _, err := journal.step(in, st, next, effects); err != nil {
			t.Fatal(err)
		}
		st = next
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	journal, again, pending, err := OpenJournal(path, start, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	for _, w := range again.Works {
		if w.Agent == "a" && w.Stage != StageClaiming {
			t.Errorf("a is still at %s: %s", w.Task, w.Stage)
		}
	}
	var kinds []string
	for _, e := range pending {
		kinds = append(kinds, string(e.Kind)+" "+e.Agent)
	}
	if got := strings.Join(kinds, ", "); !strings.Contains(got, "recall a") || !strings.Contains(got, "claim b") {
		t.Errorf("pending: %s", got)
	}
}
