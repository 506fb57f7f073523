// Package session keeps an agent's conversation as an append-only tree of
// entries in a JSONL file, and gives what the model sees of it: the entries
// from the current leaf back to the root.
//
// The format is Pi's, version 3, and files go both ways. What muntin adds stands
// in entries of type custom and in the field "muntin" of message entries, which
// Pi ignores.
//
// Durability: every entry is one write, so it survives a kill of the process as
// soon as Append has returned. An entry that something outside depends on, a
// message of the user (its request may leave) or of the assistant with tool calls
// (they may run), also survives a power loss: Append syncs it, and with it all
// that came before.
package session

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"muntin/agent/llm"
	"muntin/internal/durable"
	"muntin/internal/id"
)

// Version is the version of the format that is read and written.
const Version = 3

// timeLayout is ISO 8601 with milliseconds, as JavaScript writes it.
const timeLayout = "2006-01-02T15:04:05.000Z"

// ErrNotSession says that a file is something else; it was not touched.
var ErrNotSession = errors.New("not a session file")

// Options say how a session is opened.
type Options struct {
	Dir string           // the agent's working folder, for the header of a new session
	Now func() time.Time // default time.Now
}

// A Header is the first line of a session's file.
type Header struct {
	Type          string `json:"type"` // "session"
	Version       int    `json:"version"`
	ID            string `json:"id"`
	Timestamp     string `json:"timestamp"`
	Cwd           string `json:"cwd"`
	ParentSession string `json:"parentSession,omitempty"`
}

// A Problem is a line that could not be used. It costs that line only.
type Problem struct {
	Line int // from 1
	Why  string
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s", p.Line, p.Why) }

// A Session is one open conversation. Its methods may be called from several
// goroutines.
type Session struct {
	path   string
	header Header
	now    func() time.Time

	mu       sync.Mutex // guards all below, across an append: entries must stand in the file in the order of the tree
	log      *durable.Log
	tree     tree
	problems []Problem
	resumed  bool
	closed   bool
}

// Open opens the session at path, or makes it. It is the session's one writer
// until Close: a second one gets an error that matches durable.ErrLocked. A file
// that is no session gives ErrNotSession. Without a path the session is kept in
// memory only.
func Open(path string, opts Options) (*Session, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Session{path: path, now: opts.Now, tree: newTree()}
	now := s.now()
	s.header = Header{Type: "session", Version: Version, ID: id.New(now), Timestamp: stamp(now), Cwd: opts.Dir}
	if path == "" {
		return s, nil
	}
	if err := checkHead(path); err != nil {
		return nil, fmt.Errorf("opening session %s: %w", path, err)
	}
	log, err := durable.OpenLog(path)
	if err != nil {
		return nil, fmt.Errorf("opening session: %w", err)
	}
	s.log = log
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening session %s: %w", path, err), log.Close())
	}
	return s, nil
}

// start loads what the file holds, or begins it.
func (s *Session) start() error {
	if s.log.Size() > 0 {
		if err := s.load(); err != nil {
			return err
		}
		s.resumed = s.tree.len() > 0
		return nil
	}
	if s.log.Torn() > 0 {
		s.problems = append(s.problems, Problem{Line: 1, Why: tornText(s.path)})
	}
	if err := s.log.Append(s.header); err != nil {
		return err
	}
	return s.log.Sync()
}

// Path is the session's file; "" for one in memory.
func (s *Session) Path() string { return s.path }

// Header is the session's first line.
func (s *Session) Header() Header { return s.header }

// Resumed reports whether the session held entries when it was opened.
func (s *Session) Resumed() bool { return s.resumed }

// Problems are the lines that Open could not use.
func (s *Session) Problems() []Problem { return append([]Problem(nil), s.problems...) }

// Append adds an entry below the leaf, makes it the leaf and returns its id. ID,
// ParentID and Timestamp of e are set here. After an error nothing has changed.
func (s *Session) Append(e Entry) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.ID, e.Timestamp = s.newID(), stamp(s.now())
	e.ParentID = pointer(s.tree.leaf)
	if err := s.write(e); err != nil {
		return "", fmt.Errorf("adding to the session: %w", err)
	}
	s.tree.add(e)
	return e.ID, nil
}

// AppendMessage adds a message. origin tells where it came from, if that is known.
func (s *Session) AppendMessage(m llm.Message, origin *Origin) (string, error) {
	if m.Content == nil {
		m.Content = []llm.Block{}
	}
	return s.Append(Entry{Type: TypeMessage, Message: &m, Origin: origin})
}

// AppendModel records the model that answers from here on.
func (s *Session) AppendModel(provider, model string) (string, error) {
	return s.Append(Entry{Type: TypeModelChange, Provider: provider, ModelID: model})
}

// Leaf is the id of the entry that the next one goes below; "" at the root.
func (s *Session) Leaf() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.leaf
}

// Move makes another entry the leaf; "" is the root. The move is kept: it is
// written as an entry below the new leaf that carries nothing, which is why Pi,
// for which the last line is the leaf, sees the same conversation.
func (s *Session) Move(entryID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entryID != "" && !s.tree.has(entryID) {
		return fmt.Errorf("moving in the session: there is no entry %q", entryID)
	}
	e := Entry{
		Type: TypeCustom, ID: s.newID(), ParentID: pointer(entryID), Timestamp: stamp(s.now()),
		CustomType: customLeaf, Data: json.RawMessage("{}"),
	}
	if err := s.write(e); err != nil {
		return fmt.Errorf("moving in the session: %w", err)
	}
	s.tree.add(e)
	return nil
}

// Messages is what the model sees: the conversation from the root to the leaf.
func (s *Session) Messages() []llm.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return project(s.tree.branch())
}

// Branch is the entries from the root to the leaf.
func (s *Session) Branch() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.branch()
}

// Model is the model that was recorded last on the branch; empty if none was.
func (s *Session) Model() (provider, model string) {
	for _, e := range s.Branch() {
		if e.Type == TypeModelChange {
			provider, model = e.Provider, e.ModelID
		}
	}
	return provider, model
}

// Knows reports whether a message with this origin id was taken, on any branch.
func (s *Session) Knows(originID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.origins[originID]
}

// Close gives up the file and its lock. It may be called twice.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.log == nil {
		s.closed = true
		return nil
	}
	s.closed = true
	if err := errors.Join(s.log.Sync(), s.log.Close()); err != nil {
		return fmt.Errorf("closing session %s: %w", s.path, err)
	}
	return nil
}

// write appends e to the file and syncs when something outside depends on it.
func (s *Session) write(e Entry) error {
	if s.closed {
		return os.ErrClosed
	}
	if s.log == nil {
		return nil
	}
	if err := s.log.Append(e); err != nil {
		return err
	}
	if e.dependedOn() {
		return s.log.Sync()
	}
	return nil
}

// newID gives eight hex digits that no entry has yet.
func (s *Session) newID() string {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails, see crypto/rand
		if name := hex.EncodeToString(b[:]); !s.tree.has(name) {
			return name
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format(timeLayout) }

func pointer(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

func tornText(path string) string {
	return "the line was cut off by a crash; what there was of it is in " + path + ".torn"
}
