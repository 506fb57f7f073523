package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
)

// journalVersion is the journal's format. A journal of another one is not
// touched: it needs the version of muntin that wrote it.
const journalVersion = 3

// A journal is on disk from before a restore's first change until after its
// last. Each op is "this path has this content", so it can be done again; the
// ops follow from the two commits.
//
// Its file is written in place, in one call, and is empty when there is no
// restore: so it costs one wait for the disk and no new names. The line after the
// JSON is a checksum of it. A text without that line was torn by a power loss; it stands for nothing,
// since no file is changed before the journal is on disk.
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
	info, err := os.Lstat(s.journalFile())
	return err == nil && info.Size() > 0
}

// writeJournal begins a restore. The journal is durable when it returns.
func (s *Store) writeJournal(j journal) error {
	j.Version = journalVersion
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encoding restore journal: %w", err)
	}
	data = append(data, journalEnd(data)...)
	isNew := !exists(s.journalFile())
	f, err := os.OpenFile(s.journalFile(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing restore journal: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing restore journal: %w", err)
	}
	if isNew {
		return durable.SyncDir(s.dir)
	}
	return nil
}

// journalEnd is what follows the JSON of a journal.
func journalEnd(data []byte) []byte {
	return fmt.Appendf(nil, "\ncrc32c %08x\n", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// readJournal returns nil if there is no journal, or none that was finished.
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

// parseJournal returns nil for a text that a power loss tore.
func parseJournal(data []byte) (*journal, error) {
	text, end, _ := bytes.Cut(data, []byte("\n"))
	var j journal
	err := json.Unmarshal(text, &j)
	if err == nil && j.Version != journalVersion {
		return nil, fmt.Errorf("its version is %d, this program knows %d", j.Version, journalVersion)
	}
	if len(end) != len(journalEnd(nil))-1 || !bytes.HasPrefix(end, []byte("crc32c ")) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(end, journalEnd(text)[1:]) {
		return nil, errors.New("its checksum is another one")
	}
	_, undo := parseHash(j.Undo)
	_, goal := parseHash(j.Goal)
	_, target := parseHash(j.Target)
	if !undo || !goal || !target {
		return nil, errors.New("it names no commits")
	}
	return &j, checkRef(j.Ref)
}

// dropJournal ends a restore that was finished. That need not be durable: a journal
// that comes again after a power loss is known as done by the chain (see progressOf).
func (s *Store) dropJournal() error {
	if err := os.Truncate(s.journalFile(), 0); err != nil {
		return fmt.Errorf("ending restore journal: %w", err)
	}
	return nil
}

// takeBackJournal ends a restore that was taken back, so that it stays so.
func (s *Store) takeBackJournal() error {
	if err := s.dropJournal(); err != nil {
		return err
	}
	if err := syncFile(s.journalFile()); err != nil {
		return fmt.Errorf("ending restore journal: %w", err)
	}
	return nil
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
