package orchestrator

import (
	"strings"
	"testing"

	"muntin/agent/pty"
	"muntin/orchestrator/worktree"
)

// checkpointed tells of a checkpoint of an agent.
func (w *world) checkpointed(agent, tree string) {
	w.event(agent, pty.Event{Kind: pty.EventCheckpoint, Checkpoint: &pty.CheckpointInfo{Tree: tree}})
}

func (w *world) has(kind EffectKind) bool {
	for _, e := range w.pending {
		if e.Kind == kind {
			return true
		}
	}
	return false
}

// toldOf are the messages to an agent that hold a text.
func (w *world) toldOf(agent, text string) int {
	n := 0
	for _, e := range w.told {
		if e.Agent == agent && strings.Contains(e.Text, text) {
			n++
		}
	}
	return n
}

func workingPair(t *testing.T) *world {
	t.Helper()
	w := newWorld(Settings{Branch: "muntin/r/merged"}, []string{"ada", "bob"}, Task{ID: "a", State: TaskOpen}, Task{ID: "b", State: TaskOpen})
	w.ready("ada", "bob")
	w.readBoard()
	w.drive()
	if len(w.state.Works) != 2 {
		t.Fatalf("%+v", w.state.Works)
	}
	return w
}

func TestLooksAreOneAtATime(t *testing.T) {
	t.Parallel()
	w := workingPair(t)
	w.checkpointed("ada", "t1")
	look := w.take(t, EffectOverlap)
	w.checkpointed("ada", "t1")
	if w.state.Radar.Again {
		t.Error("the same tree counts as news")
	}
	w.checkpointed("bob", "t2")
	w.checkpointed("ada", "t3")
	if w.has(EffectOverlap) || !w.state.wants(look) {
		t.Error("a second look while one is under way")
	}
	w.do(look, Result{OK: true})
	again := w.take(t, EffectOverlap)
	w.do(again, Result{Error: "no git"})
	if w.has(EffectOverlap) || w.state.wants(again) || w.state.Radar.Error != "no git" {
		t.Errorf("%+v", w.state.Radar)
	}
}

func TestOneAgentHasNobodyInItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{}, []string{"ada"})
	w.ready("ada")
	w.checkpointed("ada", "t1")
	if w.has(EffectOverlap) {
		t.Error("it looks all the same")
	}
}

func TestBothAreToldOfAComingConflictOnce(t *testing.T) {
	t.Parallel()
	w := workingPair(t)
	overlap := Overlap{A: "ada", B: "bob", Files: []OverlapFile{{Path: "x.go", Kind: "contents", Hunks: []OverlapHunk{
		{A: worktree.Lines{First: 3, Count: 2}, B: worktree.Lines{First: 7, Count: 1}},
	}}}}
	see := func(tree string, list ...Overlap) {
		w.checkpointed("ada", tree)
		w.do(w.take(t, EffectOverlap), Result{OK: true, Overlaps: list})
		w.drive()
	}
	see("t1", overlap)
	see("t2", overlap)
	if w.toldOf("ada", "x.go lines 3-4 of yours, line 7 there") != 1 || w.toldOf("bob", "x.go line 7 of yours, lines 3-4 there") != 1 {
		t.Errorf("told: %+v", w.told)
	}
	if got := w.state.Radar.Overlaps; len(got) != 1 {
		t.Errorf("%+v", got)
	}
	more := overlap
	more.Files = append([]OverlapFile{{Path: "y.go", Kind: "modify/delete"}}, overlap.Files...)
	see("t3", more)
	if w.toldOf("bob", "y.go (modify/delete)") != 1 || w.toldOf("bob", "x.go") != 1 {
		t.Errorf("told: %+v", w.told)
	}
	see("t4")
	var facts []string
	for _, f := range w.state.Facts {
		if strings.Contains(f.Text, "conflict") {
			facts = append(facts, f.Text)
		}
	}
	if want := "ada will conflict with bob: x.go lines 3-4|ada and bob no longer conflict"; strings.Join(facts, "|") != want {
		t.Errorf("facts: %q", facts)
	}
	if len(w.state.Radar.Overlaps) != 0 {
		t.Errorf("%+v", w.state.Radar.Overlaps)
	}
}

func TestWhoIsBeingCheckedIsToldWhenItGoesOn(t *testing.T) {
	t.Parallel()
	w := workingPair(t)
	w.task("a").Check = "test"
	w.readBoard()
	w.checkpointed("ada", "t1")
	w.turn("ada", "a", pty.TurnDone)
	w.do(w.take(t, EffectOverlap), Result{OK: true, Overlaps: []Overlap{{A: "ada", B: "bob", Files: []OverlapFile{{Path: "x.go"}}}}})
	check := w.take(t, EffectCheck)
	w.drive()
	if w.toldOf("ada", "x.go") != 0 || w.toldOf("bob", "x.go") != 1 {
		t.Fatalf("told: %+v", w.told)
	}
	w.do(check, Result{Error: "exit status 1"})
	w.drive()
	if w.toldOf("ada", "x.go") != 1 {
		t.Errorf("told: %+v", w.told)
	}
}

func TestALandingIsToldToWhoChangedTheSameFiles(t *testing.T) {
	t.Parallel()
	w := workingPair(t)
	w.turn("ada", "a", pty.TurnDone)
	w.do(w.take(t, EffectMerge), Result{OK: true, Also: []Also{{Agent: "bob", Files: []string{"x.go"}}}})
	look := w.take(t, EffectOverlap)
	w.do(look, Result{OK: true, Overlaps: []Overlap{{A: "bob", B: worktree.Merged, Files: []OverlapFile{{Path: "x.go"}}}}})
	w.drive()
	if w.toldOf("bob", "git merge muntin/r/merged") != 1 || w.toldOf("bob", "x.go") != 1 || w.toldOf("ada", "git merge") != 0 {
		t.Errorf("told: %+v", w.told)
	}
}

func TestAConflictThatWasSentBackIsNoNews(t *testing.T) {
	t.Parallel()
	w := workingPair(t)
	w.checkpointed("bob", "t1")
	w.turn("bob", "b", pty.TurnDone)
	w.do(w.take(t, EffectOverlap), Result{OK: true, Overlaps: []Overlap{
		{A: "ada", B: "bob", Files: []OverlapFile{{Path: "x.go"}}}, {A: "bob", B: worktree.Merged, Files: []OverlapFile{{Path: "x.go"}}},
	}})
	w.do(w.take(t, EffectMerge), Result{Conflicts: []string{"x.go"}})
	w.drive()
	if w.toldOf("bob", "cannot be merged") != 1 || w.toldOf("bob", "x.go") != 1 {
		t.Errorf("told: %+v", w.told)
	}
}

func TestAConflictShowsBothSides(t *testing.T) {
	t.Parallel()
	text := conflictText("a", "muntin/r/merged", Result{Conflicts: []string{"x.go", "gone.go"}, Clashes: []worktree.Conflict{
		{Path: "x.go", Hunks: []worktree.Hunk{{
			Ours: worktree.Lines{First: 3, Count: 1}, Theirs: worktree.Lines{First: 4, Count: 0}, OursText: "their line\n",
		}}},
		{Path: "gone.go", Kind: "modify/delete", Detail: "gone.go deleted in x"},
	}})
	for _, want := range []string{"x.go, line 3 on muntin/r/merged:\n    their line\nx.go, before line 4 of yours:\n", "gone.go: gone.go deleted in x\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestClashesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<10)
	list := make([]worktree.Conflict, 40)
	for i := range list {
		list[i] = worktree.Conflict{Path: "p", Hunks: []worktree.Hunk{{OursText: long, TheirsText: long}}}
	}
	bounded := boundClashes(list)
	if n := len(clashText("b", bounded)); n > maxClash+40*100 {
		t.Errorf("%d bytes", n)
	}
	if list[39].Hunks[0].OursText != long {
		t.Error("the argument was changed")
	}
}

func TestTheCrewSeesAComingConflict(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "- [/] one @ada ^a\n- [/] two @bob ^b\n")
	if in := tm.do(Effect{Kind: EffectOverlap}); in.Result.OK {
		t.Errorf("without checkpoints: %+v", in.Result)
	}
	tm.write(tm.Members["ada"].WorkDir, "base.txt", "ada\n")
	tm.write(tm.Members["bob"].WorkDir, "base.txt", "bob\n")
	tm.write(tm.Members["bob"].WorkDir, "own.txt", "bob\n")
	trees := map[string]string{"ada": tm.tree("ada"), "bob": tm.tree("bob")}
	in := tm.do(Effect{Kind: EffectOverlap})
	if !in.Result.OK || len(in.Result.Overlaps) != 1 {
		t.Fatalf("%+v", in.Result)
	}
	o := in.Result.Overlaps[0]
	if o.A != "ada" || o.B != "bob" || len(o.Files) != 1 || o.Files[0].Path != "base.txt" || len(o.Files[0].Hunks) != 1 {
		t.Errorf("%+v", o)
	}
	merged := tm.do(Effect{Kind: EffectMerge, Agent: "ada", Task: "a", Text: "one", Tree: trees["ada"]})
	if also := merged.Result.Also; len(also) != 1 || also[0].Agent != "bob" || also[0].Files[0] != "base.txt" {
		t.Errorf("%+v", merged.Result)
	}
	in = tm.do(Effect{Kind: EffectOverlap})
	if list := in.Result.Overlaps; len(list) != 1 || list[0].A != "bob" || list[0].B != worktree.Merged {
		t.Errorf("after the landing: %+v", in.Result)
	}
	tm.write(tm.Members["bob"].WorkDir, "base.txt", "base\n")
	tm.tree("bob")
	if in = tm.do(Effect{Kind: EffectOverlap}); !in.Result.OK || len(in.Result.Overlaps) != 0 {
		t.Errorf("when it is gone: %+v", in.Result)
	}
}

func TestTheCrewMergesInTheRecipesStyle(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "- [/] one @ada ^a\n")
	tm.Style = worktree.StyleSquash
	for _, round := range []string{"first", "second"} {
		for _, name := range []string{"ada", "bob"} {
			if in := tm.do(Effect{Kind: EffectPrepare, Agent: name}); !in.Result.OK {
				t.Fatalf("%+v", in.Result)
			}
			tm.write(tm.Members[name].WorkDir, name+".txt", round+"\n")
			if in := tm.do(Effect{Kind: EffectMerge, Agent: name, Task: "a", Text: name + " " + round, Tree: tm.tree(name)}); !in.Result.OK {
				t.Fatalf("%+v", in.Result)
			}
		}
	}
	got := tm.repo.Git("log", "--format=%s", "HEAD.."+tm.Branch)
	if got != "bob second\nada second\nbob first\nada first" {
		t.Errorf("history:\n%s", got)
	}
}
