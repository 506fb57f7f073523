package board

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muntin/internal/durable"
)

// The kinds of change.
const (
	Added   = "added"
	Removed = "removed"
	Marked  = "state"
	Worded  = "text"
	Tagged  = "tokens"
	Noted   = "details"
)

// A Change is one thing that became different about one task.
type Change struct {
	Task string `json:"task"`           // its id
	What string `json:"what"`           // Added, Removed, …
	From string `json:"from,omitempty"` // as it was: a state, a text, tokens, details
	To   string `json:"to,omitempty"`
}

// Changes tells how the tasks of two texts differ, in the order of the new one; what
// was removed comes last. Tasks without an id are left out.
func Changes(old, now *Board) []Change {
	var out []Change
	for i, t := range now.tasks {
		if t.ID == "" || now.byID[t.ID] != i {
			continue
		}
		was, ok := old.Task(t.ID)
		if !ok {
			out = append(out, Change{Task: t.ID, What: Added, To: now.content(t)})
			continue
		}
		out = append(out, changesOf(was, t)...)
	}
	for i, t := range old.tasks {
		if _, ok := now.byID[t.ID]; t.ID != "" && !ok && old.byID[t.ID] == i {
			out = append(out, Change{Task: t.ID, What: Removed, From: old.content(t)})
		}
	}
	return out
}

func changesOf(was, t Task) []Change {
	var out []Change
	add := func(what, from, to string) {
		if from != to {
			out = append(out, Change{Task: t.ID, What: what, From: from, To: to})
		}
	}
	add(Marked, string(was.State), string(t.State))
	add(Worded, was.Text, t.Text)
	add(Tagged, was.tokenText(), t.tokenText())
	add(Noted, was.notes(), t.notes())
	return out
}

// tokenText is what the tokens say, without the id.
func (t Task) tokenText() string {
	var words []string
	for _, name := range t.Assignees {
		words = append(words, "@"+name)
	}
	if len(t.After) > 0 {
		words = append(words, "after:"+strings.Join(t.After, ","))
	}
	if t.Check != "" {
		words = append(words, quoteCheck(t.Check))
	}
	if t.Priority > 0 {
		words = append(words, fmt.Sprintf("!%d", t.Priority))
	}
	for _, tag := range t.Tags {
		words = append(words, "#"+tag)
	}
	return strings.Join(words, " ")
}

func (t Task) notes() string {
	if t.Reason == "" {
		return t.Body
	}
	return strings.TrimSpace(reasonPrefix + " " + t.Reason + "\n" + t.Body)
}

// A Record is one line of the board's log: who changed what, and when. Who is the
// name of an agent, or empty: a person, or somebody who wrote the file without
// muntin.
type Record struct {
	Time    time.Time `json:"time"`
	Who     string    `json:"who,omitempty"`
	By      Author    `json:"by"`
	Changes []Change  `json:"changes"`
}

// record adds a line to the log when tasks differ between two texts.
func (f File) record(old, now []byte, by Author) error {
	if f.Log == "" {
		return nil
	}
	was, err := Parse(slices.Clone(old))
	if err != nil {
		return nil //nolint:nilerr // what was no board has no tasks to compare with
	}
	is, err := Parse(slices.Clone(now))
	if err != nil {
		return err
	}
	r := Record{Time: time.Now().UTC(), By: by, Changes: Changes(was, is)}
	if len(r.Changes) == 0 {
		return nil
	}
	if by == Agent {
		r.Who = f.Who
	}
	log, err := durable.OpenLog(f.Log)
	if err != nil {
		return err
	}
	if err := log.Append(r); err != nil {
		return fmt.Errorf("%w; close: %w", err, log.Close())
	}
	return log.Close()
}

// History reads the log: all records, or those that are about one task, the oldest
// first. Lines that are none are left out.
func (f File) History(task string) ([]Record, error) {
	var out []Record
	_, err := durable.Lines(f.Log, 0, func(line []byte, _ int64) error {
		var r Record
		if json.Unmarshal(line, &r) != nil {
			return nil
		}
		if task != "" {
			r.Changes = slices.DeleteFunc(r.Changes, func(c Change) bool { return c.Task != task })
		}
		if len(r.Changes) > 0 {
			out = append(out, r)
		}
		return nil
	})
	return out, err
}
