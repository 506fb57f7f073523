package session

import (
	"fmt"
	"slices"

	"muntin/agent/llm"
)

// Messages is what the model sees: the conversation from the root to the leaf.
func (s *Session) Messages() []llm.Message {
	items := s.Context()
	messages := make([]llm.Message, len(items))
	for i, it := range items {
		messages[i] = it.Message
	}
	return messages
}

// Context is Messages with the entry that each comes from.
func (s *Session) Context() []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.context(s.tree.leaf)
}

// Branch is the entries from the root to the leaf, read from the file.
func (s *Session) Branch() []Entry {
	var all []Entry
	_ = s.Each(func(e Entry) error {
		all = append(all, e)
		return nil
	})
	return all
}

// Each calls fn with the entries from the root to the leaf, one after the other,
// so that no more than one is held. Those that cannot be read are left out. An
// error of fn ends it. fn must not use the session.
func (s *Session) Each(fn func(Entry) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.tree.path(s.tree.leaf) {
		if e, ok := s.entry(i); ok {
			if err := fn(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Abandoned is what the model saw of the present branch below its last entry in
// common with the branch of another entry: what is left behind by a move there.
func (s *Session) Abandoned(to string) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	if i, ok := s.tree.find(to); ok {
		for _, n := range s.tree.path(i) {
			there[s.tree.nodes[n].id] = true
		}
	}
	var left []Item
	for _, it := range s.context(s.tree.leaf) {
		if !there[it.Entry] {
			left = append(left, it)
		}
	}
	return left
}

// Entry reads one entry.
func (s *Session) Entry(id string) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.tree.find(id)
	if !ok {
		return Entry{}, fmt.Errorf("entry %q: %w", id, ErrNoEntry)
	}
	e, _ := s.entry(i) // what is wrong with it is among the problems
	return e, nil
}

// A Node is the place of an entry in the tree.
type Node struct {
	ID, Parent string // Parent is "" at the root
	Label      string // of the last label entry that names it
	OnBranch   bool   // on the way from the root to the leaf
}

// Nodes is the tree in the order of the file: parents stand before their children.
func (s *Session) Nodes() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Node, len(s.tree.nodes))
	for i, n := range s.tree.nodes {
		all[i] = Node{ID: n.id, Parent: s.tree.id(n.parent)}
		if n.kind != kindLabel {
			continue
		}
		e, _ := s.entry(int32(i)) // what is wrong with it is among the problems
		if at, ok := s.tree.find(e.TargetID); ok && int(at) <= i {
			all[at].Label = e.Label
		}
	}
	for _, i := range s.tree.path(s.tree.leaf) {
		all[i].OnBranch = true
	}
	return all
}

// Name is the name that the session was given last; "" if none was.
func (s *Session) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := s.tree.len() - 1; i >= 0; i-- {
		if s.tree.nodes[i].kind == kindInfo {
			e, _ := s.entry(int32(i)) // what is wrong with it is among the problems
			return e.Name
		}
	}
	return ""
}

// Model is the model that was recorded last on the branch, or that gave the last
// answer on it, whichever is nearer to the leaf; empty if there was none.
func (s *Session) Model() (provider, model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := s.tree.leaf; i >= 0; i = s.tree.nodes[i].parent {
		switch s.tree.nodes[i].kind {
		case kindModel:
			e, _ := s.entry(i) // what is wrong with it is among the problems
			return e.Provider, e.ModelID
		case kindAssistant:
			if e, ok := s.entry(i); ok && e.Message.Provider != "" && e.Message.Model != "" {
				return e.Message.Provider, e.Message.Model
			}
		}
	}
	return "", ""
}

// Thinking is the level of thinking that was recorded last on the branch; "" if
// there was none, or it is no level.
func (s *Session) Thinking() llm.Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.tree.nearest(s.tree.leaf, kindThinking)
	if i < 0 {
		return ""
	}
	e, _ := s.entry(i) // what is wrong with it is among the problems
	if level := llm.Level(e.ThinkingLevel); slices.Contains(llm.Levels(), level) {
		return level
	}
	return ""
}

// Knows reports whether a message with this origin id was taken, on any branch.
func (s *Session) Knows(originID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.origins[originID]
}

// LastCompaction is the last compaction on the branch.
func (s *Session) LastCompaction() (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.tree.nearest(s.tree.leaf, kindCompaction)
	if i < 0 {
		return Entry{}, false
	}
	return s.entry(i)
}
