package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
)

// change leaves the present conversation for the one at a place. It stays in the
// present one when the other cannot be opened.
func (s *Server) change(ctx context.Context, at Place) error {
	s.endCommands() // they belong to the conversation that is left
	err := s.exchange(ctx, at)
	if err == nil {
		s.Waiting() // for what an extension of the new one said before
	}
	return err
}

func (s *Server) exchange(ctx context.Context, at Place) error {
	defer s.pause()()
	old := s.current()
	h, err := s.opts.Open(ctx, at, s.onEvent)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.agent = h
	h.SetQueueModes(s.modes.steering, s.modes.followUp)
	if s.noRetry {
		h.SetAutoRetry(false)
	}
	if s.noCompact {
		h.SetAutoCompaction(false)
	}
	s.mu.Unlock()
	if err := old.Close(); err != nil {
		return fmt.Errorf("closing the session that was left: %w", err)
	}
	return nil
}

// fresh is a place for a new conversation with the present model.
func (s *Server) fresh(parent string) (Place, error) {
	file, err := s.opts.NewFile()
	h := s.current()
	return Place{File: file, Parent: parent, Model: h.Model().Name, Thinking: h.Thinking()}, err
}

// leave does what leaves the present conversation, when no extension minds. That may
// take a question to the client, whose answer must be read meanwhile.
func (s *Server) leave(ctx context.Context, reason, target string, do func() answer) answer {
	h := s.current()
	if len(h.Extensions()) == 0 {
		return do()
	}
	return answer{later: func() answer {
		if err := h.MaySwitch(ctx, reason, target); err != nil {
			return answer{data: object{"cancelled": true, "reason": err.Error()}}
		}
		return do()
	}}
}

func (s *Server) newSession(ctx context.Context, c command) answer {
	var p struct {
		Parent string `json:"parentSession"`
	}
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	return s.leave(ctx, harness.SwitchNew, "", func() answer {
		at, err := s.fresh(p.Parent)
		if err == nil {
			err = s.change(ctx, at)
		}
		return answer{data: object{"cancelled": false}, err: err}
	})
}

func (s *Server) switchSession(ctx context.Context, c command) answer {
	var p struct {
		Path string `json:"sessionPath"`
	}
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	path, err := filepath.Abs(p.Path)
	if err != nil || p.Path == "" {
		return answer{err: errors.Join(errors.New("sessionPath is missing"), err)}
	}
	if _, err := session.ReadHeader(path); err != nil { // a new one is made by new_session
		return answer{err: err}
	}
	if path == s.current().Session().Path() {
		return answer{data: object{"cancelled": false}}
	}
	return s.leave(ctx, harness.SwitchResume, path, func() answer {
		return answer{data: object{"cancelled": false}, err: s.change(ctx, Place{File: path})}
	})
}

// fork goes on in a new session that holds what lay before a message of the user,
// whose text is given back to be sent again.
func (s *Server) fork(ctx context.Context, c command) answer {
	var p struct {
		Entry string `json:"entryId"`
	}
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	e, err := s.current().Session().Entry(p.Entry)
	if err != nil {
		return answer{err: err}
	}
	if e.Message == nil || e.Message.Role != llm.RoleUser {
		return answer{err: said("Invalid entry ID for forking")}
	}
	parent := ""
	if e.ParentID != nil {
		parent = *e.ParentID
	}
	return s.leave(ctx, harness.SwitchFork, p.Entry, func() answer {
		err := s.forkAt(ctx, parent)
		return answer{data: object{"text": e.Message.Text(), "cancelled": false}, err: err}
	})
}

func (s *Server) clone(ctx context.Context, _ command) answer {
	leaf := s.current().Session().Leaf()
	if leaf == "" {
		return answer{err: said("Cannot clone session: no current entry selected")}
	}
	return s.leave(ctx, harness.SwitchFork, leaf, func() answer {
		return answer{data: object{"cancelled": false}, err: s.forkAt(ctx, leaf)}
	})
}

// forkAt goes on in a copy of the branch that ends with an entry; "" is the root.
// A conversation in memory has no copy: it goes on from the entry itself.
func (s *Server) forkAt(ctx context.Context, entry string) error {
	h := s.current()
	from := h.Session()
	if from.Path() == "" {
		defer s.pause()()
		_, err := h.Navigate(ctx, harness.Navigation{Entry: entry, Exact: true})
		return err
	}
	at, err := s.fresh(from.Path())
	if err != nil {
		return err
	}
	if entry != "" {
		if err := from.Fork(session.ForkOptions{Path: at.File, Entry: entry}); err != nil {
			return err
		}
	}
	return s.change(ctx, at)
}

func (s *Server) getForkMessages(_ context.Context, _ command) answer {
	all := []object{}
	err := s.current().Session().All(func(e session.Entry) error {
		if e.Type == session.TypeMessage && e.Message != nil && e.Message.Role == llm.RoleUser {
			if text := e.Message.Text(); text != "" {
				all = append(all, object{"entryId": e.ID, "text": text})
			}
		}
		return nil
	})
	return answer{data: object{"messages": all}, err: err}
}

func (s *Server) getEntries(_ context.Context, c command) answer {
	var p struct {
		Since *string `json:"since"`
	}
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	since := ""
	if p.Since != nil {
		if since = *p.Since; since == "" {
			return answer{err: said("Entry not found: ")}
		}
	}
	lines, leaf, err := s.current().Session().Lines(since)
	if errors.Is(err, session.ErrNoEntry) {
		err = said(fmt.Sprintf("Entry not found: %s", since))
	}
	return answer{data: object{"entries": lines, "leafId": orNull(leaf)}, err: err}
}

func orNull(id string) any {
	if id == "" {
		return nil
	}
	return id
}

// a treeNode is an entry with what lies below it.
type treeNode struct {
	Entry     json.RawMessage `json:"entry"`
	Children  []*treeNode     `json:"children"`
	Label     string          `json:"label,omitempty"`
	LabelTime string          `json:"labelTimestamp,omitempty"`
}

func (s *Server) getTree(_ context.Context, _ command) answer {
	lines, leaf, err := s.current().Session().Lines("")
	if err != nil {
		return answer{err: err}
	}
	roots, byID := []*treeNode{}, map[string]*treeNode{}
	for _, line := range lines {
		var head struct {
			Type, ID, ParentID, TargetID, Label, Timestamp string
		}
		if err := json.Unmarshal(line, &head); err != nil {
			continue // a foreign entry of another shape
		}
		node := &treeNode{Entry: line, Children: []*treeNode{}}
		byID[head.ID] = node
		if parent := byID[head.ParentID]; parent != nil {
			parent.Children = append(parent.Children, node)
		} else {
			roots = append(roots, node)
		}
		if target := byID[head.TargetID]; head.Type == session.TypeLabel && target != nil {
			target.Label, target.LabelTime = head.Label, head.Timestamp
			if head.Label == "" {
				target.LabelTime = ""
			}
		}
	}
	return answer{data: object{"tree": roots, "leafId": orNull(leaf)}}
}

// getLastText gives the text of the last whole answer that has one.
func (s *Server) getLastText(_ context.Context, _ command) answer {
	all := s.current().Messages()
	for i := len(all) - 1; i >= 0; i-- {
		m := all[i]
		if m.Role != llm.RoleAssistant || m.StopReason == llm.StopAborted && len(m.Content) == 0 {
			continue
		}
		if text := strings.TrimSpace(m.Text()); text != "" {
			return answer{data: object{"text": text}}
		}
		break
	}
	return answer{data: object{"text": nil}}
}

func (s *Server) setName(_ context.Context, c command) answer {
	var p struct{ Name string }
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	name := strings.TrimSpace(p.Name)
	if name == "" {
		return answer{err: said("Session name cannot be empty")}
	}
	return answer{err: s.current().Rename(name)}
}

func (s *Server) exportHTML(_ context.Context, c command) answer {
	var p struct {
		Path string `json:"outputPath"`
	}
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	path, err := s.opts.Export(p.Path, s.current().Session())
	return answer{data: object{"path": path}, err: err}
}

// a count is what get_session_stats adds up, over all branches and what was
// compacted away: what was billed.
type count struct {
	User      int `json:"userMessages"`
	Assistant int `json:"assistantMessages"`
	Calls     int `json:"toolCalls"`
	Results   int `json:"toolResults"`
	Total     int `json:"totalMessages"`
	usage     llm.Usage
}

func (n *count) add(e session.Entry) error {
	if e.Usage != nil {
		n.usage = n.usage.Add(*e.Usage)
	}
	if e.Type != session.TypeMessage || e.Message == nil {
		return nil
	}
	n.Total++
	switch m := e.Message; m.Role {
	case llm.RoleUser:
		n.User++
	case llm.RoleTool:
		n.Results++
	case llm.RoleAssistant:
		n.Assistant++
		n.Calls += len(m.ToolCalls())
		if m.Usage != nil {
			n.usage = n.usage.Add(*m.Usage)
		}
	}
	return nil
}

func (s *Server) getStats(_ context.Context, _ command) answer {
	h := s.current()
	var n count
	if err := h.Session().All(n.add); err != nil {
		return answer{err: err}
	}
	u := n.usage
	o := struct {
		File string `json:"sessionFile,omitempty"`
		ID   string `json:"sessionId"`
		count
		Tokens  object  `json:"tokens"`
		Cost    float64 `json:"cost"`
		Context object  `json:"contextUsage,omitempty"`
	}{File: h.Session().Path(), ID: h.Header().ID, count: n, Cost: u.Cost.Total, Tokens: object{
		"input": u.Input, "output": u.Output, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite,
		"total": u.Input + u.Output + u.CacheRead + u.CacheWrite,
	}}
	if tokens, window := h.ContextUsage(); window > 0 {
		o.Context = object{"tokens": tokens, "contextWindow": window, "percent": 100 * float64(tokens) / float64(window)}
	}
	return answer{data: o}
}
