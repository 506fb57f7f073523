package history

import (
	"fmt"
	"slices"
	"time"

	"muntin/agent/pty"
	"muntin/checkpoint"
)

// A Timeline is a run on one axis: a lane of each agent, of the board, of the
// run as a whole, and of people.
type Timeline struct {
	Run   string    `json:"run"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Lanes []Lane    `json:"lanes"`
}

// A Lane is what one of them did. Spans do not overlap unless one lies inside
// the other: what lies inside comes later.
type Lane struct {
	Name  string `json:"name"`
	Spans []Span `json:"spans,omitempty"`
	Marks []Mark `json:"marks,omitempty"`
}

// The lanes that are of no agent. Agents cannot have these names.
const (
	LaneRun    = "(run)"
	LaneBoard  = "(board)"
	LanePeople = "(people)"
)

// A SpanKind says what lasted.
type SpanKind string

// What lasts: that an agent's program runs, its turns, and that it waits for a person.
const (
	SpanAlive   SpanKind = "alive"
	SpanTurn    SpanKind = "turn"
	SpanWaiting SpanKind = "waiting"
)

// A Span lasted from From to To; Open says that it goes on, or that its end
// was not written down.
type Span struct {
	Kind SpanKind  `json:"kind"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Open bool      `json:"open,omitempty"`
	Turn int       `json:"turn,omitempty"`
	Task string    `json:"task,omitempty"`
	What string    `json:"what,omitempty"` // how a turn ended; what it waited for
	Text string    `json:"text,omitempty"` // a turn's prompt; a question
}

// A Mark is what happened at one moment.
type Mark struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	What string    `json:"what"`
	Task string    `json:"task,omitempty"`
	Text string    `json:"text,omitempty"`
	Who  string    `json:"who,omitempty"`
	Bad  bool      `json:"bad,omitempty"`
}

// TimelineOf lays a stream out. Agents gives the order of their lanes; what
// goes on lasts until now.
func TimelineOf(run string, agents []string, events []Event, now time.Time) Timeline {
	t := Timeline{Run: run, To: now}
	lanes := map[string]*builder{}
	for _, name := range agents {
		lanes[name] = &builder{Lane: Lane{Name: name}, prompts: map[string]string{}}
	}
	other := map[string]*Lane{LaneRun: {Name: LaneRun}, LaneBoard: {Name: LaneBoard}, LanePeople: {Name: LanePeople}}
	open := false
	for _, e := range events {
		if t.From.IsZero() {
			t.From = e.Time
		}
		b := lanes[e.Agent]
		if b != nil && e.Log != nil {
			b.log(e)
		}
		name := ""
		switch e.Kind {
		case KindBoard, KindPlan, KindClaim:
			name = LaneBoard
		case KindRun, KindOverlap, KindRequest:
			name = LaneRun
		case KindCheck, KindMerge:
			if b == nil {
				name = LaneRun
			}
		}
		mark := Mark{e.Time, e.Kind, e.What, e.Task, e.Text, e.Who, e.Bad()}
		switch {
		case name != "" && e.What != "started" || e.Kind == KindRun:
			other[name].Marks = append(other[name].Marks, mark)
		case name == "" && b != nil && marked(e):
			b.Marks = append(b.Marks, mark)
		}
		if e.Who == Person {
			other[LanePeople].Marks = append(other[LanePeople].Marks, mark)
		}
	}
	for _, name := range agents {
		lanes[name].end(now)
		open = open || slices.ContainsFunc(lanes[name].Spans, func(s Span) bool { return s.Open })
		t.Lanes = append(t.Lanes, lanes[name].Lane)
	}
	for _, name := range []string{LaneBoard, LaneRun, LanePeople} {
		t.Lanes = append(t.Lanes, *other[name])
	}
	if n := len(events); n > 0 && !open {
		t.To = events[n-1].Time
	}
	if t.From.IsZero() {
		t.From = now
	}
	return t
}

// marked tells whether an event is a mark in an agent's lane.
func marked(e Event) bool {
	switch e.Kind {
	case KindCheckpoint:
		return e.What != string(checkpoint.CauseStart) && e.What != string(checkpoint.CauseBetween)
	case KindCheck, KindMerge:
		return e.What != "started"
	case KindPrompt, KindRollback, KindLimit, KindRestart:
		return true
	case KindMessage:
		return e.What == "failed"
	case KindAgent:
		return e.What == "lost" || e.What == "ended"
	}
	return false
}

// A builder makes an agent's lane.
type builder struct {
	Lane
	alive, turn, wait *Span
	prompts           map[string]string // by the message's id
}

func (b *builder) log(e Event) {
	if e.Kind == KindPrompt {
		b.prompts[e.ID] = e.Text
	}
	switch l := e.Log; {
	case l.Kind == pty.EventStart:
		b.end(e.Time)
		b.alive = b.begin(Span{Kind: SpanAlive, From: e.Time})
	case l.Kind == pty.EventExit:
		b.stop(&b.wait, e.Time, "")
		b.stop(&b.turn, e.Time, string(pty.TurnExited))
		b.stop(&b.alive, e.Time, e.Text)
	case l.TurnStart != nil:
		b.stop(&b.turn, e.Time, "")
		b.turn = b.begin(Span{Kind: SpanTurn, From: e.Time, Turn: e.Turn, Task: e.Task, Text: b.prompts[e.ID]})
	case l.TurnEnd != nil:
		b.stop(&b.wait, e.Time, "")
		b.stop(&b.turn, e.Time, e.What)
	case l.Waiting != nil:
		b.stop(&b.wait, e.Time, "")
		if l.Waiting.For != pty.WaitNothing {
			b.wait = b.begin(Span{Kind: SpanWaiting, From: e.Time, What: e.What, Text: e.Text})
		}
	}
}

func (b *builder) begin(s Span) *Span {
	s.Open = true
	return &s
}

func (b *builder) stop(s **Span, at time.Time, what string) {
	if *s == nil {
		return
	}
	(*s).To, (*s).Open = at, false
	if what != "" {
		(*s).What = what
	}
	b.Spans = append(b.Spans, **s)
	*s = nil
}

// end closes what goes on, and leaves it marked as open. Spans are in the order
// in which they are drawn then: what lies inside another comes behind it.
func (b *builder) end(now time.Time) {
	for _, s := range []**Span{&b.wait, &b.turn, &b.alive} {
		if *s != nil {
			(*s).To = now
			b.Spans = append(b.Spans, **s)
			*s = nil
		}
	}
	rank := map[SpanKind]int{SpanAlive: 0, SpanTurn: 1, SpanWaiting: 2}
	slices.SortStableFunc(b.Spans, func(x, y Span) int {
		if rank[x.Kind] != rank[y.Kind] {
			return rank[x.Kind] - rank[y.Kind]
		}
		return x.From.Compare(y.From)
	})
}

// Label is a span's name in a few words.
func (s Span) Label() string {
	if s.Kind != SpanTurn {
		return s.What
	}
	label := fmt.Sprint(s.Turn)
	if s.Task != "" {
		label += " ^" + s.Task
	}
	return label
}
