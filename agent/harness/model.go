package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muntin/agent"
	"muntin/agent/compact"
	"muntin/agent/extension"
	"muntin/agent/llm"
)

// A Model is a model that can be asked. Of Known, the window and the output limit
// count for the room in the context, and the levels for thinking; the zero value
// is a model of which nothing is known.
type Model struct {
	Provider llm.Provider
	Name     string // "provider/id"; ids may hold slashes of their own
	Known    llm.Model
}

func (m Model) provider() string {
	provider, _, ok := strings.Cut(m.Name, "/")
	if !ok {
		return ""
	}
	return provider
}

func (m Model) id() string {
	_, id, ok := strings.Cut(m.Name, "/")
	if !ok {
		return m.Name
	}
	return id
}

// level is the level nearest to want that the model has. Of a model of which
// nothing is known, every level is taken as said.
func (m Model) level(want llm.Level) llm.Level {
	if m.Known.ID == "" {
		return want
	}
	level, _ := m.Known.Level(want)
	return level
}

// Levels are the levels of thinking that the model has; all of them when nothing is
// known of it.
func (m Model) Levels() []llm.Level {
	if m.Known.ID == "" {
		return llm.Levels()
	}
	return slices.DeleteFunc(llm.Levels(), func(l llm.Level) bool { return !m.Known.Supports(l) })
}

// restore takes over what the session says of model and thinking, and records in
// it what differs.
func (h *Harness) restore(want, preset llm.Level) error {
	if p, m := h.session.Model(); p != h.model.provider() || m != h.model.id() {
		if _, err := h.session.AppendModel(h.model.provider(), h.model.id()); err != nil {
			return err
		}
	}
	last := h.session.Thinking()
	want = cmp.Or(want, last, preset)
	h.level = h.model.level(want)
	if h.level != last && h.level != "" {
		if _, err := h.session.AppendThinking(h.level); err != nil {
			return err
		}
	}
	return nil
}

// Model is the model that the next request goes to.
func (h *Harness) Model() Model {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.model
}

// SetModel changes the model from the next request on, also in the midst of a
// run, and records it in the session. The level of thinking becomes the nearest
// that the new model has. Providers convert the transcript that they are given.
func (h *Harness) SetModel(m Model) error {
	if m.Provider == nil || m.id() == "" {
		return fmt.Errorf("setting the model %q: it cannot be asked", m.Name)
	}
	if m.Name != h.Model().Name {
		if _, err := h.session.AppendModel(m.provider(), m.id()); err != nil {
			return fmt.Errorf("setting the model: %w", err)
		}
	}
	h.mu.Lock()
	h.model = m
	h.kernel.SetModel(h.asked(m.Provider), m.id())
	level := h.level
	h.mu.Unlock()
	h.ext.Tell(extension.EventModelSelect, map[string]string{"model": m.Name})
	_, err := h.SetThinking(level)
	return err
}

// Thinking is the level that the next request asks for; "" is the provider's default.
func (h *Harness) Thinking() llm.Level {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.level
}

// SetThinking changes the level of thinking from the next request on and records
// it in the session. It returns the level that counts: the nearest that the model
// has. A change is told of by thinking_level_changed: OnEvent must not call it.
func (h *Harness) SetThinking(want llm.Level) (llm.Level, error) {
	h.mu.Lock()
	level := h.model.level(want)
	changed := level != h.level
	h.level = level
	h.kernel.SetThinking(level)
	h.mu.Unlock()
	if !changed {
		return level, nil
	}
	if _, err := h.session.AppendThinking(level); err != nil {
		return level, fmt.Errorf("setting the level of thinking: %w", err)
	}
	h.tell(agent.Event{Type: agent.EventThinkingLevel, Level: level})
	return level, nil
}

// Rename gives the session a name for people. It is told of by session_info_changed:
// OnEvent must not call it.
func (h *Harness) Rename(name string) error {
	if err := h.session.Rename(name); err != nil {
		return err
	}
	h.tell(agent.Event{Type: agent.EventSessionInfo, Name: name})
	return nil
}

// AutoCompaction tells whether room is made unasked.
func (h *Harness) AutoCompaction() bool { return !h.settings().Off }

// SetAutoCompaction turns making room unasked on or off, for this agent only. A
// window that has overflowed is always recovered from.
func (h *Harness) SetAutoCompaction(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sizes.Off = !on
}

// SetAutoRetry turns making failed requests again on or off, for this agent only.
func (h *Harness) SetAutoRetry(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noRetry = !on
	h.kernel.SetRetry(h.policy())
}

// policy needs the lock.
func (h *Harness) policy() agent.RetryPolicy {
	p := h.retry
	if h.noRetry {
		p.MaxAttempts = -1
	}
	return p
}

// AbortRetry ends the wait for a retry, if there is one.
func (h *Harness) AbortRetry() { h.kernel.AbortRetry() }

// settings are those of compaction, for the present model.
func (h *Harness) settings() compact.Settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sizes
	if s.Window = h.window; s.Window == 0 {
		s.Window = h.model.Known.ContextWindow
	}
	return s
}

// summariser is the present model as it makes summaries.
func (h *Harness) summariser() compact.Model {
	window := h.settings().Window
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := h.maxOut
	if limit == 0 {
		limit = h.model.Known.MaxTokens
	}
	return compact.Model{
		Provider: h.model.Provider, ID: h.model.id(), Window: window, MaxTokens: limit,
		SessionID: h.session.Header().ID, Retry: h.policy(), OnRetry: h.tell,
	}
}
