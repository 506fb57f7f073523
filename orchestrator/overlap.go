package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muntin/agent/pty"
	"muntin/orchestrator/worktree"
)

// maxOverlapFiles is how many files of an overlap are told.
const maxOverlapFiles = 20

// An Overlap tells that the work of two will conflict when both are merged: of
// an agent and another, or of an agent and what has been merged already.
type Overlap struct {
	A     string        `json:"a"`
	B     string        `json:"b"` // worktree.Merged: the run's integration branch
	Files []OverlapFile `json:"files"`
}

// An OverlapFile is one file of an overlap.
type OverlapFile struct {
	Path  string        `json:"path"`
	Kind  string        `json:"kind"` // git's word, as in worktree.Conflict
	Hunks []OverlapHunk `json:"hunks,omitempty"`
}

// An OverlapHunk is where the two meet, in the file as each of them has it.
type OverlapHunk struct {
	A worktree.Lines `json:"a"`
	B worktree.Lines `json:"b"`
}

// of returns the overlap as seen by name, which becomes A, and whether name is in it.
func (o Overlap) of(name string) (Overlap, bool) {
	if o.A == name {
		return o, true
	}
	if o.B != name {
		return o, false
	}
	turned := Overlap{A: o.B, B: o.A}
	for _, f := range o.Files {
		hunks := slices.Clone(f.Hunks)
		for i, h := range hunks {
			hunks[i] = OverlapHunk{A: h.B, B: h.A}
		}
		turned.Files = append(turned.Files, OverlapFile{Path: f.Path, Kind: f.Kind, Hunks: hunks})
	}
	return turned, true
}

// A Radar is what the reducer knows of coming conflicts.
type Radar struct {
	Key      string // the look that is under way
	Again    bool   // something changed since it began
	Overlaps []Overlap
	Error    string          // why the last look saw nothing
	Warned   map[string]bool // who was told of which file and whom
}

// look has the radar look, once for all that changes while it does.
func (r *step) look() {
	radar := &r.state.Radar
	if radar.Key != "" {
		radar.Again = true
		return
	}
	isolated := 0
	for _, a := range r.state.Agents {
		if a.Isolated && !a.Shared {
			isolated++
		}
	}
	if isolated < 2 {
		return // nobody to be in the way of
	}
	radar.Key = r.emit(Effect{Kind: EffectOverlap})
}

// looked takes what the radar saw: news of it are facts, and those who can
// still do something about it are told.
func (r *step) looked(res Result) {
	radar := &r.state.Radar
	before := radar.Overlaps
	radar.Key, radar.Error = "", res.Error
	if res.OK {
		radar.Overlaps = res.Overlaps
		for _, o := range res.Overlaps {
			if !slices.ContainsFunc(before, o.samePair) && !r.together(o) {
				r.tell(Fact{Agent: o.A, Bad: true, Text: o.String()})
			}
		}
		for _, o := range before {
			if !slices.ContainsFunc(res.Overlaps, o.samePair) {
				r.tell(Fact{Agent: o.A, Good: true, Text: fmt.Sprintf("%s and %s no longer conflict", o.A, o.other())})
			}
		}
		for _, name := range r.state.Order {
			r.warn(name)
		}
	}
	if radar.Again {
		radar.Again = false
		r.look()
	}
}

// warn tells an agent at work of the conflicts ahead of it, of each once.
func (r *step) warn(name string) {
	w, ok := r.state.Works[name]
	if !ok || w.Stage != StageWorking || w.Reads {
		return
	}
	for _, o := range r.state.Radar.Overlaps {
		o, in := o.of(name)
		if !in || r.together(o) {
			continue
		}
		news := slices.DeleteFunc(slices.Clone(o.Files), func(f OverlapFile) bool { return r.warned(name, o.B, f.Path) })
		if len(news) == 0 {
			continue
		}
		o.Files = news
		r.emit(Effect{Kind: EffectSend, Agent: name, Task: w.Task, Msg: pty.KindSteer, Text: overlapText(o, r.state.Settings.Branch)})
	}
}

// together tells whether two work on the same task, each for itself or as its
// reader: that they meet is no news, and only one's work is merged.
func (r *step) together(o Overlap) bool {
	a, b := r.state.Works[o.A], r.state.Works[o.B]
	return a.Reads || b.Reads || a.Task != "" && a.Task == b.Task
}

// warned tells whether an agent was told of a file before, and notes that it is now.
func (r *step) warned(name, other, path string) bool {
	key := name + " " + other + " " + path
	if r.state.Radar.Warned[key] {
		return true
	}
	next := maps.Clone(r.state.Radar.Warned)
	if next == nil {
		next = map[string]bool{}
	}
	next[key] = true
	r.state.Radar.Warned = next
	return false
}

// informed notes that an agent was told of paths in another way: what the radar
// saw of them until now is no news to it.
func (r *step) informed(name string, paths []string) {
	for _, path := range paths {
		r.warned(name, worktree.Merged, path)
		for _, o := range r.state.Radar.Overlaps {
			if o, in := o.of(name); in {
				r.warned(name, o.B, path)
			}
		}
	}
}

func (o Overlap) samePair(p Overlap) bool { return o.A == p.A && o.B == p.B }

func (o Overlap) other() string {
	if o.B == worktree.Merged {
		return "what is merged"
	}
	return o.B
}

// String says an overlap in a line.
func (o Overlap) String() string {
	var files []string
	for _, f := range o.Files {
		text := f.Path
		if len(f.Hunks) > 0 {
			text += " " + f.Hunks[0].A.String()
		}
		files = append(files, text)
	}
	return fmt.Sprintf("%s will conflict with %s: %s", o.A, o.other(), strings.Join(files, ", "))
}

func overlapText(o Overlap, branch string) string {
	var b strings.Builder
	if o.B == worktree.Merged {
		fmt.Fprintf(&b, "What has been merged to %s changed the same places as you:\n", branch)
	} else {
		fmt.Fprintf(&b, "%s works on the same places as you; whoever of you is merged second will have a conflict:\n", o.B)
	}
	for _, f := range o.Files {
		fmt.Fprintf(&b, "\n    %s", f.Path)
		if len(f.Hunks) == 0 {
			fmt.Fprintf(&b, " (%s)", f.Kind)
		}
		for i, h := range f.Hunks {
			if i > 0 {
				b.WriteString(";")
			}
			fmt.Fprintf(&b, " %s of yours, %s there", h.A, h.B)
		}
	}
	if o.B == worktree.Merged {
		fmt.Fprintf(&b, "\n\nSee it with `git diff HEAD...%s`. Keep your change small there, so that both keep their meaning.\n", branch)
	} else {
		fmt.Fprintf(&b, "\n\nSee their work with `muntin diff %s`. Keep your change small there, or leave the place to them if your task allows.\n", o.B)
	}
	return b.String()
}
