// Package board reads and edits TODO.md and PLAN.md, the plain Markdown files
// that people, agents and muntin write at the same time. Tasks are the task
// list items of GitHub Flavored Markdown
// (https://github.github.com/gfm/#task-list-items-extension-) with more marks
// and a few tokens at the end of the line.
//
// Everything that is not a task is prose and is never touched. An edit changes
// only bytes of the task it is about: text is spliced, never printed again.
// A Board is not safe for use by several goroutines; a Task is a plain value.
package board

import (
	"fmt"
	"slices"
)

// MaxSize is the longest text that Parse takes, in bytes.
const MaxSize = 8 << 20

// A State is what the mark of a task says.
type State string

// The states and their marks.
const (
	Open      State = "open"      // [ ]
	Claimed   State = "claimed"   // [/] in progress
	Done      State = "done"      // [x]
	Blocked   State = "blocked"   // [!] the reason stands below
	Cancelled State = "cancelled" // [-]
	Waiting   State = "waiting"   // [?] for a person
	Unknown   State = "unknown"   // any other mark: kept, reported, never scheduled
)

// Settled reports whether nothing is left to do: done or cancelled.
func (s State) Settled() bool { return s == Done || s == Cancelled }

// A Task is one item of TODO.md.
type Task struct {
	ID        string   `json:"id"`                  // empty until EnsureIDs gave one
	Text      string   `json:"text"`                // the line without mark and tokens
	State     State    `json:"state"`               // as marked; see Board.Effective
	Assignees []string `json:"assignees,omitempty"` // names and roles, in their order, without @
	Claim     string   `json:"claim,omitempty"`     // who works on it: the last name of a claimed task
	After     []string `json:"after,omitempty"`     // ids it depends on
	Check     string   `json:"check,omitempty"`     // its own check command
	Priority  int      `json:"priority,omitempty"`  // 1 (first) to 3; 0: none given
	Tags      []string `json:"tags,omitempty"`      // without #
	Unknown   []string `json:"unknown,omitempty"`   // words among the tokens that mean nothing
	Body      string   `json:"body,omitempty"`      // the details below it, unindented, without its sub-tasks
	Reason    string   `json:"reason,omitempty"`    // why it is blocked
	Parent    string   `json:"parent,omitempty"`    // id of the task it lies in, if that has one
	Raw       string   `json:"raw"`                 // the line behind the mark, as it stands
	Line      int      `json:"line"`                // of the file, from 1
	Mark      string   `json:"mark"`                // what stands between the brackets

	index  int // in Board.tasks
	parent int // index of the parent, or -1
	pos    position
}

// For reports whether an agent of this name and role may take the task: it is
// assigned to nobody, to the name or to the role.
func (t Task) For(name, role string) bool {
	return len(t.Assignees) == 0 || slices.Contains(t.Assignees, name) ||
		role != "" && slices.Contains(t.Assignees, role)
}

// position holds the byte offsets of a task's parts in the text.
type position struct {
	lineStart          int
	markStart, markEnd int // between the brackets
	box                int // the opening bracket
	textStart, textEnd int // Text
	tokens             []word
	contentEnd         int // behind the last byte of the line that is no white space
	paraEnd            int // behind the first paragraph's last line, its line end included
	itemEnd            int // behind the item's last line, its line end included
	reason             span
}

// A span is a range of bytes; an empty one is none.
type span struct{ start, end int }

// A Problem is something on the board that a person should look at. Line and
// Col count from 1; Col counts characters.
type Problem struct {
	Line int    `json:"line"`
	Col  int    `json:"col"`
	Text string `json:"text"`
}

// String is the problem with its place.
func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Col, p.Text) }

// A Board is a parsed TODO.md.
type Board struct {
	Problems []Problem // sorted by place

	src      []byte
	text     string // src again; what tasks hold are parts of it
	tasks    []Task
	byID     map[string]int // the first task of each id
	children [][]int        // by index
	lines    []int          // byte offset of each line
	eol      string
}

// Bytes is the text of the board as edited so far. The caller must not change it.
func (b *Board) Bytes() []byte { return b.src }

// Tasks are all tasks in the order of the text. The caller must not change
// the slices in them.
func (b *Board) Tasks() []Task { return slices.Clone(b.tasks) }

// Task finds a task by its id. Of several with one id it is the first.
func (b *Board) Task(id string) (Task, bool) {
	i, ok := b.byID[id]
	if !ok {
		return Task{}, false
	}
	return b.tasks[i], true
}

// Children are the sub-tasks directly below a task of this board.
func (b *Board) Children(t Task) []Task {
	var out []Task
	for _, i := range b.children[t.index] {
		out = append(out, b.tasks[i])
	}
	return out
}

// stateOf tells what a mark means.
func stateOf(mark string) State {
	switch mark {
	case " ":
		return Open
	case "/":
		return Claimed
	case "x", "X":
		return Done
	case "!":
		return Blocked
	case "-":
		return Cancelled
	case "?":
		return Waiting
	}
	return Unknown
}

// markOf is the mark that is written for a state; empty for Unknown.
func markOf(s State) string {
	switch s {
	case Open:
		return " "
	case Claimed:
		return "/"
	case Done:
		return "x"
	case Blocked:
		return "!"
	case Cancelled:
		return "-"
	case Waiting:
		return "?"
	}
	return ""
}
