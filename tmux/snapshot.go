package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Snapshot is what one listing of the server showed.
type Snapshot struct {
	Epoch Epoch  // zero if no server is running
	Panes []Pane // in tmux's order: session name, window index, pane index
}

// A Pane is one pane as the listing showed it. A pane of a window that is
// linked into several sessions is listed once for each.
type Pane struct {
	Ref         PaneRef
	Session     SessionID
	SessionName string
	Window      WindowID
	WindowName  string
	Index       int  // in its window, by its own count
	Active      bool // the pane that a person in its window would type into
	Cols, Rows  int
	PID         int    // of the pane's program; 0 in a dead pane from tmux 3.8 on
	Dead        bool   // the program has ended and the pane was kept
	Status      int    // exit status of a dead pane; -1: ended by Signal, or not known yet
	Signal      string // the signal that ended it, as tmux 3.3 and later write it: "9", "KILL"
	Command     string // the foreground program, as far as tmux can tell
	Path        string // working folder of that program
	Title       string // may be set by the program: never an identity
	Ours        bool   // the session was made by this package
	SessionMeta map[string]string
	Meta        map[string]string
}

// A Session is a tmux session of a Snapshot.
type Session struct {
	ID      SessionID
	Name    string
	Ours    bool
	Meta    map[string]string
	Windows []WindowID
}

// Pane finds a pane by its reference. ErrStale: the reference is of another
// server process than the snapshot.
func (sn Snapshot) Pane(ref PaneRef) (Pane, error) {
	if ref.Epoch != sn.Epoch {
		return Pane{}, fmt.Errorf("finding pane %s: %w", ref.ID, ErrStale)
	}
	for _, p := range sn.Panes {
		if p.Ref == ref {
			return p, nil
		}
	}
	return Pane{}, fmt.Errorf("finding pane %s: %w", ref.ID, ErrNoSuchPane)
}

// Sessions groups the panes by session.
func (sn Snapshot) Sessions() []Session {
	var out []Session
	for _, p := range sn.Panes {
		i := slices.IndexFunc(out, func(s Session) bool { return s.ID == p.Session })
		if i < 0 {
			i = len(out)
			out = append(out, Session{ID: p.Session, Name: p.SessionName, Ours: p.Ours, Meta: p.SessionMeta})
		}
		if !slices.Contains(out[i].Windows, p.Window) {
			out[i].Windows = append(out[i].Windows, p.Window)
		}
	}
	return out
}

// Snapshot lists every pane of the server with one command. If no server is
// running and none was known, the snapshot is empty; if the known one is gone
// the error is ErrNoServer or ErrStale.
func (s *Server) Snapshot(ctx context.Context) (Snapshot, error) {
	epoch, err := s.bound(ctx)
	if errors.Is(err, ErrNoServer) {
		return Snapshot{}, nil
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("listing tmux panes: %w", err)
	}
	sn, err := s.list(ctx, epoch, Cmd{"list-panes", "-a"})
	if err != nil {
		return Snapshot{}, fmt.Errorf("listing tmux panes: %w", err)
	}
	return sn, nil
}

// list runs one list-panes command. It runs again when the server knows
// metadata keys that this client had not asked for.
func (s *Server) list(ctx context.Context, epoch Epoch, cmd Cmd) (Snapshot, error) {
	for {
		keys, sep := s.metaKeys(), rand.Text()
		replies, err := s.transport.run(ctx, epoch, []Cmd{append(slices.Clone(cmd), "-F", rowFormat(sep, keys))})
		if err != nil {
			return Snapshot{}, err
		}
		panes, known, err := parseRows(replies[0], sep, keys)
		if err != nil {
			return Snapshot{}, err
		}
		if !s.noteKeys(known...) {
			for i := range panes {
				panes[i].Ref.Epoch = epoch
				panes[i].stored(s.Version())
			}
			nudge(epoch, panes)
			return Snapshot{Epoch: epoch, Panes: panes}, nil
		}
	}
}

// nudge makes the server look for children that have ended, if a dead pane's
// status is not known: the next listing will have it. tmux 3.3a sometimes
// misses a child's signal and leaves it a zombie until another child ends. One
// signal more does nothing else.
func nudge(epoch Epoch, panes []Pane) {
	if epoch.PID > 1 && slices.ContainsFunc(panes, Pane.unreaped) {
		_ = syscall.Kill(epoch.PID, syscall.SIGCHLD)
	}
}

// metaKeys are the keys known to this client, in a fixed order.
func (s *Server) metaKeys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]string, 0, len(s.keys))
	for k := range s.keys {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// noteKeys remembers keys that the server has a note of, and reports whether
// one was new.
func (s *Server) noteKeys(keys ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.keys)
	for _, k := range keys {
		s.keys[k] = true
	}
	return len(s.keys) > before
}

// rowFields are the fields of a row that come before the metadata.
//
//nolint:gochecknoglobals // a constant table
var rowFields = []string{
	"session_id", "session_name", "window_id", "window_name", "pane_id", "pane_index", "pane_active",
	"pane_width", "pane_height", "pane_pid", "pane_dead", "pane_dead_status", "pane_dead_signal",
	"pane_current_command", "pane_current_path", "pane_title", sessionMark, paneMeta + keysName, sessionMeta + keysName,
}

// textField is how a field of any text is asked for: quoted by tmux, so that
// every byte can be told from what tmux 3.4 to 3.6 write for it (see unquote).
func textField(name string) string { return "#{q:" + name + "}" }

// rowFormat has one random word between fields and at the end of a row, as
// paths, titles and metadata may hold any other byte. It is printable: tmux
// 3.4 and later write control characters in a listing as text.
func rowFormat(sep string, keys []string) string {
	var b strings.Builder
	for _, f := range rowFields {
		b.WriteString(textField(f) + sep)
	}
	for _, k := range keys {
		b.WriteString(textField(paneMeta+k) + sep + textField(sessionMeta+k) + sep)
	}
	return b.String()
}

// parseRows reads a listing made with rowFormat. known are the metadata keys
// that the server has a note of.
func parseRows(out, sep string, keys []string) (panes []Pane, known []string, err error) {
	if out == "" {
		return nil, nil, nil
	}
	width := len(rowFields) + 2*len(keys)
	fields := strings.Split(out, sep) // behind the last row may be what a person's hook printed
	if len(fields) == 1 || (len(fields)-1)%width != 0 {
		return nil, nil, fmt.Errorf("tmux listing of %d fields, not a multiple of %d: %w", len(fields)-1, width, errReply)
	}
	for row := range slices.Chunk(fields[:len(fields)-1], width) {
		row[0] = strings.TrimPrefix(row[0], "\n")
		for i := range row {
			row[i] = unquote(row[i])
		}
		p, err := parseRow(row, keys)
		if err != nil {
			return nil, nil, err
		}
		panes = append(panes, p)
		known = append(known, splitKeys(row[len(rowFields)-2]+row[len(rowFields)-1])...)
	}
	return panes, known, nil
}

func parseRow(f, keys []string) (Pane, error) {
	p := Pane{
		Ref:     PaneRef{ID: PaneID(f[4])},
		Session: SessionID(f[0]), SessionName: f[1],
		Window: WindowID(f[2]), WindowName: f[3],
		Active: f[6] == "1", Dead: f[10] == "1",
		Status: -1, Signal: f[12],
		Command: f[13], Path: f[14], Title: f[15],
		Ours:        f[16] != "",
		SessionMeta: map[string]string{}, Meta: map[string]string{},
	}
	if err := errors.Join(p.Session.check(), p.Window.check(), p.Ref.ID.check()); err != nil {
		return Pane{}, fmt.Errorf("tmux listing: %w: %w", errReply, err)
	}
	numbers := []struct {
		text string
		to   *int
	}{{f[5], &p.Index}, {f[7], &p.Cols}, {f[8], &p.Rows}, {f[9], &p.PID}}
	for _, n := range numbers {
		if n.text == "" && n.to == &p.PID {
			continue // 3.8 and later: the program has ended, though the pane may not be dead yet
		}
		v, err := strconv.Atoi(n.text)
		if err != nil {
			return Pane{}, fmt.Errorf("tmux listing: %w: %w", errReply, err)
		}
		*n.to = v
	}
	if status, err := strconv.Atoi(f[11]); err == nil && p.Dead {
		p.Status = status
	}
	for i, k := range keys {
		if v := f[len(rowFields)+2*i]; v != "" {
			p.Meta[k] = v
		}
		if v := f[len(rowFields)+2*i+1]; v != "" {
			p.SessionMeta[k] = v
		}
	}
	return p, nil
}

// stored takes back what tmux did to names and titles when it stored them.
func (p *Pane) stored(v Version) {
	if v.doublesBackslash() {
		p.WindowName = strings.ReplaceAll(p.WindowName, `\\`, `\`)
		p.Title = strings.ReplaceAll(p.Title, `\\`, `\`)
	}
}

// FindSession returns the session of exactly that name. ErrNoSuchSession: there
// is none, or no server runs.
func (s *Server) FindSession(ctx context.Context, name string) (Session, error) {
	sn, err := s.Snapshot(ctx)
	if err != nil {
		return Session{}, err
	}
	for _, ses := range sn.Sessions() {
		if ses.Name == name {
			return ses, nil
		}
	}
	return Session{}, fmt.Errorf("finding tmux session %q: %w", name, ErrNoSuchSession)
}

// HasSession reports whether there is a session of exactly that name.
func (s *Server) HasSession(ctx context.Context, name string) (bool, error) {
	_, err := s.FindSession(ctx, name)
	if errors.Is(err, ErrNoSuchSession) {
		return false, nil
	}
	return err == nil, err
}
