package pty

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/internal/state"
)

// A record is a message's file: the message, and how far it is known to have
// come. The steps between are in the event log only.
type record struct {
	Message
	State    MessageState `json:"state"`
	Filed    int64        `json:"filed,omitempty"` // its place in the order: unix nanoseconds, more than the one before
	Why      string       `json:"why,omitempty"`   // failed
	Finished *time.Time   `json:"finished,omitempty"`
}

func (r record) info() MessageInfo {
	return MessageInfo{ID: r.ID, Kind: r.Kind, State: r.State, From: r.From, Task: r.Task, Why: r.Why}
}

// place is where the message stands in the order of those that wait. Ids of one
// millisecond have none, so it is written down; a file that others made goes by
// its id.
func (r record) place() int64 {
	if r.Filed != 0 {
		return r.Filed
	}
	made, err := id.Time(r.ID)
	if err != nil {
		return 0
	}
	return made.UnixNano()
}

func byPlace(x, y record) int {
	return cmp.Or(cmp.Compare(x.place(), y.place()), strings.Compare(x.ID, y.ID))
}

// ErrNoMessage says that no message of the agent has that id.
var ErrNoMessage = errors.New("no such message")

// An inbox is the folder of an agent's messages and that of the ended ones.
type inbox struct{ dir state.AgentDir }

func openInbox(dir state.AgentDir) (inbox, error) {
	for _, d := range []string{dir.Inbox(), dir.Done()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return inbox{}, fmt.Errorf("opening the inbox: %w", err)
		}
	}
	return inbox{dir}, nil
}

func (b inbox) path(id string) string { return filepath.Join(b.dir.Inbox(), id+".json") }
func (b inbox) done(id string) string { return filepath.Join(b.dir.Done(), id+".json") }

// put writes the message's file. It survives a power loss when put returns.
func (b inbox) put(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding message %s: %w", r.ID, err)
	}
	return durable.WriteFile(b.path(r.ID), append(data, '\n'), 0o600)
}

// finish writes the message's end and moves its file away.
func (b inbox) finish(r record) error {
	if err := b.put(r); err != nil {
		return err
	}
	return durable.Rename(b.path(r.ID), b.done(r.ID))
}

// find returns the message with that id, ended or not.
func (b inbox) find(id string) (record, bool, error) {
	// The inbox first, and again: the file may move in between.
	for _, path := range []string{b.path(id), b.done(id), b.path(id)} {
		r, err := readRecord(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return r, err == nil, err
	}
	return record{}, false, nil
}

// load reads the messages that wait, in their order. A file that is
// no message is set aside under another name and told of in bad.
func (b inbox) load() (records []record, bad []error, err error) {
	entries, err := os.ReadDir(b.dir.Inbox())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the inbox: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		r, err := readRecord(b.path(name))
		if err == nil && (r.ID != name || !id.Valid(name)) {
			err = fmt.Errorf("the file %s holds message %q", e.Name(), r.ID)
		}
		if err == nil {
			records = append(records, r)
			continue
		}
		bad = append(bad, err)
		if err := durable.Rename(b.path(name), b.path(name)+".bad"); err != nil {
			return nil, bad, err
		}
	}
	slices.SortFunc(records, byPlace)
	return records, bad, nil
}

func readRecord(path string) (record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("reading message %s: %w", path, err)
	}
	if r.State == "" {
		r.State = StateQueued
	}
	return r, nil
}

// checkMessage refuses what can never be delivered.
func checkMessage(m Message) error {
	if !id.Valid(m.ID) {
		return fmt.Errorf("message id %q is not a ULID", m.ID)
	}
	switch m.Kind {
	case KindPrompt, KindSteer, KindFollowUp, KindAbort:
	default:
		return fmt.Errorf("message %s: unknown kind %q", m.ID, m.Kind)
	}
	if err := checkText(m); err != nil {
		return fmt.Errorf("message %s: %w", m.ID, err)
	}
	return nil
}

// Enqueue files a message into the agent's inbox, for when no supervisor runs:
// the next one takes it up. It is durable when Enqueue returns. A message
// whose id is known already is left as it is. While a supervisor runs, Enqueue
// is not seen by it: use Deliver, which does the right one of both.
func Enqueue(dir state.AgentDir, m Message) error {
	if err := checkMessage(m); err != nil {
		return err
	}
	box, err := openInbox(dir)
	if err != nil {
		return err
	}
	if _, known, err := box.find(m.ID); err != nil || known {
		return err
	}
	return box.put(record{Message: m, State: StateQueued, Filed: time.Now().UnixNano()})
}
