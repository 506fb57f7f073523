package pty

import (
	"errors"

	"muntin/agent/adapter"
)

// hook takes what a hook of the agent's tells.
func (c *session) hook(f Frame) error {
	if f.Hook == nil {
		return c.reply(f, errors.New("hook: nothing told"))
	}
	if !c.v.s.do(c.v.ctx, func() { c.v.s.hooked(*f.Hook) }) {
		return c.reply(f, errEnding)
	}
	return c.reply(Frame{ID: f.ID, OK: true}, nil)
}

// hooked learns which conversation the agent has, and passes on what the hook
// means. What another conversation's hooks tell is of a helper that the agent
// has started, or of a program in its terminal: it says nothing of the agent.
func (s *supervisor) hooked(in adapter.HookInput) {
	if s.m.link || s.m.exited || in.Agent != "" {
		return
	}
	known := s.tail.talk.ID
	switch {
	case in.Conversation == "":
	case known == "" || in.Conversation == known || in.Event == hookBegins:
		s.learned(Conversation{ID: in.Conversation, Transcript: in.Transcript})
	default:
		s.log.Debug("a hook of another conversation", "event", in.Event, "conversation", in.Conversation)
		return
	}
	s.cues.add(cue{kind: adapter.SignalHook, text: in.Signal(), note: in.Note(), at: s.term.output.Load() + 1})
}

// hookBegins is the event with which all the CLIs that have hooks tell that a
// conversation begins: also another one, on a person's command.
const hookBegins = "SessionStart"
