// Package session keeps an agent's conversation as an append-only tree of
// entries in a JSONL file, and gives what the model sees of it: the entries
// from the current leaf back to the root.
//
// The format is Pi's, version 3, and files go both ways. What muntin adds stands
// in entries of type custom and in fields named "muntin" of message entries and
// of their content, which Pi ignores. Files of version 2 are gone on with as
// they are; those of version 1 can be read and forked.
//
// Images and long texts are in the folder blobs beside the file, by their
// SHA-256. The line holds a text in their place that names the blob, which is
// what Pi shows of them.
//
// Memory: an open session holds the place of each line, about 100 bytes an entry,
// and no content. What is asked for is read from the file.
//
// Durability: every entry is one write, so it survives a kill of the process as
// soon as Append has returned. An entry that something outside depends on, a
// message of the user (its request may leave) or of the assistant with tool calls
// (they may run), also survives a power loss: Append syncs it, and with it all
// that came before. Tool results and final answers are synced with the next of
// these, or by Close.
package session

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muntin/agent/llm"
	"muntin/internal/id"
)

// Version is the version of the format that is written.
const Version = 3

// timeLayout is ISO 8601 with milliseconds, as JavaScript writes it.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Errors that a caller may test for, beside durable.ErrLocked.
var (
	// ErrNotSession says that a file is something else; it was not touched.
	ErrNotSession = errors.New("not a session file")
	// ErrOldVersion says that a file of version 1 was to be written to. It was not
	// touched: open it ReadOnly, and fork it.
	ErrOldVersion = errors.New("a session of format version 1 can only be read and forked")
	// ErrReadOnly says that a session was opened ReadOnly.
	ErrReadOnly = errors.New("the session is open for reading only")
	// ErrForeignWriter says that another program, which takes no lock, has written
	// to the session's file since it was opened. Nothing was added to it.
	ErrForeignWriter = errors.New("another program has written to the session")
	// ErrNoEntry says that there is no entry of this id.
	ErrNoEntry = errors.New("there is no such entry in the session")
)

// Options say how a session is opened.
type Options struct {
	Dir      string           // the agent's working folder, for the header of a new session
	Parent   string           // the file that a new session comes from, for its header; "": none
	Now      func() time.Time // default time.Now
	ReadOnly bool             // take no lock and change nothing; the file must be there
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
	codec  codec

	mu       sync.Mutex // guards all below, across an append: entries must stand in the file in the order of the tree
	store    store
	tree     tree
	problems []Problem
	resumed  bool
	closed   bool
}

// Open opens the session at path, or makes it. It is the session's one writer
// until Close: a second one gets an error that matches durable.ErrLocked, and may
// open it ReadOnly. A file that is no session gives ErrNotSession. Without a path
// the session is kept in memory only.
func Open(path string, opts Options) (*Session, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Session{path: path, now: opts.Now, tree: newTree(), codec: codec{version: Version}}
	if path == "" {
		s.store = &memStore{}
		return s, s.begin(opts.Dir, opts.Parent)
	}
	s.codec.blobs = blobsOf(path)
	if err := s.open(opts); err != nil {
		return nil, fmt.Errorf("opening session %s: %w", path, err)
	}
	return s, nil
}

func (s *Session) open(opts Options) error {
	if opts.ReadOnly {
		f, err := openRead(s.path)
		if err != nil {
			return err
		}
		s.store = f
		if err := s.load(); err != nil {
			return errors.Join(err, f.close())
		}
		s.resumed = s.tree.len() > 0
		return nil
	}
	if err := checkHead(s.path); err != nil {
		return err
	}
	f, err := openFile(s.path)
	if err != nil {
		return err
	}
	s.store = f
	if err := s.start(f, opts); err != nil {
		return errors.Join(err, f.close())
	}
	return nil
}

// start loads what the file holds, or begins it.
func (s *Session) start(f *fileStore, opts Options) error {
	if f.size() == 0 {
		if f.log.Torn() > 0 {
			s.problems = append(s.problems, Problem{Line: 1, Why: tornText(s.path)})
		}
		return s.begin(opts.Dir, opts.Parent)
	}
	if err := s.load(); err != nil {
		return err
	}
	if f.log.Torn() > 0 {
		lines := 1
		if n := s.tree.len(); n > 0 {
			lines = int(s.tree.nodes[n-1].number)
		}
		s.problems = append(s.problems, Problem{Line: lines + 1, Why: tornText(s.path)})
	}
	s.resumed = s.tree.len() > 0
	return nil
}

// begin writes the header of a new session. A file that is named by an id gives
// the session its id.
func (s *Session) begin(dir, parent string) error {
	now := s.now()
	name := strings.TrimSuffix(filepath.Base(s.path), ".jsonl")
	if !id.Valid(name) { // one id is easier to find than two
		name = id.New(now)
	}
	s.header = Header{Type: "session", Version: Version, ID: name, Timestamp: stamp(now), Cwd: dir, ParentSession: parent}
	line, err := marshal(s.header)
	if err != nil {
		return err
	}
	if err := s.store.append(line); err != nil {
		return err
	}
	return s.store.sync()
}

// Path is the session's file; "" for one in memory.
func (s *Session) Path() string { return s.path }

// Header is the session's first line.
func (s *Session) Header() Header { return s.header }

// Resumed reports whether the session held entries when it was opened.
func (s *Session) Resumed() bool { return s.resumed }

// Problems are the lines that could not be used, as far as they were looked at:
// Open looks at the form of each, and the content of those on the present branch
// is looked at when they are asked for.
func (s *Session) Problems() []Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.problems)
	slices.SortStableFunc(all, func(a, b Problem) int { return a.Line - b.Line })
	return all
}

// Append adds an entry below the leaf, makes it the leaf and returns its id. ID,
// ParentID and Timestamp of e are set here. After an error nothing has changed.
func (s *Session) Append(e Entry) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := s.add(e, s.tree.leaf)
	if err != nil {
		return "", fmt.Errorf("adding to the session: %w", err)
	}
	return id, nil
}

// AppendMessage adds a message. origin tells where it came from, if that is known.
func (s *Session) AppendMessage(m llm.Message, origin *Origin) (string, error) {
	return s.Append(Entry{Type: TypeMessage, Message: &m, Origin: origin})
}

// AppendModel records the model that answers from here on.
func (s *Session) AppendModel(provider, model string) (string, error) {
	return s.Append(Entry{Type: TypeModelChange, Provider: provider, ModelID: model})
}

// AppendThinking records the level of thinking from here on.
func (s *Session) AppendThinking(level llm.Level) (string, error) {
	return s.Append(Entry{Type: TypeThinking, ThinkingLevel: string(level)})
}

// Rename gives the session a name for people.
func (s *Session) Rename(name string) error {
	_, err := s.Append(Entry{Type: TypeSessionInfo, Name: name})
	return err
}

// SetLabel marks an entry with a word; "" takes the mark away. The leaf stays
// where it is in the conversation: a label carries nothing for the model.
func (s *Session) SetLabel(entryID, label string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tree.find(entryID); !ok {
		return fmt.Errorf("labelling %q: %w", entryID, ErrNoEntry)
	}
	if _, err := s.add(Entry{Type: TypeLabel, TargetID: entryID, Label: label}, s.tree.leaf); err != nil {
		return fmt.Errorf("labelling an entry: %w", err)
	}
	return nil
}

// add writes an entry below the node at parent and makes it the leaf.
func (s *Session) add(e Entry, parent int32) (string, error) {
	if s.closed {
		return "", os.ErrClosed
	}
	e.ID, e.ParentID, e.Timestamp = s.newID(), pointer(s.tree.id(parent)), stamp(s.now())
	b, err := s.codec.encode(e)
	if err != nil {
		return "", err
	}
	at := s.store.size()
	if err := s.store.append(b); err != nil {
		return "", err
	}
	l := line{id: e.ID, parent: s.tree.id(parent), kind: kindOf(e.Type, roleOf(e), e.CustomType)}
	if e.Origin != nil {
		l.origin = e.Origin.ID
	}
	s.tree.add(l, node{off: at, length: int32(s.store.size() - at - 1), number: s.nextLine()})
	if e.dependedOn() {
		return e.ID, s.store.sync()
	}
	return e.ID, nil
}

func (s *Session) nextLine() int32 {
	if n := s.tree.len(); n > 0 {
		return s.tree.nodes[n-1].number + 1
	}
	return 2
}

func roleOf(e Entry) string {
	switch {
	case e.bash != nil:
		return roleBash
	case e.Message == nil:
		return ""
	}
	return string(e.Message.Role)
}

// Leaf is the id of the entry that the next one goes below; "" at the root.
func (s *Session) Leaf() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.id(s.tree.leaf)
}

// Move makes another entry the leaf; "" is the root. The move is kept: it is
// written as an entry below the new leaf that carries nothing, which is why Pi,
// for which the last line is the leaf, sees the same conversation.
func (s *Session) Move(entryID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := int32(-1)
	if entryID != "" {
		var ok bool
		if to, ok = s.tree.find(entryID); !ok {
			return fmt.Errorf("moving to %q: %w", entryID, ErrNoEntry)
		}
	}
	if _, err := s.add(Entry{Type: TypeCustom, CustomType: customLeaf, Data: json.RawMessage("{}")}, to); err != nil {
		return fmt.Errorf("moving in the session: %w", err)
	}
	return nil
}

// MoveWithSummary is Move that leaves a summary of the branch that is left
// behind; the entry of type branch_summary becomes the leaf, and names the old one.
// It returns its id.
func (s *Session) MoveWithSummary(entryID string, e Entry) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := int32(-1)
	e.Type, e.FromID = TypeBranchSummary, s.tree.id(s.tree.leaf)
	if e.FromID == "" {
		e.FromID = "root"
	}
	if entryID != "" {
		var ok bool
		if to, ok = s.tree.find(entryID); !ok {
			return "", fmt.Errorf("moving to %q: %w", entryID, ErrNoEntry)
		}
	}
	id, err := s.add(e, to)
	if err != nil {
		return "", fmt.Errorf("moving in the session: %w", err)
	}
	return id, nil
}

// Close gives up the file and its lock. It may be called twice.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.store.close(); err != nil {
		return fmt.Errorf("closing session %s: %w", s.path, err)
	}
	return nil
}

// newID gives eight hex digits that no entry has yet.
func (s *Session) newID() string {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails, see crypto/rand
		name := hex.EncodeToString(b[:])
		if _, taken := s.tree.find(name); !taken {
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
