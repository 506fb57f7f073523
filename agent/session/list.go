package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"muntin/agent/llm"
	"muntin/internal/durable"
)

// indexName is the file in a folder of sessions that List keeps what it found in.
// It can be deleted at any time.
const indexName = ".sessions.index"

// firstLimit bounds the text of the first message that Info holds, in bytes.
const firstLimit = 200

// An Info is what a list tells of a session.
type Info struct {
	Path     string    `json:"path"`
	ID       string    `json:"id"`
	Cwd      string    `json:"cwd"`
	Name     string    `json:"name,omitempty"`
	First    string    `json:"firstMessage,omitempty"` // the start of the user's first message
	Messages int       `json:"messages"`               // on all branches
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
	Size     int64     `json:"size"` // bytes
	Parent   string    `json:"parent,omitempty"`
	Version  int       `json:"version"`
}

// Title is the name, or else the first message.
func (i Info) Title() string {
	if i.Name != "" {
		return i.Name
	}
	return i.First
}

// A record is what the index holds of a file.
type record struct {
	Info
	rel  string // path below the folder
	mod  int64  // Unix nanoseconds
	end  int64  // how far the file was read
	head uint32 // checksum of the first line; 0: no session
}

// List gives the sessions in a folder and in the folders just below it (as Pi
// has them), newest first. Files that are no sessions are left out. Only what
// changed since the last List is read; the rest comes from an index in the
// folder, which is no more than a cache.
func List(dir string) ([]Info, error) {
	files, err := sessionFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	index := filepath.Join(dir, indexName)
	known := readIndex(index)
	records := make([]record, 0, len(files))
	changed := len(known) != len(files)
	for _, f := range files {
		r, ok := known[f.rel]
		if !ok || r.Size != f.Size || r.mod != f.mod {
			changed = true
			if r, err = look(dir, f, r); err != nil {
				return nil, fmt.Errorf("listing sessions: %w", err)
			}
		}
		records = append(records, r)
	}
	if changed {
		_ = durable.WriteFile(index, encodeIndex(records), 0o600) // the folder may be read-only
	}
	infos := make([]Info, 0, len(records))
	for _, r := range records {
		if r.head != 0 {
			r.Path, r.Modified = filepath.Join(dir, r.rel), time.Unix(0, r.mod)
			infos = append(infos, r.Info)
		}
	}
	slices.SortStableFunc(infos, func(a, b Info) int { return b.Modified.Compare(a.Modified) })
	return infos, nil
}

// sessionFiles finds the files that may be sessions. A missing folder has none.
func sessionFiles(dir string) ([]record, error) {
	var files []record
	var walk func(rel string, deep bool) error
	walk = func(rel string, deep bool) error {
		entries, err := os.ReadDir(filepath.Join(dir, rel))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := filepath.Join(rel, e.Name())
			if e.IsDir() && deep && e.Name() != "blobs" {
				if err := walk(name, false); err != nil {
					return err
				}
			}
			if !e.Type().IsRegular() || !strings.HasSuffix(name, ".jsonl") {
				continue
			}
			info, err := e.Info()
			if err != nil {
				continue // removed in the meantime
			}
			files = append(files, record{rel: name, mod: info.ModTime().UnixNano(), Info: Info{Size: info.Size()}})
		}
		return nil
	}
	err := walk("", true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// look reads what is new in a file since old was made of it.
func look(dir string, f, old record) (record, error) {
	file, err := os.OpenFile(filepath.Join(dir, f.rel), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return f, nil
	}
	if err != nil {
		return record{}, err
	}
	defer file.Close()
	head, h, ok := firstLine(file)
	if !ok {
		return f, nil
	}
	r := f
	if old.head == head && old.end <= f.Size && old.end > 0 {
		size := r.Size
		r.Info, r.end = old.Info, old.end
		r.Size = size
	} else {
		created, _ := time.Parse(time.RFC3339, h.Timestamp) // else it is not known
		r.Info = Info{ID: h.ID, Cwd: h.Cwd, Created: created, Parent: h.ParentSession, Version: h.Version, Size: f.Size}
	}
	r.head = head
	r.end, err = durable.Scan(io.NewSectionReader(file, r.end, f.Size-r.end), r.end, func(line []byte, _ int64) error {
		r.fold(line)
		return nil
	})
	return r, err
}

// firstLine reads the header of a session.
func firstLine(file io.ReaderAt) (sum uint32, h Header, ok bool) {
	buf := make([]byte, 4<<10)
	n, err := file.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, Header{}, false
	}
	line, _, whole := bytes.Cut(buf[:n], []byte("\n"))
	if !whole {
		return 0, Header{}, false
	}
	h, err = parseHeader(line)
	return checksum(line), h, err == nil
}

// fold counts a line.
func (r *record) fold(b []byte) {
	l, err := glance(b, true)
	if err != nil {
		return
	}
	switch l.kind {
	case kindInfo:
		r.Name = textIn(b, "name")
	case kindUser, kindAssistant, kindTool, kindRole:
		r.Messages++
		if l.kind == kindUser && r.First == "" {
			r.First = firstText(valueIn(b, "message"))
		}
	}
}

// firstText is the start of a message's text, on one line.
func firstText(message []byte) string {
	m, _, err := codec{}.decodeMessage(json.RawMessage(message))
	if err != nil {
		return ""
	}
	return Excerpt(*m, firstLimit)
}

// Excerpt is the start of a message's text, at most limit bytes, with its white
// space in single spaces.
func Excerpt(m llm.Message, limit int) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(m.Text()) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		if b.Len() > limit {
			head, _ := bothEnds(b.String(), limit-len("…"))
			return head + "…"
		}
	}
	return b.String()
}

// ErrNoSession says that no session of a folder is meant.
var ErrNoSession = errors.New("there is no such session")

// An AmbiguousError says that more than one session is meant.
type AmbiguousError struct {
	Ref    string
	Among  []Info
	folder string
}

// Error names the candidates.
func (e *AmbiguousError) Error() string {
	var ids []string
	for _, i := range e.Among {
		ids = append(ids, i.ID)
	}
	return fmt.Sprintf("%q may be any of the sessions %s in %s", e.Ref, strings.Join(ids, ", "), e.folder)
}

// Find finds the session whose id is ref or begins with it. The error matches
// ErrNoSession or is an *AmbiguousError.
func Find(dir, ref string) (Info, error) {
	all, err := List(dir)
	if err != nil {
		return Info{}, err
	}
	var found []Info
	for _, i := range all {
		if i.ID == ref {
			return i, nil
		}
		if ref != "" && len(i.ID) > len(ref) && strings.EqualFold(i.ID[:len(ref)], ref) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return Info{}, fmt.Errorf("%w: none in %s has an id that begins with %q", ErrNoSession, dir, ref)
	case 1:
		return found[0], nil
	}
	return Info{}, &AmbiguousError{Ref: ref, Among: found, folder: dir}
}

// Newest finds the session of a working folder that was changed last. The error
// matches ErrNoSession.
func Newest(dir, cwd string) (Info, error) {
	all, err := List(dir)
	if err != nil {
		return Info{}, err
	}
	for _, i := range all {
		if i.Cwd == cwd {
			return i, nil
		}
	}
	return Info{}, fmt.Errorf("%w: none in %s was held in %s", ErrNoSession, dir, cwd)
}
