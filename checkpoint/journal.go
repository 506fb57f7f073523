package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
)

// journalVersion is the journal's format. A journal of another one is not
// touched: it needs the version of muntin that wrote it.
const journalVersion = 2

// A journal is on disk from before a restore's first change until after its
// last. Each op is "this path has this content", so it can be done again; the
// ops follow from the two commits.
type journal struct {
	Version int    `json:"version"`
	Ref     string `json:"ref"`    // the chain
	Undo    string `json:"undo"`   // commit of the state before
	Goal    string `json:"goal"`   // commit of the state after
	Target  string `json:"target"` // commit of the checkpoint that is restored; the goal, unless some paths only are
	Step    Step   `json:"step,omitempty"`
	Meta    Meta   `json:"meta"` // of the checkpoint to make at the end
}

func (s *Store) journalFile() string { return filepath.Join(s.dir, "restore.json") }

// interrupted tells whether a restore was begun and not ended.
func (s *Store) interrupted() bool {
	_, err := os.Lstat(s.journalFile())
	return err == nil
}

func (s *Store) writeJournal(j journal) error {
	j.Version = journalVersion
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encoding restore journal: %w", err)
	}
	return durable.WriteFile(s.journalFile(), append(data, '\n'), 0o600)
}

// readJournal returns nil if there is no journal.
func (s *Store) readJournal() (*journal, error) {
	data, err := os.ReadFile(s.journalFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading restore journal: %w", err)
	}
	j, err := parseJournal(data)
	if err != nil {
		return nil, fmt.Errorf("reading restore journal %s: %w", s.journalFile(), err)
	}
	return j, nil
}

func parseJournal(data []byte) (*journal, error) {
	var j journal
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, err
	}
	if j.Version != journalVersion {
		return nil, fmt.Errorf("its version is %d, this program knows %d", j.Version, journalVersion)
	}
	_, undo := parseHash(j.Undo)
	_, goal := parseHash(j.Goal)
	_, target := parseHash(j.Target)
	if !undo || !goal || !target {
		return nil, errors.New("it names no commits")
	}
	return &j, checkRef(j.Ref)
}

// dropJournal ends a restore that was finished. The removal need not be durable: a journal
// that comes again after a power loss is known as done by the chain (see wasFinished).
func (s *Store) dropJournal() error {
	if err := os.Remove(s.journalFile()); err != nil {
		return fmt.Errorf("removing restore journal: %w", err)
	}
	return nil
}

// takeBackJournal ends a restore that was taken back, so that it stays so.
func (s *Store) takeBackJournal() error {
	if err := s.dropJournal(); err != nil {
		return err
	}
	return durable.SyncDir(s.dir)
}

// commits reads the commits of the states before and after.
func (s *Store) commits(j *journal) (undo, made *record, err error) {
	if undo, err = s.record(plumbing.NewHash(j.Undo)); err != nil {
		return nil, nil, err
	}
	made, err = s.record(plumbing.NewHash(j.Goal))
	return undo, made, err
}

// record is the checkpoint to make at the end, as far as the journal knows it.
func (j *journal) record() record {
	return record{meta: j.Meta, restored: plumbing.NewHash(j.Target), before: plumbing.NewHash(j.Undo), step: j.Step}
}
