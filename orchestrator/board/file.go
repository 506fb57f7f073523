package board

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muntin/internal/durable"
)

// ErrNoFile says that there is no board file yet. Create makes one.
var ErrNoFile = errors.New("no board file")

// maxRetries is how often Update starts again because somebody who does not
// know the lock, such as an editor, wrote the file meanwhile.
const maxRetries = 20

// A File is the board of a repository or a run. LockPath is a file in muntin's
// state folder; all writers of one board must name the same.
type File struct {
	Path     string
	LockPath string
}

// Read parses the file as it is now, without the lock: writers replace the
// file as a whole. The error matches ErrNoFile if there is none.
func (f File) Read() (*Board, error) {
	src, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist", ErrNoFile, f.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading board: %w", err)
	}
	b, err := Parse(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return b, nil
}

// Update changes the file under its lock: it reads it again, calls fn on the
// board and, when fn changed it, replaces the file as a whole and keeps its
// mode. It returns the board as it is on disk then. When somebody writes
// the file between reading and replacing, all starts again, so fn may be called
// more than once. An error of fn is returned as it is and nothing is written.
// The error matches durable.ErrLocked when ctx ended first, and ErrNoFile.
func (f File) Update(ctx context.Context, fn func(*Board) error) (b *Board, changed bool, err error) {
	held, err := f.lock(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	for range maxRetries {
		var again bool
		b, changed, again, err = f.updateOnce(fn)
		if err != nil || !again {
			return b, changed, err
		}
		if ctx.Err() != nil {
			return nil, false, fmt.Errorf("updating %s: %w", f.Path, context.Cause(ctx))
		}
	}
	return nil, false, fmt.Errorf("updating %s: something else writes it all the time", f.Path)
}

// Create makes the file with a heading unless it exists, under its lock.
func (f File) Create(ctx context.Context) (err error) {
	held, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	if _, err := os.Stat(f.Path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return fmt.Errorf("creating board: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return fmt.Errorf("creating board: %w", err)
	}
	return durable.WriteFile(f.Path, []byte("# To do\n"), 0o644)
}

func (f File) lock(ctx context.Context) (*durable.Held, error) {
	if err := os.MkdirAll(filepath.Dir(f.LockPath), 0o700); err != nil {
		return nil, fmt.Errorf("locking board: %w", err)
	}
	return durable.Lock(ctx, f.LockPath)
}

// updateOnce is one try of Update. again says that the file changed under it.
func (f File) updateOnce(fn func(*Board) error) (b *Board, changed, again bool, err error) {
	b, err = f.Read()
	if err != nil {
		return nil, false, false, err
	}
	before := b.Bytes()
	if err := fn(b); err != nil {
		return nil, false, false, err
	}
	if bytes.Equal(before, b.Bytes()) {
		return b, false, false, nil
	}
	// A rename onto a symbolic link would replace the link, not the board.
	path, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return nil, false, false, fmt.Errorf("updating board: %w", err)
	}
	now, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, false, fmt.Errorf("updating board: %w", err)
	}
	if err != nil || !bytes.Equal(now, before) {
		return nil, false, true, nil
	}
	if err := durable.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return nil, false, false, err
	}
	return b, true, false, nil
}
