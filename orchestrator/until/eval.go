package until

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"muntin/agent/pty"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// A scope is what a field is looked up in.
type scope struct {
	view history.View
	now  time.Time
	wake time.Time // the first time at which a comparison may turn out differently
}

// A node is a condition.
type node interface{ holds(s *scope) bool }

type chain struct {
	list []node
	all  bool
}

// holds looks at every part, so that all of them can say when they may change.
func (c chain) holds(s *scope) bool {
	result := c.all
	for _, n := range c.list {
		if n.holds(s) != c.all {
			result = !c.all
		}
	}
	return result
}

type negation struct{ of node }

func (n negation) holds(s *scope) bool { return !n.of.holds(s) }

type truth struct{ of field }

func (t truth) holds(s *scope) bool {
	return t.of.quantify(s, func(v value) bool { return v.yes })
}

type comparison struct {
	left, right field
	op          string
}

func (c comparison) holds(s *scope) bool {
	right := c.right.values(s)[0]
	return c.left.quantify(s, func(v value) bool {
		if c.left.kind == kindDuration && !v.since.IsZero() {
			s.soon(v.since.Add(time.Duration(right.number)), c.op)
		}
		return c.compare(v, right)
	})
}

// soon notes when a duration that grows reaches what it is compared with.
func (s *scope) soon(at time.Time, op string) {
	if op != ">=" && op != "<" {
		at = at.Add(1) // it is greater a nanosecond later
	}
	if at.After(s.now) && (s.wake.IsZero() || at.Before(s.wake)) {
		s.wake = at
	}
}

func (c comparison) compare(a, b value) bool {
	order := 0
	switch {
	case c.left.kind == kindWord:
		order = strings.Compare(a.word, b.word)
	case c.left.kind == kindBool:
		if a.yes != b.yes {
			order = 1
		}
	case a.number < b.number:
		order = -1
	case a.number > b.number:
		order = 1
	}
	switch c.op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// A value is one of the kinds. A duration that grows has since, from when on.
type value struct {
	yes    bool
	word   string
	number int64
	since  time.Time
}

// A field is where a value comes from.
type field struct {
	kind   kind
	words  []string // that it can be; nil: any
	many   bool     // it may have several values
	every  bool     // and all of them must fit, not one
	values func(*scope) []value
}

func (f field) quantify(s *scope, fits func(value) bool) bool {
	result := f.every
	for _, v := range f.values(s) {
		if fits(v) != f.every {
			result = !f.every
		}
	}
	return result
}

func constant(k kind, v value) field {
	return field{kind: k, values: func(*scope) []value { return []value{v} }}
}

// operand is the right side of a comparison with left.
func (p *parser) operand(left field, t token) (field, error) {
	switch t.kind {
	case tokText, tokWord:
		return p.word(left, t)
	case tokNumber:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil || left.kind != kindNumber && !(left.kind == kindDuration && n == 0) {
			return field{}, p.fail(t, "%s is a number, and is compared with %s", t.text, left.kind)
		}
		return constant(left.kind, value{number: n}), nil
	case tokDuration:
		d, err := time.ParseDuration(t.text)
		if err != nil || left.kind != kindDuration {
			return field{}, p.fail(t, "%s is a duration, and is compared with %s", t.text, left.kind)
		}
		return constant(kindDuration, value{number: int64(d)}), nil
	case tokTask:
		if left.kind == kindWord && left.words == nil { // ada.task == ^sum
			return constant(kindWord, value{word: t.text}), nil
		}
	case tokEnd, tokOp:
	}
	return field{}, p.fail(t, "want a value to compare with here")
}

// word is a word on the right side: a value of left, or another number's name.
func (p *parser) word(left field, t token) (field, error) {
	if t.kind == tokWord && left.kind == kindNumber {
		f, err := p.field(t)
		if err == nil && f.kind == kindNumber && f.many {
			return f, p.fail(t, "any and all stand on the left side")
		}
		if err == nil && f.kind == kindNumber {
			return f, nil // done == tasks
		}
	}
	if left.kind == kindBool && (t.text == "true" || t.text == "false") {
		return constant(kindBool, value{yes: t.text == "true"}), nil
	}
	if left.kind != kindWord {
		return field{}, p.fail(t, "%q is a word, and is compared with %s", t.text, left.kind)
	}
	if left.words != nil && !slices.Contains(left.words, t.text) {
		return field{}, p.fail(t, "it is never %q: it is one of %s", t.text, strings.Join(left.words, ", "))
	}
	return constant(kindWord, value{word: t.text}), nil
}

// counts are the numbers of the run, by name.
func counts(name string) (orchestrator.TaskState, bool) {
	s := orchestrator.TaskState(name)
	switch s {
	case orchestrator.TaskOpen, orchestrator.TaskActive, orchestrator.TaskDone, orchestrator.TaskBlocked, orchestrator.TaskCancelled, orchestrator.TaskWaiting:
		return s, true
	}
	return s, false
}

func phases() []string {
	return []string{
		string(orchestrator.PhaseStarting), string(orchestrator.PhaseRunning), string(orchestrator.PhaseWaiting), string(orchestrator.PhaseDone),
	}
}

func taskStates() []string {
	return []string{
		string(orchestrator.TaskOpen), string(orchestrator.TaskActive), string(orchestrator.TaskDone), string(orchestrator.TaskBlocked),
		string(orchestrator.TaskCancelled), string(orchestrator.TaskWaiting),
	}
}

func agentStates() []string {
	return []string{
		string(pty.AgentStarting), string(pty.AgentIdle), string(pty.AgentWorking), "waiting", "limited", string(pty.AgentExited), string(pty.AgentUnknown),
	}
}

// field is what a word or a task stands for.
func (p *parser) field(t token) (field, error) {
	switch t.kind {
	case tokTask:
		return p.task(t)
	case tokWord:
	case tokEnd:
		return field{}, p.fail(t, "want a condition here")
	case tokText, tokNumber, tokDuration, tokOp:
		return field{}, p.fail(t, "%q cannot stand here: want a field of the run, an agent or a task", t.text)
	}
	name := strings.TrimPrefix(t.text, "run.")
	if state, ok := counts(name); ok {
		return field{kind: kindNumber, values: func(s *scope) []value { return []value{{number: int64(s.view.State.Count(state))}} }}, nil
	}
	switch name {
	case "phase":
		return field{kind: kindWord, words: phases(), values: func(s *scope) []value { return []value{{word: string(s.view.State.Phase)}} }}, nil
	case "tasks":
		return field{kind: kindNumber, values: func(s *scope) []value { return []value{{number: tasks(s.view.State)}} }}, nil
	}
	if of, what, ok := strings.Cut(t.text, "."); ok && of != "run" {
		return p.agent(t, of, what)
	}
	return field{}, p.fail(t, "there is no %q: the run has phase, tasks, done, open, active, blocked, waiting and cancelled; "+
		"an agent's field is written agent.field, a task ^id", t.text)
}

func tasks(s orchestrator.State) int64 {
	var n int64
	for _, t := range s.Tasks {
		if !t.Group {
			n++
		}
	}
	return n
}

func (p *parser) task(t token) (field, error) {
	id, what, _ := strings.Cut(t.text, ".")
	if p.names.Tasks != nil && !slices.Contains(p.names.Tasks, id) {
		return field{}, p.fail(t, "the board has no task ^%s", id)
	}
	switch what {
	case "":
		return field{kind: kindBool, values: func(s *scope) []value {
			task, _ := s.view.State.Task(id)
			return []value{{yes: task.State == orchestrator.TaskDone}}
		}}, nil
	case "state":
		return field{kind: kindWord, words: taskStates(), values: func(s *scope) []value {
			task, _ := s.view.State.Task(id)
			return []value{{word: string(task.State)}}
		}}, nil
	}
	return field{}, p.fail(t, "a task has no %q: it has state", what)
}

func (p *parser) agent(t token, of, what string) (field, error) {
	f := field{every: of == "all"}
	of, isAgent := strings.CutPrefix(of, "@")
	if quantified := of == "all" || of == "any"; !quantified || isAgent {
		if !slices.Contains(p.names.Agents, of) {
			return f, p.fail(t, "the run has no agent %q: it has %s", of, strings.Join(p.names.Agents, ", "))
		}
	} else {
		of, f.many = "", true
	}
	var get func(s *scope, a history.Agent) value
	switch what {
	case "state":
		f.kind, f.words = kindWord, agentStates()
		get = func(_ *scope, a history.Agent) value { return value{word: a.Short()} }
	case "task":
		f.kind = kindWord
		get = func(s *scope, a history.Agent) value { return value{word: s.view.State.Agents[a.Name].Task} }
	case "turn":
		f.kind = kindNumber
		get = func(_ *scope, a history.Agent) value { return value{number: int64(a.Turn)} }
	case "queued":
		f.kind = kindNumber
		get = func(_ *scope, a history.Agent) value { return value{number: int64(a.Queued)} }
	case "for":
		f.kind = kindDuration
		get = func(s *scope, a history.Agent) value { return value{number: int64(s.now.Sub(a.Since)), since: a.Since} }
	case "idle":
		f.kind = kindDuration
		get = func(s *scope, a history.Agent) value {
			if a.State != pty.AgentIdle {
				return value{}
			}
			return value{number: int64(s.now.Sub(a.Since)), since: a.Since}
		}
	case "stalled":
		f.kind = kindBool
		get = func(s *scope, a history.Agent) value { return value{yes: s.view.State.Agents[a.Name].Silence.Stalled} }
	default:
		return f, p.fail(t, "an agent has no %q: it has state, task, turn, queued, for, idle and stalled", what)
	}
	f.values = func(s *scope) []value {
		var out []value
		for _, a := range s.view.Agents {
			if of == "" || a.Name == of {
				out = append(out, get(s, a))
			}
		}
		return out
	}
	return f, nil
}

// Holds tells whether the condition holds for a view at a time, and if not,
// when it may come to hold by time alone; zero: it needs an event for that.
func (e *Expr) Holds(view history.View, now time.Time) (holds bool, wake time.Time) {
	s := &scope{view: view, now: now}
	holds = e.root.holds(s)
	return holds, s.wake
}
