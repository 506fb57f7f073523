package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ForkOptions say what a fork holds and where it goes.
type ForkOptions struct {
	Path string           // the new file; it must not be there
	Dir  string           // the working folder in its header; "": that of the source
	Now  func() time.Time // default time.Now

	// Entry ends the one branch that is taken over, "" takes all branches.
	Entry string
	// Inline puts what blobs hold back into the lines, so that the file stands on
	// its own, as Pi writes them. Else blobs are copied to beside the new file.
	Inline bool
	// Import keeps the id, the working folder and the parent of the source.
	Import bool
}

// Fork copies the session to a new file, which names it as its parent. The
// entries keep their ids, so that compactions and labels still fit. Files of
// older versions come out in the present one.
func (s *Session) Fork(o ForkOptions) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes, err := s.chosen(o.Entry)
	if err == nil {
		err = s.copyTo(o, nodes)
	}
	if err != nil {
		return fmt.Errorf("forking session %s: %w", s.path, err)
	}
	return nil
}

// chosen are the nodes that a fork takes over.
func (s *Session) chosen(entry string) ([]int32, error) {
	if entry == "" {
		all := make([]int32, s.tree.len())
		for i := range all {
			all[i] = int32(i)
		}
		return all, nil
	}
	i, ok := s.tree.find(entry)
	if !ok {
		return nil, fmt.Errorf("entry %q: %w", entry, ErrNoEntry)
	}
	return s.tree.path(i), nil
}

func (s *Session) copyTo(o ForkOptions, nodes []int32) error {
	if _, err := os.Lstat(o.Path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already: %w", o.Path, fs.ErrExist)
	}
	f, err := openFile(o.Path)
	if err != nil {
		return err
	}
	to := &Session{path: o.Path, now: o.Now, tree: newTree(), store: f, codec: codec{version: Version, blobs: blobsOf(o.Path)}}
	if o.Inline {
		to.codec.blobs = blobs{}
	}
	err = s.fill(to, o, nodes)
	if err = errors.Join(err, f.close()); err != nil {
		return errors.Join(err, os.Remove(o.Path)) // nobody has seen it yet
	}
	return nil
}

func (s *Session) fill(to *Session, o ForkOptions, nodes []int32) error {
	dir, parent := o.Dir, ""
	if dir == "" {
		dir = s.header.Cwd
	}
	if s.path != "" {
		var err error
		if parent, err = filepath.Abs(s.path); err != nil {
			return err
		}
	}
	if o.Import {
		h := s.header
		h.Version = Version
		line, err := marshal(h)
		if err != nil {
			return err
		}
		if err := to.store.append(line); err != nil {
			return err
		}
	} else if err := to.begin(dir, parent); err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, i := range nodes {
		line, err := s.moved(i, to)
		if err != nil {
			continue // it cost itself when it was looked at
		}
		if err := to.store.append(line); err != nil {
			return err
		}
		taken[s.tree.nodes[i].id] = true
	}
	if o.Entry == "" {
		return s.keepLeaf(to, nodes)
	}
	return s.relabel(to, taken, nodes[len(nodes)-1])
}

// keepLeaf makes the leaf of the copy that of the source, which may be a move
// that is not the last line.
func (s *Session) keepLeaf(to *Session, nodes []int32) error {
	if len(nodes) == 0 || s.tree.leaf == nodes[len(nodes)-1] || s.tree.nodes[nodes[len(nodes)-1]].kind == kindLeaf {
		return nil
	}
	return s.extra(to, Entry{Type: TypeCustom, CustomType: customLeaf, Data: json.RawMessage("{}")}, s.tree.leaf)
}

// relabel makes anew the labels of entries that were taken over whose label
// entries, on other branches, were not.
func (s *Session) relabel(to *Session, taken map[string]bool, end int32) error {
	labels, moved := map[string]Entry{}, false
	var order []string
	for i, n := range s.tree.nodes {
		if n.kind != kindLabel {
			continue
		}
		if e, ok := s.entry(int32(i)); ok && taken[e.TargetID] {
			if _, seen := labels[e.TargetID]; !seen {
				order = append(order, e.TargetID)
			}
			labels[e.TargetID] = e
		}
	}
	for _, target := range order {
		e := labels[target]
		if taken[e.ID] {
			continue
		}
		moved = true
		at, _ := s.tree.find(target)
		if err := s.extra(to, Entry{Type: TypeLabel, TargetID: target, Label: e.Label}, at); err != nil {
			return err
		}
	}
	if !moved {
		return nil
	}
	return s.extra(to, Entry{Type: TypeCustom, CustomType: customLeaf, Data: json.RawMessage("{}")}, end)
}

// extra writes an entry of the copy that the source does not have.
func (s *Session) extra(to *Session, e Entry, parent int32) error {
	e.ID, e.ParentID, e.Timestamp = s.newID(), pointer(s.tree.id(parent)), stamp(to.now())
	line, err := to.codec.encode(e)
	if err != nil {
		return err
	}
	return to.store.append(line)
}

// moved is the line of a node as it is to stand in the other file: as it is,
// where nothing about it depends on the file it stands in.
func (s *Session) moved(i int32, to *Session) (json.RawMessage, error) {
	b, err := s.read(i)
	if err != nil {
		return nil, err
	}
	n := s.tree.nodes[i]
	sameBlobs := s.codec.blobs == to.codec.blobs
	if s.header.Version == Version && s.sound(i, b) && (sameBlobs || !mayRefer(n.kind, b)) {
		return b, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	e, _, err := s.codec.decode(b)
	if err != nil {
		return nil, err
	}
	set := map[string]any{"id": n.id, "parentId": pointer(s.tree.id(n.parent))}
	if n.kind == kindCompaction {
		set["firstKeptEntryId"] = e.FirstKept
		delete(raw, "firstKeptEntryIndex")
	}
	if len(raw["message"]) > 0 {
		if set["message"], err = to.movedMessage(e, raw["message"], mayRefer(n.kind, b)); err != nil {
			return nil, err
		}
	}
	for key, value := range set {
		if raw[key], err = marshal(value); err != nil {
			return nil, err
		}
	}
	return marshal(raw)
}

// movedMessage is the message of an entry of another session. What is not
// understood here stays as it is.
func (s *Session) movedMessage(e Entry, message json.RawMessage, blobs bool) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, err
	}
	if text(m["role"]) == "hookMessage" {
		m["role"] = json.RawMessage(`"custom"`)
	}
	if !blobs {
		return m, nil
	}
	whole, err := s.codec.encodeMessage(*e.Message)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"content", "details"} {
		if v := valueIn(whole, key); v != nil {
			m[key] = v
		}
	}
	return m, nil
}

// sound tells whether the line says of itself what the tree says of it: one whose
// parent was lost does not.
func (s *Session) sound(i int32, b []byte) bool {
	l, err := glance(b, false)
	return err == nil && l.parent == s.tree.id(s.tree.nodes[i].parent) && json.Valid(b)
}

// mayRefer tells whether the line may name a blob.
func mayRefer(k kind, b []byte) bool {
	return (k == kindUser || k == kindAssistant || k == kindTool) && containsRef(b)
}
