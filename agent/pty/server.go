package pty

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"muntin/internal/durable"
)

const (
	// maxConns bounds what strangers to the protocol can cost.
	maxConns = 128
	// writeLimit is how long a client may not read what is sent to it before
	// it is dropped.
	writeLimit = 10 * time.Second
	// partingLimit is how long clients have to take the last events.
	partingLimit = time.Second
)

// A server serves the supervisor's socket.
type server struct {
	s  *supervisor
	ln *net.UnixListener

	ctx    context.Context
	cancel context.CancelFunc

	closing atomic.Bool

	mu    sync.Mutex // guards conns
	conns map[*net.UnixConn]bool
	wg    sync.WaitGroup
}

// listen makes the socket, in a folder that only its owner can enter. One that
// a dead supervisor left behind is replaced; the caller holds the agent's
// lock, so nobody else does the same.
func listen(path string, s *supervisor) (*server, error) {
	if err := durable.PrivateDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("making the socket %s: %w", path, err)
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("making the socket %s: somebody serves it already", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the stale socket: %w", err)
		}
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("making the socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("making the socket: %w", err), ln.Close())
	}
	v := &server{s: s, ln: ln, conns: map[*net.UnixConn]bool{}}
	v.ctx, v.cancel = context.WithCancel(context.WithoutCancel(s.work))
	return v, nil
}

// serve begins to take connections.
func (v *server) serve() { v.wg.Go(v.accept) }

func (v *server) accept() {
	for {
		conn, err := v.ln.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			v.s.log.Warn("taking a connection", "error", err)
			if wait(v.ctx, 100*time.Millisecond) != nil { // out of descriptors, perhaps
				return
			}
			continue
		}
		if uid, err := peerUID(conn); err != nil || uid != os.Getuid() {
			v.s.log.Warn("a connection was refused", "uid", uid, "error", err)
			conn.Close()
			continue
		}
		if !v.keep(conn) {
			conn.Close()
			continue
		}
		v.wg.Go(func() { v.handle(conn) })
	}
}

func (v *server) keep(conn *net.UnixConn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.conns) >= maxConns {
		return false
	}
	v.conns[conn] = true
	return true
}

// close takes no more connections, gives those that follow the events a moment
// to take the last ones, and waits for all.
func (v *server) close() {
	v.closing.Store(true)
	v.ln.Close()
	parting := time.AfterFunc(partingLimit, v.drop)
	v.mu.Lock()
	for conn := range v.conns { // ends all that wait for a request
		_ = conn.CloseRead()
	}
	v.mu.Unlock()
	v.wg.Wait()
	parting.Stop()
	v.cancel()
}

func (v *server) drop() {
	v.cancel()
	v.mu.Lock()
	defer v.mu.Unlock()
	for conn := range v.conns {
		conn.Close()
	}
}

// handle serves one connection. Whatever goes wrong in it stays in it: the
// agent must not die of a client.
func (v *server) handle(conn *net.UnixConn) {
	defer func() {
		if p := recover(); p != nil {
			v.s.log.Error("serving a connection", "panic", p, "stack", string(debug.Stack()))
		}
		v.mu.Lock()
		delete(v.conns, conn)
		v.mu.Unlock()
		conn.Close()
	}()
	c := &session{v: v, conn: conn, frames: newFrameReader(conn)}
	for {
		f, err := c.frames.next()
		var bad syntaxError
		switch {
		case errors.As(err, &bad):
			err = c.reply(Frame{}, errors.New(bad.Error()))
		case errors.Is(err, errFrameTooLong):
			_ = c.reply(Frame{}, err)
			return
		case err == nil:
			err = c.serve(f)
		}
		if err != nil {
			return
		}
	}
}
