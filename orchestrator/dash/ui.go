package dash

import (
	"slices"
	"strings"
)

// A Tab is one view of the dashboard.
type Tab int

// The tabs, in their order on the screen.
const (
	TabFleet Tab = iota
	TabBoard
	TabAgent
	TabOverlap
	TabMessages
	TabNeeds
	TabStory
	tabCount
)

// tabNames are their names on the screen, and short ones where there is no room.
func tabNames() [tabCount][2]string {
	return [tabCount][2]string{
		{"Fleet", "Fleet"}, {"Board", "Board"}, {"Agent", "Agent"}, {"Overlap", "Over"},
		{"Messages", "Msgs"}, {"Needs you", "You"}, {"Story", "Story"},
	}
}

// ParseTab finds a tab by its name: fleet, board, agent, overlap, messages,
// needs or story.
func ParseTab(name string) (Tab, bool) {
	i := slices.Index(TabNames(), name)
	return Tab(i), i >= 0
}

// TabNames are the names that ParseTab knows.
func TabNames() []string {
	return []string{"fleet", "board", "agent", "overlap", "messages", "needs", "story"}
}

// ui is what a person has chosen: with the View it is all that is drawn.
type ui struct {
	tab       Tab
	places    [tabCount]place
	filter    string
	filtering bool
	input     *input
	sure      *act // asks before this
	leave     bool // asks whether to leave
	help      bool
	page      *page
	status    string // what came of the last command
	bad       bool
	busy      string // the command that is being carried out
	agent     string // of the agent tab
	screen    Screen
	messages  []Message
	msgErr    string

	canDo bool // commands can be carried out
	owner bool // to leave is to stop the orchestrator
	plain bool // no characters beyond ASCII
}

// A place is where a person is in a list. It is kept by the row's key, so that
// it stays when rows come and go; index is for when the row itself has gone.
type place struct {
	key   string
	index int
	top   int  // the first row that is shown
	moved bool // by a person: a list that follows its end does not any more
}

// A row is one line of a list. What it has is made only when it is needed.
type row struct {
	key  string
	find func() string // what the filter looks in
	text func(width int) string
	acts func() []act // nil: none
}

// An act is what a key does.
type act struct {
	key   string // by Bubble Tea's name
	label string
	argv  []string // the command line, without the program's name; textMark stands for what is asked for
	ask   string   // what text is asked for; "": none
	sure  bool     // asks first
	page  bool     // its output is to be read
	tty   bool     // it takes the terminal for itself
	open  string   // instead of a command: the agent that the agent tab shows
	plan  bool     // instead of a command: the plan is shown
}

// textMark stands in an act's argv for the text that is asked for.
const textMark = "…"

// line is the act's command as a person would type it.
func (a act) line(text string) string {
	words := []string{"muntin"}
	for _, w := range a.argv {
		if w == textMark && text != "" {
			w = text
		}
		words = append(words, quote(w))
	}
	return strings.Join(words, " ")
}

// with is the act's argv with the text in its place.
func (a act) with(text string) []string {
	argv := slices.Clone(a.argv)
	for i, w := range argv {
		if w == textMark {
			argv[i] = text
		}
	}
	return argv
}

// quote writes a word as a shell reads it.
func quote(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=+,@^", r)
	}
	switch {
	case w == textMark:
		return `"…"`
	case w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0:
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// An input is a line that a person types.
type input struct {
	act  act
	text []rune
}

// A page is text to be read: what a command printed, or the plan.
type page struct {
	title string
	lines []string // clean, maybe with styles of ours
	top   int
	plan  bool // its lines are the plan's, made for the width at hand
}

// match tells whether a row is what the filter wants: all its words are in it.
func (f frame) match(r row) bool {
	have := strings.ToLower(r.find())
	for w := range strings.FieldsSeq(strings.ToLower(f.filter)) {
		if !strings.Contains(have, w) {
			return false
		}
	}
	return true
}

// rows are those of the present tab that the filter lets through.
func (f frame) rows() []row {
	var list []row
	switch f.tab {
	case TabFleet:
		list = f.fleetRows()
	case TabBoard:
		list = f.boardRows()
	case TabAgent:
		return nil
	case TabOverlap:
		list = f.overlapRows()
	case TabMessages:
		list = f.messageRows()
	case TabNeeds:
		list = f.needRows()
	case TabStory:
		list = f.storyRows()
	default:
		return nil
	}
	if f.filter == "" {
		return list
	}
	return slices.DeleteFunc(list, func(r row) bool { return !f.match(r) })
}

// chosen is the index of the row that a person is at; -1 if there is none.
func (f frame) chosen(rows []row) int {
	p := f.places[f.tab]
	if len(rows) == 0 {
		return -1
	}
	if f.tab == TabStory && !p.moved {
		return len(rows) - 1
	}
	if p.key != "" {
		if i := slices.IndexFunc(rows, func(r row) bool { return r.key == p.key }); i >= 0 {
			return i
		}
	}
	return min(max(p.index, 0), len(rows)-1)
}

// acts are what keys do now: those of the chosen row, then those of the tab.
func (f frame) acts() []act {
	var list []act
	if f.tab == TabAgent {
		if a, ok := f.shownAgent(); ok {
			list = f.agentActs(a)
		}
	} else if rows := f.rows(); len(rows) > 0 {
		if r := rows[f.chosen(rows)]; r.acts != nil {
			list = r.acts()
		}
	}
	if f.tab == TabBoard {
		list = append(slices.Clip(list), f.boardActs()...)
	}
	if f.canDo {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(a act) bool { return a.argv != nil })
}

// shownAgent is the agent of the agent tab: the one that was opened, else the first.
func (f frame) shownAgent() (Agent, bool) {
	if a, ok := f.View.find(f.agent); ok {
		return a, true
	}
	if len(f.Agents) > 0 {
		return f.Agents[0], true
	}
	return Agent{}, false
}
