package pty

import (
	"slices"
	"time"

	"muntin/agent/adapter"
)

// A machine is what the supervisor knows of the agent: what it does, which
// messages wait, and which of them is where. It is pure: each method takes
// something that happened and returns what is to be done about it, in order.
//
// A prompt, a followup, or a steer while nothing runs, is handed over alone,
// when the agent is idle (main), and begins a turn. Steers and aborts go into a
// running turn, one after the other (side). A turn that is over is settled
// only after its checkpoint; until then nothing is handed over, and what the
// agent says meanwhile waits too.
type machine struct {
	link    bool              // the built-in agent
	noSteer bool              // it takes nothing while it works
	checks  bool              // a checkpoint is asked for before each turn
	clock   func() time.Time  // wall clock
	measure func() *Resources // what the agent's processes hold now; nil: nobody asks
	guard   func() error      // why nothing must be typed now: a person is at it

	state     AgentState
	source    adapter.Evidence
	since     time.Time
	sure      adapter.Confidence // in what is concluded from the screen now
	stateSure adapter.Confidence // in the state
	turn      int                // number of the last turn

	cur      *turn
	booted   bool      // the first checkpoint has been tried
	settling bool      // the turn's checkpoint is being taken
	checking bool      // the checkpoint before a turn is being taken
	behind   *entry    // is handed over then
	fresh    bool      // a checkpoint has been taken just now
	entered  time.Time // a person pressed Enter, and the state then is kept
	tends    bool      // the store of the checkpoints is looked after
	saved    int       // checkpoints since that was done
	tending  bool      // it is being done
	exited   bool
	ending   bool         // the agent is being ended
	holding  bool         // the next message waits for the person in the pane
	waiter   *WaitingInfo // the running turn waits for a person
	limited  *LimitInfo   // the provider took no more, and no turn has gone well since

	waiting []*entry          // prompts and followups
	urgent  []*entry          // steers and aborts
	main    *entry            // handed over, its turn has not begun
	side    *entry            // handed over, not accepted yet
	open    []*entry          // they end with the turn
	later   []func() []effect // what happened before the checkpoint was there

	todo []effect
}

// A turn is the one that runs.
type turn struct {
	message, task string
	started       time.Time
	aborted       bool
	limited       bool         // a limit was told in it
	end           *TurnEndInfo // it is over
}

// An entry is a message that has not ended.
type entry struct {
	rec      record
	state    MessageState
	evidence adapter.Evidence
	why      string // it has been said that it is held, and why
	late     bool   // it was typed for a turn that was over by then
	tries    int    // how often it was taken back
}

// A handing is one attempt to hand a message over. It is void once the message
// was taken back: then the next one counts, and what becomes of this one does
// not.
type handing struct {
	e   *entry
	try int
}

// An effect is something for the supervisor to do. Exactly one field is set.
type effect struct {
	event      *Event          // write it down
	deliver    *entry          // hand it over
	finish     *entry          // it has ended: put its file away
	checkpoint CheckpointCause // take one
	await      *entry          // it was typed and begins a turn: see what follows
	hold       bool            // call poke when the person has stopped typing
	tend       bool            // look after the store of the checkpoints
}

func newMachine(link bool, turn int, clock func() time.Time) *machine {
	return &machine{
		link: link, turn: turn, clock: clock, guard: func() error { return nil },
		state: AgentStarting, source: adapter.ByNone, since: clock(),
	}
}

func (m *machine) flush() []effect {
	todo := m.todo
	m.todo = nil
	return todo
}

// boot begins: the state before the first turn is kept.
func (m *machine) boot() []effect {
	m.do(effect{checkpoint: CauseStart})
	return m.flush()
}

// add takes a message. told says that its queued event is in the log already.
func (m *machine) add(rec record, told bool) []effect {
	e := &entry{rec: rec, state: StateQueued}
	if !told {
		info := e.info()
		info.Text = rec.Text
		m.write(Event{Kind: EventMessage, Message: &info})
	}
	if rec.Kind == KindSteer || rec.Kind == KindAbort {
		m.urgent = append(m.urgent, e)
	} else {
		m.waiting = append(m.waiting, e)
	}
	m.next()
	return m.flush()
}

// poke looks again whether something can be handed over.
func (m *machine) poke() []effect {
	m.next()
	return m.flush()
}

// ready says that the agent takes prompts. It may come again after a link was
// lost.
func (m *machine) ready(source adapter.Evidence) []effect {
	if m.exited || m.state == AgentIdle || m.state == AgentWorking {
		return nil
	}
	m.write(Event{Kind: EventReady, Ready: &ReadyInfo{Source: source, Confidence: m.sureOf(source)}})
	if m.cur != nil {
		m.enter(AgentWorking, source)
	} else {
		m.waiter = nil // what it asked at its start has been answered
		m.enter(AgentIdle, source)
	}
	m.next()
	return m.flush()
}

// delivered says that the message has been handed over.
func (m *machine) delivered(id string, evidence adapter.Evidence) []effect {
	e := m.inHand(id)
	if e == nil || e.state.Reached(StateDelivered) {
		return nil
	}
	m.step(e, StateDelivered, evidence)
	switch {
	case m.link || e != m.side:
	case m.settling:
		e.late = true
	case m.cur == nil:
		m.promote(e)
	case e.rec.Kind == KindAbort:
		m.cur.aborted = true
	}
	return m.flush()
}

// promote goes on with what was typed for a turn that was over by then.
func (m *machine) promote(e *entry) {
	m.side = nil
	if e.rec.Kind == KindAbort {
		m.finish(e, StateDone, adapter.ByNone, "the turn had ended")
		return
	}
	m.main = e
	m.do(effect{await: e})
}

// accepted says that the agent has taken the message.
func (m *machine) accepted(id string, evidence adapter.Evidence) []effect {
	if m.busy() {
		return m.postpone(func() []effect { return m.accepted(id, evidence) })
	}
	e := m.inHand(id)
	if e == nil || e.state.Reached(StateAccepted) {
		return nil
	}
	m.take(e, evidence)
	if e == m.side {
		m.side = nil
		switch {
		case m.cur == nil && m.main == nil && e.rec.Kind == KindAbort:
			m.finish(e, StateDone, evidence, "") // the turn it was for had ended
		case m.cur == nil && m.main == nil:
			m.main = e // the turn it was for had ended: it begins one
		default:
			m.open = append(m.open, e)
		}
	}
	m.next()
	return m.flush()
}

// refused says that the message will not be taken.
func (m *machine) refused(id, why string) []effect {
	e := m.inHand(id)
	if e == nil {
		return nil
	}
	m.letGo(e)
	m.finish(e, StateFailed, "", why)
	m.next()
	return m.flush()
}

// turnStarted says that a turn has begun, with that message or, if it is empty,
// by a person in the pane.
func (m *machine) turnStarted(message string, source adapter.Evidence) []effect {
	if m.busy() {
		return m.postpone(func() []effect { return m.turnStarted(message, source) })
	}
	if m.unkept(message) {
		m.check(nil)
		// Before what has happened in it meanwhile.
		m.later = slices.Insert(m.later, 0, m.asSure(func() []effect { return m.turnStarted(message, source) }))
		return m.flush()
	}
	m.begin(message, source)
	m.next()
	return m.flush()
}

func (m *machine) begin(message string, source adapter.Evidence) {
	if m.cur != nil || m.exited {
		return
	}
	m.turn++
	m.entered = time.Time{}
	t := &turn{message: message, started: m.clock()}
	if e := m.main; e != nil && message != "" && e.rec.ID == message {
		if !e.state.Reached(StateAccepted) && source != adapter.ByNone {
			m.take(e, source)
		}
		t.task = e.rec.Task
		m.main = nil
		m.open = append(m.open, e)
	} else if e != nil && !m.link {
		m.overtaken(e)
	}
	m.cur = t
	m.enter(AgentWorking, source)
	m.write(Event{Kind: EventTurnStart, TurnStart: &TurnStartInfo{Message: t.message, Task: t.task, Source: source, Confidence: m.sureOf(source)}})
}

// overtaken deals with a message that was to begin a turn when a person was
// faster: it waits again, or, being typed already, went into theirs.
func (m *machine) overtaken(e *entry) {
	switch {
	case !e.state.Reached(stateTyping):
		m.takeBack(e)
	case e.state.Reached(StateAccepted):
		m.main = nil
		m.open = append(m.open, e)
	default:
		m.main, m.side = nil, e
	}
}

// tool says that the agent has used a tool.
func (m *machine) tool(info ToolInfo) []effect {
	if m.busy() {
		return m.postpone(func() []effect { return m.tool(info) })
	}
	if m.link {
		m.waiter = nil // it goes on; another's transcript may be behind
	}
	m.write(Event{Kind: EventTool, Tool: &info})
	return m.flush()
}

// turnOver says that the turn has ended. Its checkpoint is taken before
// anything is written about it.
func (m *machine) turnOver(end TurnEndInfo) []effect {
	if m.busy() {
		return m.postpone(func() []effect { return m.turnOver(end) })
	}
	if m.cur == nil {
		if end.Message == "" || m.main == nil || m.main.rec.ID != end.Message {
			return nil
		}
		m.begin(end.Message, end.Source) // over before it was seen to begin
	}
	if m.cur.aborted && end.Reason == TurnDone && !m.link {
		end.Reason = TurnAborted
	}
	if m.ending && !m.cur.aborted && end.Reason == TurnAborted {
		end.Reason = TurnExited // nobody wanted the turn's end but the program's
	}
	if _, is := adapter.LimitOf(end.Error, m.clock()); is && end.Reason == TurnError && !m.cur.limited {
		m.tellLimit(LimitInfo{Text: clip(end.Error, 512), Source: end.Source})
	}
	end.Confidence = m.sureOf(end.Source)
	m.cur.end = &end
	m.settling = true
	m.do(effect{checkpoint: CauseTurn})
	return m.flush()
}

// checkpointed gives the checkpoint that was asked for: info, or why there is
// none, or neither where none are taken.
func (m *machine) checkpointed(info *CheckpointInfo, why string) []effect {
	if info != nil {
		m.write(Event{Kind: EventCheckpoint, Checkpoint: info})
		m.saved++
	}
	if why != "" {
		m.write(Event{Kind: EventCheckpointFailed, Error: why})
	}
	m.booted, m.fresh = true, true
	switch {
	case m.checking:
		e := m.behind
		m.checking, m.behind = false, nil
		if e != nil && e == m.main && !m.exited {
			m.do(effect{deliver: e})
		}
	case m.settling:
		m.settle(info)
	}
	for len(m.later) > 0 && !m.busy() {
		fn := m.later[0]
		m.later = m.later[1:]
		todo := m.flush()
		m.todo = append(todo, fn()...)
	}
	if e := m.side; e != nil && e.late && !m.exited && !m.busy() {
		m.promote(e)
	}
	if m.exited && !m.settling {
		m.leave()
	}
	m.tend()
	m.next()
	m.fresh = false
	return m.flush()
}

// settle writes the turn's end and those of its messages.
func (m *machine) settle(cp *CheckpointInfo) {
	t := m.cur
	end := *t.end
	end.Message, end.Task, end.Checkpoint = t.message, t.task, cp
	end.Text = lastWords(end.Text, maxLastWords)
	if end.DurationMS == 0 {
		end.DurationMS = m.clock().Sub(t.started).Milliseconds()
	}
	if m.measure != nil && !m.exited {
		end.Resources = m.measure()
	}
	if end.Reason == TurnDone {
		m.limited = nil
	}
	m.write(Event{Kind: EventTurnEnd, TurnEnd: &end})
	if m.side != nil && !m.link && m.side.state.Reached(StateDelivered) && !m.side.late { // typed into the turn, and nothing was seen of it
		m.open = append(m.open, m.side)
		m.side = nil
	}
	open := m.open
	m.cur, m.open, m.settling, m.waiter = nil, nil, false, nil
	if m.state == AgentWorking {
		m.enter(AgentIdle, end.Source)
		m.stateSure = end.Confidence
	}
	for _, e := range open {
		if why := whyFailed(end); why != "" && e.rec.Kind != KindAbort {
			m.finish(e, StateFailed, end.Source, why)
		} else {
			m.finish(e, StateDone, end.Source, "")
		}
	}
}

func whyFailed(end TurnEndInfo) string {
	switch end.Reason {
	case TurnDone:
		return ""
	case TurnError:
		return "the turn ended with an error: " + clip(end.Error, 512)
	case TurnAborted:
		return "the turn was aborted"
	case TurnExited:
		return whyInTurn
	}
	return "the turn ended: " + string(end.Reason)
}

// settled reports whether nothing is under way.
func (m *machine) settled() bool { return !m.busy() }

func (m *machine) busy() bool { return m.settling || m.checking || !m.booted }

// postpone keeps something that happened until the checkpoint is there.
func (m *machine) postpone(fn func() []effect) []effect {
	m.later = append(m.later, m.asSure(fn))
	return nil
}

// asSure has fn called later with the confidence of now.
func (m *machine) asSure(fn func() []effect) func() []effect {
	sure := m.sure
	return func() []effect {
		before := m.sure
		m.sure = sure
		defer func() { m.sure = before }()
		return fn()
	}
}

// sureOf is the confidence to write down with a source.
func (m *machine) sureOf(source adapter.Evidence) adapter.Confidence {
	if source == adapter.ByScreen {
		return m.sure
	}
	return ""
}

// take says that the agent has e, and that it was handed over, if that was not
// said yet: the agent's word may be faster than that of whoever handed it over.
func (m *machine) take(e *entry, evidence adapter.Evidence) {
	if !e.state.Reached(StateDelivered) {
		m.step(e, StateDelivered, evidence)
	}
	m.step(e, StateAccepted, evidence)
}

func (m *machine) step(e *entry, s MessageState, evidence adapter.Evidence) {
	e.state, e.evidence = s, evidence
	info := e.info()
	m.write(Event{Kind: EventMessage, Message: &info})
}

func (m *machine) finish(e *entry, s MessageState, evidence adapter.Evidence, why string) {
	e.rec.Why = why
	m.step(e, s, evidence)
	m.do(effect{finish: e})
}

func (e *entry) info() MessageInfo {
	info := e.rec.info()
	info.State, info.Evidence = e.state, e.evidence
	return info
}

func (m *machine) enter(s AgentState, source adapter.Evidence) {
	if m.state != s {
		m.since = m.clock()
	}
	m.state, m.source, m.stateSure = s, source, m.sureOf(source)
}

func (m *machine) write(ev Event) {
	ev.Turn = m.running()
	if ev.Kind == EventTurnEnd {
		ev.Turn = m.turn
	}
	m.do(effect{event: &ev})
}

// running is the number of the turn that runs, 0 if none does.
func (m *machine) running() int {
	if m.cur == nil {
		return 0
	}
	return m.turn
}

func (m *machine) do(e effect) { m.todo = append(m.todo, e) }

// status tells what the agent does.
func (m *machine) status() Status {
	s := Status{
		State: m.state, Source: m.source, Confidence: m.stateSure, Since: m.since, Turn: m.turn,
		Queued: len(m.waiting) + len(m.urgent), Held: m.holding, Waiting: m.waiter, Limit: m.limited,
	}
	switch {
	case m.cur != nil:
		s.Message, s.Task = m.cur.message, m.cur.task
	case m.main != nil:
		s.Message, s.Task = m.main.rec.ID, m.main.rec.Task
	}
	return s
}
