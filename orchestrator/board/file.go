package board

import (
	"bytes"
	"cmp"
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
// state folder, and Versions a folder there for the last texts of the board; all
// writers of one board must name the same. Without Versions nothing is merged: a
// text that somebody saved from an old one stands as it is.
type File struct {
	Path     string
	LockPath string
	Versions string
	Log      string // what changed and who did it, as lines of JSON; "": not kept
	By       Author // who Update writes for; "" is a person
	Who      string // the name of the agent that Update writes for
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
//
// When the text on disk was saved from an old version, what came since is merged
// into it first; see Merge. Conflicts are marked on the board.
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
	found := b.Bytes()
	all, err := f.versions()
	if err != nil {
		return nil, false, false, err
	}
	if b, err = f.leftOver(b, all); err != nil {
		return nil, false, false, err
	}
	b, all, err = f.takeIn(b, all)
	if err != nil {
		return nil, false, false, err
	}
	merged := b.Bytes()
	if err := fn(b); err != nil {
		if bytes.Equal(found, merged) {
			return nil, false, false, err
		}
		// The change is refused; what was merged stands all the same.
		_, werr := f.write(found, merged, Person, all)
		return nil, false, false, errors.Join(err, noChange(werr))
	}
	if bytes.Equal(found, b.Bytes()) {
		return b, false, false, nil
	}
	by := f.By
	if by == "" || !bytes.Equal(found, merged) {
		by = Person
	}
	text, err := f.write(found, b.Bytes(), by, all)
	if err != nil {
		return nil, false, errors.Is(err, errChanged), noChange(err)
	}
	if err := f.record(merged, text, cmp.Or(f.By, Person)); err != nil {
		return nil, true, false, err
	}
	if !bytes.Equal(text, b.Bytes()) {
		if b, err = Parse(text); err != nil {
			return nil, true, false, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return b, true, false, nil
}

// errChanged says that the file was written between reading and replacing it.
var errChanged = errors.New("the board changed meanwhile")

func noChange(err error) error {
	if errors.Is(err, errChanged) {
		return nil
	}
	return err
}

// takeIn looks at a text that muntin did not write: it is kept, and when it started
// from an old version, what came since is merged into it.
func (f File) takeIn(b *Board, all []version) (*Board, []version, error) {
	text := b.Bytes()
	last := len(all) - 1
	if f.Versions == "" || last >= 0 && all[last].sum == sumOf(text) {
		return b, all, f.written(all)
	}
	if last < 0 {
		all, err := f.keep(all, text, Person)
		return b, all, err
	}
	base, from := origin(all, text)
	latest, ok := all[last].read()
	if from == last || !ok {
		if ok {
			if err := f.record(latest, text, Person); err != nil {
				return nil, all, err
			}
		}
		all, err := f.keep(all, text, Person)
		return b, all, err
	}
	m, err := Merge(base, Side{text, Person}, Side{latest, since(all, from)})
	if err != nil {
		return nil, all, fmt.Errorf("%s was saved from an old text: %w", f.Path, err)
	}
	merged, err := Parse(m.Text)
	if err != nil {
		return nil, all, fmt.Errorf("%s was saved from an old text: %w", f.Path, err)
	}
	if err := f.record(latest, m.Text, Person); err != nil {
		return nil, all, err
	}
	if all[last].pending { // nobody saved this: a writer died before it was done
		return merged, all, f.written(all)
	}
	all, err = f.keep(all, text, stale)
	return merged, all, err
}

// write replaces the file, which must still hold found, and keeps the text. It
// returns the text that the file has then: when somebody saved it in the moment
// between the look and the exchange, both are in it.
func (f File) write(found, text []byte, by Author, all []version) ([]byte, error) {
	// A rename onto a symbolic link would replace the link, not the board.
	path, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return nil, fmt.Errorf("updating board: %w", err)
	}
	now, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("updating board: %w", err)
	}
	if err != nil || !bytes.Equal(now, found) {
		return nil, errChanged
	}
	for range maxRetries {
		// Kept before it is written: after a crash between the two the file looks
		// saved from an old text, and the merge brings back what is missing.
		if all, err = f.keepAs(all, text, version{by: by, pending: true}); err != nil {
			return nil, err
		}
		was, err := durable.Exchange(path, text, 0o644)
		if err != nil {
			return nil, err
		}
		if err := f.written(all); err != nil || bytes.Equal(was, found) {
			return text, err
		}
		m, err := Merge(found, Side{was, Person}, Side{text, by})
		if err != nil {
			return nil, fmt.Errorf("%s was saved meanwhile: %w", f.Path, err)
		}
		found, text, by = text, m.Text, Person
	}
	return nil, fmt.Errorf("updating %s: something else writes it all the time", f.Path)
}
