package rpc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
)

// verbs are the commands there are, by name.
func verbs() map[string]func(*Server, context.Context, command) answer {
	return map[string]func(*Server, context.Context, command) answer{
		"prompt": (*Server).prompt, "steer": (*Server).steer, "follow_up": (*Server).followUp, "abort": (*Server).abort, "clear_queue": (*Server).clearQueue,
		"compact": (*Server).compactNow, "bash": (*Server).bash, "abort_bash": (*Server).abortBash,

		"get_state": (*Server).getState, "get_messages": (*Server).getMessages, "get_commands": (*Server).getCommands,
		"set_model": (*Server).setModel, "cycle_model": (*Server).cycleModel, "get_available_models": (*Server).getModels,
		"set_thinking_level": (*Server).setThinking, "cycle_thinking_level": (*Server).cycleThinking, "get_available_thinking_levels": (*Server).getLevels,
		"set_steering_mode": (*Server).setSteeringMode, "set_follow_up_mode": (*Server).setFollowUpMode,
		"set_auto_compaction": (*Server).setAutoCompaction, "set_auto_retry": (*Server).setAutoRetry, "abort_retry": (*Server).abortRetry,

		"new_session": (*Server).newSession, "switch_session": (*Server).switchSession, "fork": (*Server).fork, "clone": (*Server).clone,
		"get_fork_messages": (*Server).getForkMessages, "get_entries": (*Server).getEntries, "get_tree": (*Server).getTree,
		"get_last_assistant_text": (*Server).getLastText, "set_session_name": (*Server).setName,
		"get_session_stats": (*Server).getStats, "export_html": (*Server).exportHTML,
	}
}

// known is what is known of a model, for a client: at least its names.
func known(m harness.Model) llm.Model {
	k := m.Known
	if provider, id, ok := strings.Cut(m.Name, "/"); ok && k.ID == "" {
		k.Provider, k.ID, k.Name = provider, id, id
	}
	return k
}

// levelOf is the level of thinking for a client. Pi has a word for each; where it
// is left to the provider, ours is "default".
func levelOf(h *harness.Harness) llm.Level {
	level, m := h.Thinking(), h.Model().Known
	switch {
	case level != "":
		return level
	case m.ID != "" && !m.Reasoning:
		return llm.LevelOff
	}
	return "default"
}

func (s *Server) getState(_ context.Context, _ command) answer {
	h := s.current()
	steering, followUp := h.Waiting()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := object{
		"model": known(h.Model()), "thinkingLevel": levelOf(h), "isStreaming": s.run != nil && !s.compacting.Load(),
		"isCompacting": s.compacting.Load(), "steeringMode": s.modes.steering, "followUpMode": s.modes.followUp,
		"sessionId": h.Header().ID, "autoCompactionEnabled": h.AutoCompaction(),
		"messageCount": len(h.Messages()), "pendingMessageCount": len(steering) + len(followUp),
	}
	if path := h.Session().Path(); path != "" {
		o["sessionFile"] = path
	}
	if name := h.Session().Name(); name != "" {
		o["sessionName"] = name
	}
	return answer{data: o}
}

func (s *Server) getMessages(_ context.Context, _ command) answer {
	all, err := messages(s.current().Messages())
	return answer{data: object{"messages": all}, err: err}
}

// getCommands are those of extensions, prompt templates and skills.
func (s *Server) getCommands(context.Context, command) answer {
	return answer{data: object{"commands": s.current().Commands()}}
}

func (s *Server) setModel(ctx context.Context, c command) answer {
	var p struct{ Provider, ModelID string }
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	m, err := s.opts.OpenModel(ctx, p.Provider+"/"+p.ModelID)
	if err != nil {
		return answer{err: said(fmt.Sprintf("Model not found: %s/%s: %v", p.Provider, p.ModelID, err))}
	}
	return answer{data: known(m), err: s.current().SetModel(m)}
}

// cycleModel goes to the next model of the scope; without one, of all.
func (s *Server) cycleModel(ctx context.Context, _ command) answer {
	h, scope := s.current(), s.opts.Scope
	if len(scope) == 0 {
		for _, m := range s.opts.Models() {
			scope = append(scope, Scope{Name: m.Provider + "/" + m.ID})
		}
	}
	if len(scope) < 2 {
		return answer{data: null()}
	}
	at := slices.IndexFunc(scope, func(sc Scope) bool { return sc.Name == h.Model().Name })
	next := scope[(at+1)%len(scope)]
	m, err := s.opts.OpenModel(ctx, next.Name)
	if err != nil {
		return answer{err: err}
	}
	if err := h.SetModel(m); err != nil {
		return answer{err: err}
	}
	if next.Thinking != "" {
		if _, err := h.SetThinking(next.Thinking); err != nil {
			return answer{err: err}
		}
	}
	return answer{data: object{"model": known(m), "thinkingLevel": levelOf(h), "isScoped": len(s.opts.Scope) > 0}}
}

func (s *Server) getModels(_ context.Context, _ command) answer {
	return answer{data: object{"models": list(s.opts.Models())}}
}

func (s *Server) setThinking(_ context.Context, c command) answer {
	var p struct{ Level llm.Level }
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	if !slices.Contains(llm.Levels(), p.Level) {
		return answer{err: fmt.Errorf("thinking level %q: want one of %v", p.Level, llm.Levels())}
	}
	_, err := s.current().SetThinking(p.Level)
	return answer{err: err}
}

func (s *Server) cycleThinking(_ context.Context, _ command) answer {
	h := s.current()
	all := h.Model().Levels()
	if len(all) < 2 {
		return answer{data: null()}
	}
	level, err := h.SetThinking(all[(slices.Index(all, h.Thinking())+1)%len(all)])
	return answer{data: object{"level": level}, err: err}
}

func (s *Server) getLevels(_ context.Context, _ command) answer {
	return answer{data: object{"levels": s.current().Model().Levels()}}
}

func (s *Server) setSteeringMode(_ context.Context, c command) answer {
	return s.setMode(c, &s.modes.steering)
}

func (s *Server) setFollowUpMode(_ context.Context, c command) answer {
	return s.setMode(c, &s.modes.followUp)
}

func (s *Server) setMode(c command, mode *agent.QueueMode) answer {
	var p struct{ Mode agent.QueueMode }
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	if p.Mode != agent.OneAtATime && p.Mode != agent.All {
		return answer{err: fmt.Errorf("mode %q: want %s or %s", p.Mode, agent.OneAtATime, agent.All)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*mode = p.Mode
	s.agent.SetQueueModes(s.modes.steering, s.modes.followUp)
	return answer{}
}

func (s *Server) setAutoCompaction(_ context.Context, c command) answer {
	return s.toggle(c, func(h *harness.Harness, on bool) { s.noCompact = !on; h.SetAutoCompaction(on) })
}

func (s *Server) setAutoRetry(_ context.Context, c command) answer {
	return s.toggle(c, func(h *harness.Harness, on bool) { s.noRetry = !on; h.SetAutoRetry(on) })
}

func (s *Server) toggle(c command, set func(*harness.Harness, bool)) answer {
	var p struct{ Enabled *bool }
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	if p.Enabled == nil {
		return answer{err: fmt.Errorf("%s: enabled is missing", c.name)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.agent, *p.Enabled)
	return answer{}
}

func (s *Server) abortRetry(_ context.Context, _ command) answer {
	s.current().AbortRetry()
	return answer{}
}
