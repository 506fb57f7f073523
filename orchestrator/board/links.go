package board

import (
	"cmp"
	"slices"
	"strings"
)

// checkLinks fills byID and reports double ids, unknown and cancelled
// dependencies, and cycles.
func (b *Board) checkLinks() {
	b.byID = make(map[string]int, len(b.tasks))
	for i := range b.tasks {
		t := &b.tasks[i]
		if t.ID == "" {
			continue
		}
		if first, ok := b.byID[t.ID]; ok {
			b.report(b.idPos(t), "id ^%s is used twice: first in line %d", t.ID, b.tasks[first].Line)
			continue
		}
		b.byID[t.ID] = i
	}
	for i := range b.tasks {
		t := &b.tasks[i]
		for _, dep := range t.After {
			i, ok := b.byID[dep]
			switch {
			case !ok:
				b.report(b.afterPos(t), "after:%s: there is no task ^%s", dep, dep)
			case b.tasks[i].State == Cancelled && !t.State.Settled():
				b.report(b.afterPos(t), "after:%s: that task is cancelled, so this one never starts", dep)
			}
		}
	}
	b.reportCycles()
}

func (b *Board) idPos(t *Task) int {
	for _, w := range slices.Backward(t.pos.tokens) {
		if w.kind == wordID {
			return w.start
		}
	}
	return t.pos.markStart
}

func (b *Board) afterPos(t *Task) int {
	for _, w := range t.pos.tokens {
		if w.kind == wordAfter {
			return w.start
		}
	}
	return t.pos.markStart
}

// needs are the tasks that must be done before task i and that are on the
// board: its own and its parents' dependencies and its sub-tasks.
func (b *Board) needs(i int) []int {
	var out []int
	b.eachDependency(i, func(_ string, j int) {
		if j >= 0 {
			out = append(out, j)
		}
	})
	return append(out, b.children[i]...)
}

// eachDependency calls fn with the dependencies of task i and of the tasks it
// lies in: their ids, and their indexes or -1. What a parent waits for inside
// itself is an order among its sub-tasks, not one of theirs.
func (b *Board) eachDependency(i int, fn func(dep string, j int)) {
	for p := i; p >= 0; p = b.tasks[p].parent {
		for _, dep := range b.tasks[p].After {
			j, ok := b.byID[dep]
			if !ok {
				j = -1
			}
			if p == i || !ok || !b.isInside(j, p) {
				fn(dep, j)
			}
		}
	}
}

// isInside reports whether task i is task p or lies in it.
func (b *Board) isInside(i, p int) bool {
	for i >= 0 && i != p {
		i = b.tasks[i].parent
	}
	return i == p
}

// reportCycles reports each cycle once, at its first task.
func (b *Board) reportCycles() {
	const (
		unseen = iota
		active
		finished
	)
	color := make([]int, len(b.tasks))
	var path []int
	var visit func(i int)
	visit = func(i int) {
		color[i] = active
		path = append(path, i)
		for _, j := range b.needs(i) {
			switch color[j] {
			case unseen:
				visit(j)
			case active:
				b.reportCycle(path[slices.Index(path, j):])
			}
		}
		path = path[:len(path)-1]
		color[i] = finished
	}
	for i := range b.tasks {
		if color[i] == unseen {
			visit(i)
		}
	}
}

func (b *Board) reportCycle(cycle []int) {
	names := make([]string, 0, len(cycle)+1)
	for _, i := range append(slices.Clone(cycle), cycle[0]) {
		name := "^" + b.tasks[i].ID
		if b.tasks[i].ID == "" {
			name = b.tasks[i].Text
		}
		names = append(names, name)
	}
	first := &b.tasks[slices.Min(cycle)]
	b.report(b.afterPos(first), "these tasks wait for each other: %s", strings.Join(names, " → "))
}

// Effective is the state of a task with its sub-tasks seen: an open or claimed
// task without details of its own is done when all its sub-tasks are, and
// cancelled when all are cancelled. A task with details is work by itself.
func (b *Board) Effective(t Task) State {
	kids := b.children[t.index]
	if t.State != Open && t.State != Claimed || len(kids) == 0 || t.Body != "" {
		return t.State
	}
	all := Cancelled
	for _, i := range kids {
		switch b.Effective(b.tasks[i]) {
		case Cancelled:
		case Done:
			all = Done
		default:
			return t.State
		}
	}
	return all
}

// Waits are the ids of the unfinished tasks that t waits for: its own and its
// parents' dependencies and its sub-tasks. A dependency that is not on the
// board is never finished; one that is cancelled is not either. A sub-task
// without id is named by its text.
func (b *Board) Waits(t Task) []string {
	var out []string
	b.eachDependency(t.index, func(dep string, i int) {
		if i < 0 || b.Effective(b.tasks[i]) != Done {
			out = append(out, dep)
		}
	})
	for _, i := range b.children[t.index] {
		if c := b.tasks[i]; !b.Effective(c).Settled() {
			out = append(out, cmp.Or(c.ID, c.Text))
		}
	}
	return out
}

// IsReady reports whether work on t can start: it is open, it waits for
// nothing, and no task it lies in is settled, blocked or waiting for a person.
func (b *Board) IsReady(t Task) bool {
	if b.Effective(t) != Open {
		return false
	}
	for p := t.parent; p >= 0; p = b.tasks[p].parent {
		if s := b.tasks[p].State; s != Open && s != Claimed {
			return false
		}
	}
	return len(b.Waits(t)) == 0
}

// Ready are the tasks that work can start on, the most urgent first and then
// in the order of the text. Whether an agent may take one is Task.For's answer.
func (b *Board) Ready() []Task {
	var out []Task
	for _, t := range b.tasks {
		if b.IsReady(t) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(s, t Task) int { return urgency(s) - urgency(t) })
	return out
}

func urgency(t Task) int { return cmp.Or(t.Priority, 4) }
