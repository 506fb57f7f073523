package session

import (
	"encoding/json"
	"fmt"
)

// A Bash is a command that the user ran beside the conversation, and what came of
// it. The JSON is that of Pi's messages of role bashExecution.
type Bash struct {
	Role       string `json:"role"` // set by AppendBash
	Command    string `json:"command"`
	Output     string `json:"output"`
	ExitCode   *int   `json:"exitCode,omitempty"` // nil: it was ended
	Cancelled  bool   `json:"cancelled"`
	Truncated  bool   `json:"truncated"`
	FullOutput string `json:"fullOutputPath,omitempty"`
	Timestamp  int64  `json:"timestamp"`                    // Unix milliseconds
	Excluded   bool   `json:"excludeFromContext,omitempty"` // the model is not told
}

// roleBash is the role of a Bash.
const roleBash = "bashExecution"

// AppendBash adds a command of the user and returns its entry's id. The model sees
// it as a message of the user, unless it is excluded.
func (s *Session) AppendBash(b Bash) (string, error) {
	b.Role = roleBash
	raw, err := marshal(b)
	if err != nil {
		return "", fmt.Errorf("adding a command to the session: %w", err)
	}
	return s.Append(Entry{Type: TypeMessage, bash: raw})
}

// All calls fn with every entry of the session, on all branches, in the order of
// the file. Those that cannot be read are left out. An error of fn ends it. fn must
// not use the session.
func (s *Session) All(fn func(Entry) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.tree.nodes {
		if e, ok := s.entry(int32(i)); ok {
			if err := fn(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lines gives the entries that follow the one named, of all branches and in the
// order of the file, as Pi reads them, and the leaf. "" is the beginning. What is
// in blobs stands in the lines.
func (s *Session) Lines(since string) (lines []json.RawMessage, leaf string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := 0
	if since != "" {
		i, ok := s.tree.find(since)
		if !ok {
			return nil, "", fmt.Errorf("entry %q: %w", since, ErrNoEntry)
		}
		first = int(i) + 1
	}
	whole := &Session{codec: codec{version: Version}}
	lines = []json.RawMessage{}
	for i := first; i < s.tree.len(); i++ {
		line, err := s.moved(int32(i), whole)
		if err != nil {
			continue // it cost itself when it was looked at
		}
		lines = append(lines, line)
	}
	return lines, s.tree.id(s.tree.leaf), nil
}
