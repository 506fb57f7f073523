package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// DefaultSocket is the name of muntin's own server.
const DefaultSocket = "muntin"

// maxSocketPath is the longest socket path in bytes that Linux and macOS take.
const maxSocketPath = 103

// Options say which server to use and how to start it if it is not running.
// The zero value is muntin's own server in the user's environment.
type Options struct {
	Bin       string   // the tmux binary; "": tmux in PATH
	Socket    string   // a name for tmux's -L, or a path (with '/') for -S; "": DefaultSocket
	ConfigDir string   // where the configuration of a server we start is written; "": beside the socket
	Env       []string // environment of a server we start; nil: this process's. TMUX and TMUX_PANE are dropped
	Dir       string   // working folder of a server we start; "": "/", which nobody removes

	// UserConfig is the path of a tmux configuration that a server we start
	// reads after ours; "": none. What it says wins, and what it runs is run.
	UserConfig string
}

// A Server is a client of one tmux server.
type Server struct {
	opts      Options
	socket    string // path
	conf      string
	env       []string
	transport transport
	exec      *execTransport
	link      atomic.Pointer[link] // nil unless connected

	connecting sync.Mutex    // held while link is made or ended
	views      chan struct{} // one for each View

	mu      sync.Mutex // guards the fields below
	epoch   Epoch      // zero until a server is known
	version Version
	ours    bool
	keys    map[string]bool // metadata keys that the server has a note of
}

// Open returns a client of the server that o names. It starts none: the first
// session does. If one is running, the client is bound to it.
//
// ErrNoTmux: no binary. ErrTooOld: older than 3.2.
func Open(ctx context.Context, o Options) (*Server, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	err = s.bind(ctx)
	if errors.Is(err, ErrNoServer) {
		err = s.probe(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("opening tmux server %s: %w", s.socket, err)
	}
	return s, nil
}

// Reopen is Open with the same options: the way on after ErrNoServer and
// ErrStale. Ids and references got from s mean nothing to the new client.
func (s *Server) Reopen(ctx context.Context) (*Server, error) { return Open(ctx, s.opts) }

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Epoch returns the identity of the server process, or the zero value while
// none has been seen.
func (s *Server) Epoch() Epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// Version is that of the running server, or else of the binary.
func (s *Server) Version() Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Ours reports whether the server was started with our configuration. On any
// other server nothing global is changed and KillServer refuses.
func (s *Server) Ours() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ours
}

func newServer(o Options) (*Server, error) {
	s := &Server{opts: o, keys: map[string]bool{}, views: make(chan struct{}, maxViews)}
	bin, env := o.Bin, o.Env
	if bin == "" {
		bin = "tmux"
	}
	if env == nil {
		env = os.Environ()
	}
	s.env = OutsideEnv(env)
	argv := []string{bin, "-u"}
	switch {
	case strings.Contains(o.Socket, "/"):
		path, err := filepath.Abs(o.Socket)
		if err != nil {
			return nil, fmt.Errorf("finding tmux socket %s: %w", o.Socket, err)
		}
		s.socket = path
		argv = append(argv, "-S", path)
	default:
		name := o.Socket
		if name == "" {
			name = DefaultSocket
		}
		if err := CheckName("socket", name); err != nil {
			return nil, err
		}
		s.socket = filepath.Join(socketDir(s.env), name)
		argv = append(argv, "-L", name)
	}
	if len(s.socket) > maxSocketPath {
		return nil, fmt.Errorf("tmux socket path %s is longer than %d bytes; set a shorter one", s.socket, maxSocketPath)
	}
	s.conf = s.socket + ".conf"
	if o.ConfigDir != "" {
		s.conf = filepath.Join(o.ConfigDir, filepath.Base(s.socket)+".conf")
	}
	dir := o.Dir
	if dir == "" {
		dir = "/"
	}
	s.exec = &execTransport{argv: argv, conf: s.conf, env: s.env, dir: dir, timeout: commandTimeout}
	s.transport = &switchTransport{exec: s.exec, link: &s.link}
	return s, nil
}

// socketDir is where tmux puts the sockets that -L names (tmux(1), -L).
func socketDir(env []string) string {
	base := "/tmp"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "TMUX_TMPDIR="); ok && v != "" {
			base = v
		}
	}
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	return filepath.Join(base, "tmux-"+strconv.Itoa(os.Getuid()))
}

// probe asks the binary for its version.
func (s *Server) probe(ctx context.Context) error {
	probe := execTransport{argv: s.exec.argv[:1], env: s.env, dir: s.exec.dir, timeout: commandTimeout}
	out, errText, err := probe.exec(ctx, []string{"-V"}, "")
	if err != nil {
		return err
	}
	if errText != "" {
		return &CommandError{Command: "-V", Text: errText}
	}
	v, err := ParseVersion(out)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.version = v
	s.mu.Unlock()
	return v.check()
}

// identity asks a server who it is. The path is last: it may hold any byte.
//
//nolint:gochecknoglobals // a constant
var identity = Cmd{"display-message", "-p", "#{pid} #{start_time} #{version} #{?" + ourMark + ",1,0} #{socket_path}"}

// bound returns the epoch of the server, looking for one if none is known.
func (s *Server) bound(ctx context.Context) (Epoch, error) {
	if epoch := s.Epoch(); epoch != (Epoch{}) {
		return epoch, nil
	}
	if err := s.bind(ctx); err != nil {
		return Epoch{}, err
	}
	return s.Epoch(), nil
}

// bind asks the running server who it is, without starting one.
func (s *Server) bind(ctx context.Context) error {
	out, errText, err := s.exec.exec(ctx, identity, "")
	if err != nil {
		return err
	}
	if errText != "" {
		return &CommandError{Command: identity[0], Text: errText}
	}
	return s.setIdentity(strings.TrimSuffix(out, "\n"))
}

// setIdentity binds the client by the reply to identity. A client that is
// bound already stays with its server.
func (s *Server) setIdentity(reply string) error {
	f := strings.SplitN(reply, " ", 5)
	if len(f) < 5 {
		return fmt.Errorf("tmux server identity %q: %w", reply, errReply)
	}
	pid, err1 := strconv.Atoi(f[0])
	start, err2 := strconv.ParseInt(f[1], 10, 64)
	v, err3 := ParseVersion(f[2])
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("tmux server identity %q: %w", reply, err)
	}
	if err := v.check(); err != nil {
		return err
	}
	epoch := Epoch{Socket: f[4], PID: pid, Start: start}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != (Epoch{}) && s.epoch != epoch {
		return ErrStale
	}
	s.epoch, s.version, s.ours = epoch, v, f[3] == "1"
	return nil
}

var errReply = errors.New("unexpected reply of tmux")

// start carries out commands on a server that may have to be started first.
func (s *Server) start(ctx context.Context, cmds []Cmd) ([]string, error) {
	epoch, err := s.bound(ctx)
	if err == nil {
		return s.transport.run(ctx, epoch, cmds)
	}
	if !errors.Is(err, ErrNoServer) {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	replies, err := s.exec.run(ctx, Epoch{}, append([]Cmd{identity}, cmds...))
	if len(replies) == 0 {
		return nil, err
	}
	if bindErr := s.setIdentity(replies[0]); bindErr != nil {
		return replies[1:], errors.Join(err, bindErr)
	}
	return replies[1:], err
}

// prepare makes the socket's folder and the configuration. A folder in which
// another user could put a socket of his own is refused.
func (s *Server) prepare(ctx context.Context) error {
	dir := filepath.Dir(s.socket)
	for _, d := range []string{dir, filepath.Dir(s.conf)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("making the tmux socket folder: %w", err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("looking at the tmux socket folder: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Getuid() && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("tmux socket folder %s belongs to another user", dir)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("tmux socket folder %s can be written by others; make it 0700", dir)
	}
	return s.writeConfig(ctx, s.Version())
}
