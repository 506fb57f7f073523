package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"muntin/agent"
	"muntin/agent/compact"
	"muntin/agent/llm"
	"muntin/agent/session"
)

// Why room is made in the context.
const (
	reasonManual    = "manual"
	reasonThreshold = "threshold"
	reasonOverflow  = "overflow"
)

// room is what is known of the room in the context. It belongs to the run, or to
// Compact and Navigate while there is none.
type room struct {
	changed func(ctx context.Context, since time.Time) ([]string, error)
	base    int          // tokens of the system prompt and the tools; never changed
	since   atomic.Int64 // Unix milliseconds: responses before it counted another context
	quiet   int          // tokens below which it was tried in vain, or again too soon
	full    bool         // the model said, in a good response, that the window is full
	tried   bool         // and that was acted upon since the last whole answer
}

// measure counts what a request holds beside the messages.
func (r *room) measure(system string, tools []agent.Tool) {
	bytes := len(system)
	for _, t := range tools {
		spec := t.Spec()
		bytes += len(spec.Name) + len(spec.Description) + len(spec.Parameters)
	}
	r.base = bytes / 4
}

// hooks are the kernel's, by which room is made before every request, after an
// overflow, and when a response says that the window is full.
func (h *Harness) hooks() agent.Hooks {
	return agent.Hooks{PrepareTurn: h.prepareTurn, Overflow: h.overflow, FinishTurn: h.finishTurn}
}

func (h *Harness) prepareTurn(ctx context.Context, messages []llm.Message) ([]llm.Message, error) {
	tokens := compact.Tokens(messages, h.room.since.Load(), h.room.base)
	reason := reasonThreshold
	switch {
	case h.room.full:
		h.room.full, reason = false, reasonOverflow
	case !h.settings().Needed(tokens) || tokens <= h.room.quiet:
		return nil, nil
	}
	_, err := h.makeRoom(ctx, reason, "")
	h.room.quiet = compact.Tokens(h.session.Messages(), h.room.since.Load(), h.room.base) + h.settings().WithDefaults().Reserve/4
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, nil // it was told, and the request may still fit
	}
	return h.session.Messages(), nil
}

func (h *Harness) overflow(ctx context.Context, _ error, _ []llm.Message) ([]llm.Message, error) {
	if _, err := h.makeRoom(ctx, reasonOverflow, ""); err != nil {
		return nil, err
	}
	return h.session.Messages(), nil
}

// finishTurn sees the overflows that come without an error: an answer that had
// no room to begin, or one to more than the window holds.
func (h *Harness) finishTurn(_ context.Context, turn agent.Turn) (agent.Action, error) {
	u, window := turn.Message.Usage, h.settings().Window
	if u == nil || window <= 0 {
		return agent.ActionDefault, nil
	}
	input := u.Input + u.CacheRead + u.CacheWrite
	cut := turn.Message.StopReason == llm.StopLength && u.Output == 0 && input >= window-window/100
	if input > window || cut {
		h.room.full = !h.room.tried
		h.room.tried = true
	} else {
		h.room.tried = false
	}
	if cut && h.room.full {
		return agent.ActionContinue, nil
	}
	return agent.ActionDefault, nil
}

// Compact replaces the older part of what the model sees by a summary, which
// instructions may steer. It fails with an error that matches compact.ErrNothing
// when there is no such part, agent.ErrBusy during a run, ErrAborted after Abort,
// and with the model's error. Messages that wait stay waiting.
func (h *Harness) Compact(ctx context.Context, instructions string) (agent.Compaction, error) {
	var done agent.Compaction
	err := h.idle(ctx, func(ctx context.Context) error {
		var err error
		if done, err = h.makeRoom(ctx, reasonManual, instructions); err != nil {
			return err
		}
		return h.kernel.SetMessages(h.session.Messages())
	})
	return done, err
}

// idle runs what needs that no run goes on, and keeps one from beginning.
func (h *Harness) idle(ctx context.Context, do func(ctx context.Context) error) error {
	_, err := h.execute(func() error { return h.stopping(ctx, do) })
	return err
}

// makeRoom compacts, and tells of it by events.
func (h *Harness) makeRoom(ctx context.Context, reason, instructions string) (agent.Compaction, error) {
	h.tell(agent.Event{Type: agent.EventCompaction, Reason: reason})
	done, cause, err := h.compact(ctx, reason, instructions)
	end := agent.Event{
		Type: agent.EventCompactionEnd, Reason: reason, Aborted: ctx.Err() != nil,
		WillRetry: err == nil && reason == reasonOverflow,
	}
	switch {
	case err != nil:
		end.Error = err.Error()
	case cause != nil:
		end.Error = fmt.Sprintf("the summary was made without a model: %v", cause)
	}
	if err == nil {
		end.Compaction = &done
	}
	h.tell(end)
	return done, err
}

// tell hands an event out, one after the other also when what it tells of does not
// belong to the run.
func (h *Harness) tell(e agent.Event) {
	h.ext.Event(e)
	h.show(e)
}

// show is tell for the front end alone.
func (h *Harness) show(e agent.Event) {
	h.telling.Lock()
	defer h.telling.Unlock()
	if h.onEvent != nil {
		h.onEvent(e)
	}
}

// compact keeps a summary in the session. cause is why no model made it.
func (h *Harness) compact(ctx context.Context, reason, instructions string) (done agent.Compaction, cause, err error) {
	items := itemsOf(h.session.Context())
	before := tokensOf(items)
	limit := h.limit(before)
	keep := h.settings().WithDefaults().Keep
	if reason == reasonOverflow {
		keep = min(keep, limit/2)
	}
	req := h.request(ctx, items, keep, instructions)
	var res compact.Result
	summary, err := h.gateCompaction(ctx, reason, &req)
	switch {
	case err != nil:
		return done, nil, err
	case summary != "":
		res, err = compact.Written(req, summary)
	default:
		res, err = h.summariser().Compact(ctx, req)
	}
	if err != nil && ctx.Err() == nil && mayFallBack(reason, err) {
		res, err = compact.Fallback(req, err)
	}
	nothing := errors.Is(err, compact.ErrNothing) && reason != reasonManual
	if err != nil && !nothing {
		return done, nil, err
	}
	if err == nil {
		if err := h.keepSummary(res); err != nil {
			return done, nil, err
		}
	}
	trimmed, err := h.trim(reason, limit)
	if err != nil {
		return done, nil, err
	}
	if nothing && !trimmed {
		return done, nil, compact.ErrNothing
	}
	h.room.since.Store(h.now().UnixMilli())
	return agent.Compaction{
		Summary: res.Summary, FirstKept: res.FirstKept, TokensBefore: before,
		TokensAfter: tokensOf(itemsOf(h.session.Context())), Details: res.Details(),
	}, res.Cause, nil
}

// mayFallBack tells whether a summary without a model is better than none. After
// an overflow it always is. Else, what is wrong with the key or the network will
// keep the next request from being made as well, and the work is not lost.
func mayFallBack(reason string, err error) bool {
	if reason == reasonManual || errors.Is(err, compact.ErrNothing) {
		return false
	}
	switch llm.Classify(err) {
	case llm.ClassAuth, llm.ClassQuota, llm.ClassRetryable, llm.ClassAborted:
		return reason == reasonOverflow
	}
	return true
}

// limit is what the context may take after room was made.
func (h *Harness) limit(before int) int {
	s := h.settings().WithDefaults()
	if s.Window <= 0 {
		return before / 2
	}
	return min(s.Window-s.Reserve-h.room.base, before)
}

// ContextUsage is about how many tokens the next request takes, and the model's
// window; 0 when that is not known.
func (h *Harness) ContextUsage() (tokens, window int) {
	return compact.Tokens(h.kernel.Messages(), h.room.since.Load(), h.room.base), h.settings().Window
}

func tokensOf(items []compact.Item) int {
	sum := 0
	for _, it := range items {
		sum += compact.Estimate(it.Message)
	}
	return sum
}

// itemsOf is what the model is shown of a context: responses that failed are not.
func itemsOf(context []session.Item) []compact.Item {
	items := make([]compact.Item, 0, len(context))
	for _, it := range context {
		if stop := it.Message.StopReason; stop != llm.StopError && stop != llm.StopAborted {
			items = append(items, compact.Item{ID: it.Entry, Summary: it.Type == session.TypeCompaction, Message: it.Message})
		}
	}
	return items
}

func (h *Harness) request(ctx context.Context, items []compact.Item, keep int, instructions string) compact.Request {
	req := compact.Request{Items: items, Keep: keep, Instructions: instructions}
	since := time.Time{}
	if last, ok := h.session.LastCompaction(); ok {
		req.Previous, since = last.Summary, last.Time()
		_ = json.Unmarshal(last.Details, &req.Files) // another program's details may be of another form
	}
	if h.room.changed != nil {
		if changed, err := h.room.changed(ctx, since); err == nil { // else the calls of tools are all that is known
			req.Changed = changed
		}
	}
	return req
}

func (h *Harness) keepSummary(res compact.Result) error {
	usage := &res.Usage
	if res.Cause != nil {
		usage = nil
	}
	h.mu.Lock()
	h.run.usage = h.run.usage.Add(res.Usage)
	h.mu.Unlock()
	_, err := h.session.Append(session.Entry{
		Type: session.TypeCompaction, Summary: res.Summary, FirstKept: res.FirstKept,
		TokensBefore: res.TokensBefore, Details: res.Details(), Usage: usage,
	})
	return err
}

// trim shortens large tool results by context edits when what had to be kept
// does not fit.
func (h *Harness) trim(reason string, limit int) (bool, error) {
	if reason == reasonManual {
		return false, nil
	}
	trims := compact.Trims(itemsOf(h.session.Context()), limit)
	for _, t := range trims {
		content, err := json.Marshal(map[string]any{"content": []llm.Block{{Type: llm.BlockText, Text: t.Text}}})
		if err != nil {
			return false, err
		}
		if _, err := h.session.Append(session.Entry{Type: session.TypeContextEdit, TargetID: t.ID, Replacement: content}); err != nil {
			return false, err
		}
	}
	return len(trims) > 0, nil
}
