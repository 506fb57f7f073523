package board

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Author says who wrote a version of the board. A person's edit beats an
// agent's of the same thing.
type Author string

// The authors. What stands in the file and was not written by muntin is a
// person's.
const (
	Person Author = "person"
	Agent  Author = "agent" // an agent, or the orchestrator on the agents' behalf
)

// A Side is one of the two texts that came from a common base.
type Side struct {
	Text []byte
	By   Author
}

// A Merged is the outcome of a merge.
type Merged struct {
	Text      []byte
	Conflicts []Conflict
}

// A Conflict is something that both sides changed in different ways and that
// neither may decide. Both versions are in the text.
type Conflict struct {
	Task string // its id; "" for prose
	Text string // what is in doubt, for a person
}

// Merge brings together two texts that came from one base. Tasks are found by
// their ids wherever they stand now; mark, text and each token of a task are
// merged by themselves, details and prose by lines. What one side removed and
// the other changed stays. A real conflict keeps both versions, and marks the
// task as waiting for a person. mine goes first where both must stand. The error
// is Parse's: one of the texts is no board.
func Merge(base []byte, mine, theirs Side) (Merged, error) {
	switch {
	case bytes.Equal(mine.Text, theirs.Text), bytes.Equal(base, theirs.Text):
		return Merged{Text: mine.Text}, nil
	case bytes.Equal(base, mine.Text):
		return Merged{Text: theirs.Text}, nil
	}
	m := merger{by: [2]Author{mine.By, theirs.By}}
	endings := commonEndings(base, mine.Text, theirs.Text)
	var err error
	if m.base, err = Parse(endings.unify(base)); err != nil {
		return Merged{}, fmt.Errorf("merging, the base: %w", err)
	}
	for i, text := range [][]byte{mine.Text, theirs.Text} {
		if m.sides[i], err = Parse(endings.unify(text)); err != nil {
			return Merged{}, fmt.Errorf("merging: %w", err)
		}
	}
	if err := m.giveIDs(); err != nil {
		return Merged{}, fmt.Errorf("merging: %w", err)
	}
	if err := m.mergeLines(); err != nil {
		return Merged{}, fmt.Errorf("merging: %w", err)
	}
	out, err := Parse(m.mergeText())
	if err != nil {
		return Merged{}, fmt.Errorf("merging: %w", err)
	}
	if err := m.settle(out); err != nil {
		return Merged{}, fmt.Errorf("merging: %w", err)
	}
	return Merged{Text: endings.restore(out.Bytes()), Conflicts: m.conflicts}, nil
}

// A merger is one merge on its way.
type merger struct {
	base      *Board
	sides     [2]*Board // mine, theirs
	by        [2]Author
	conflicts []Conflict
	doubt     map[string]string // by id: what a person must decide
}

// first is the side whose edit counts when both changed the same thing; equal
// tells that neither may decide.
func (m *merger) first() (side int, equal bool) {
	if m.by[0] == m.by[1] {
		return 0, true
	}
	if m.by[1] == Person {
		return 1, false
	}
	return 0, false
}

// giveIDs makes tasks that are the same carry the same id in all three texts:
// an editor may have loaded the file before muntin gave the ids.
func (m *merger) giveIDs() error {
	if _, err := m.base.EnsureIDs(); err != nil {
		return err
	}
	for _, side := range m.sides {
		if err := side.adoptIDs(m.base); err != nil {
			return err
		}
	}
	return nil
}

// adoptIDs gives b's tasks without an id those of base that they stand for: the
// one with the same text, or the only one between two neighbours that are known.
func (b *Board) adoptIDs(base *Board) error {
	free := map[string][]string{} // ids of base that b lacks, by text
	for _, t := range base.tasks {
		if _, ok := b.byID[t.ID]; !ok && t.ID != "" {
			free[t.Text] = append(free[t.Text], t.ID)
		}
	}
	ids := map[int]string{}
	used := map[string]bool{}
	for _, t := range b.tasks {
		if ids2 := free[t.Text]; t.ID == "" && t.State != Unknown && len(ids2) > 0 {
			ids[t.index], free[t.Text] = ids2[0], ids2[1:]
			used[ids2[0]] = true
		}
	}
	known := func(i int) string {
		if id := ids[i]; id != "" {
			return id
		}
		return b.tasks[i].ID
	}
	for i, t := range b.tasks {
		if known(i) != "" || t.State == Unknown {
			continue
		}
		if id, ok := b.between(base, i, known); ok && !used[id] {
			ids[i], used[id] = id, true
		}
	}
	return b.setIDs(ids)
}

// between finds the one task of base that stands where b's task i does: its
// neighbours are the same, and b has it nowhere else.
func (b *Board) between(base *Board, i int, known func(int) string) (string, bool) {
	at := 0
	if i > 0 {
		before, ok := base.byID[known(i-1)]
		if !ok {
			return "", false
		}
		at = before + 1
	}
	if at >= len(base.tasks) {
		return "", false
	}
	id := base.tasks[at].ID
	if _, taken := b.byID[id]; taken || id == "" {
		return "", false
	}
	after := ""
	if at+1 < len(base.tasks) {
		after = base.tasks[at+1].ID
	}
	if i+1 < len(b.tasks) {
		return id, known(i+1) == after && after != ""
	}
	return id, after == ""
}

// setIDs writes ids to tasks that have none, by their index.
func (b *Board) setIDs(ids map[int]string) error {
	var splices []splice
	for i, t := range b.tasks {
		if id, ok := ids[i]; ok {
			splices = append(splices, splice{span{t.pos.contentEnd, t.pos.contentEnd}, " ^" + id})
		}
	}
	if len(splices) == 0 {
		return nil
	}
	return b.apply(splices, func(next *Board) error {
		return b.sameOthers(next, func(i int) bool { return ids[i] != "" })
	})
}

// mergeLines merges the line of each task that both sides still have, and puts
// the outcome into all three texts, so that only what else changed is left.
func (m *merger) mergeLines() error {
	lines := map[string]string{}
	m.doubt = map[string]string{}
	for _, t := range m.base.tasks {
		mine, ok1 := m.sides[0].Task(t.ID)
		theirs, ok2 := m.sides[1].Task(t.ID)
		if t.ID == "" || lines[t.ID] != "" {
			continue
		}
		if !ok1 || !ok2 {
			if m.removedByPerson(t, ok1, ok2) {
				lines[t.ID] = m.base.content(t)
			}
			continue
		}
		line, doubt := m.mergeLine(m.base.content(t), m.sides[0].content(mine), m.sides[1].content(theirs))
		lines[t.ID] = line
		if doubt != "" {
			m.doubt[t.ID] = doubt
		}
	}
	for _, b := range []*Board{m.base, m.sides[0], m.sides[1]} {
		if err := b.setContents(lines); err != nil {
			return err
		}
	}
	return nil
}

// removedByPerson reports whether a person removed the task while an agent did no
// more than claim or settle it: then it stays removed.
func (m *merger) removedByPerson(t Task, inMine, inTheirs bool) bool {
	if inMine == inTheirs {
		return false
	}
	keeper := 0
	if inTheirs {
		keeper = 1
	}
	if m.by[keeper] != Agent || m.by[1-keeper] != Person {
		return false
	}
	now, _ := m.sides[keeper].Task(t.ID)
	kids, wereKids := m.sides[keeper].Children(now), m.base.Children(t)
	return now.Text == t.Text && now.Body == t.Body && len(kids) == len(wereKids)
}

// content is a task's line from the box on.
func (b *Board) content(t Task) string { return b.text[t.pos.box:t.pos.contentEnd] }

// setContents replaces the lines of tasks, by their ids.
func (b *Board) setContents(lines map[string]string) error {
	var splices []splice
	for i, t := range b.tasks {
		line, ok := lines[t.ID]
		if !ok || b.byID[t.ID] != i || line == b.content(t) {
			continue
		}
		splices = append(splices, splice{span{t.pos.box, t.pos.contentEnd}, line})
	}
	if len(splices) == 0 {
		return nil
	}
	return b.apply(splices, func(next *Board) error {
		if len(next.tasks) != len(b.tasks) {
			return errors.New("the number of tasks would change")
		}
		return nil
	})
}

// settle makes the merged board whole: no task stands in it twice, and what is
// in doubt is marked.
func (m *merger) settle(out *Board) error {
	if err := m.dropCopies(out); err != nil {
		return err
	}
	for _, t := range out.Tasks() {
		doubt, ok := m.doubt[t.ID]
		if !ok || out.byID[t.ID] != t.index {
			continue
		}
		if err := errors.Join(out.SetState(t.ID, Waiting), out.SetReason(t.ID, doubt)); err != nil {
			return err
		}
		m.conflicts = append(m.conflicts, Conflict{Task: t.ID, Text: doubt})
	}
	return nil
}

// dropCopies takes away the second of two tasks with one id where it says the
// same, as happens when both sides moved the task; one that says something else
// gets an id of its own.
func (m *merger) dropCopies(out *Board) error {
	for {
		copyOf := slices.IndexFunc(out.tasks, func(t Task) bool { return t.ID != "" && out.byID[t.ID] != t.index })
		if copyOf < 0 {
			return nil
		}
		t := out.tasks[copyOf]
		first := out.tasks[out.byID[t.ID]]
		var err error
		if m.inEach(t.ID) <= 1 && out.whole(t) == out.whole(first) {
			err = out.remove(t)
		} else {
			err = out.rename(t)
		}
		if err != nil {
			return err
		}
	}
}

// inEach is the most often that one text has the id: copies that somebody wrote
// himself are not ours to remove.
func (m *merger) inEach(id string) int {
	most := 0
	for _, b := range []*Board{m.base, m.sides[0], m.sides[1]} {
		n := 0
		for _, t := range b.tasks {
			if t.ID == id {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// whole is a task with all that lies in it, without its place.
func (b *Board) whole(t Task) string {
	var out strings.Builder
	out.WriteString(b.content(t) + "\n" + t.Body + "\n" + t.Reason)
	for _, i := range b.children[t.index] {
		out.WriteString("\n" + b.whole(b.tasks[i]))
	}
	return out.String()
}

func (b *Board) remove(t Task) error {
	gone := 1
	for i := t.index + 1; i < len(b.tasks) && b.tasks[i].pos.lineStart < t.pos.itemEnd; i++ {
		gone++
	}
	return b.apply([]splice{{span{t.pos.lineStart, t.pos.itemEnd}, ""}}, func(next *Board) error {
		if len(next.tasks) != len(b.tasks)-gone {
			return fmt.Errorf("task ^%s cannot be taken away", t.ID)
		}
		return nil
	})
}

// rename gives a task another id than the one it shares.
func (b *Board) rename(t Task) error {
	taken := map[string]bool{}
	for _, u := range b.tasks {
		taken[u.ID] = true
	}
	for _, w := range t.pos.tokens {
		if w.kind != wordID || w.value != t.ID {
			continue
		}
		return b.apply([]splice{{w.span, "^" + freeID(t.Text, taken)}}, func(next *Board) error {
			if len(next.tasks) != len(b.tasks) || next.tasks[t.index].ID == t.ID {
				return fmt.Errorf("task ^%s takes no other id", t.ID)
			}
			return nil
		})
	}
	return fmt.Errorf("task ^%s has no id to change", t.ID)
}
