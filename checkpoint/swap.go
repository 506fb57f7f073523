package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"muntin/internal/durable"
)

// Between the last look at a file and the rename over it another process can
// write to it, and nobody would know. So nothing is renamed over a file: the two
// exchange their names, and what came out is looked at before it is removed. If it
// is not what was expected it goes back. Where the file system cannot exchange
// names the last look has to do.

const (
	// tempPrefix begins the names of files beside their places: new ones that were
	// not put there yet, and old ones that were not looked at yet.
	tempPrefix = ".muntin-restore-"
	// keptSuffix ends the names of files that have nowhere to go back to.
	keptSuffix = ".muntin-kept"
	// keptTries bounds how many of them there are of one name.
	keptTries = 100
)

// tempEnd is the end of the names of an op's temporary files. By it a later
// process knows which op they are of.
func (o op) tempEnd() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%o %s", o.path, o.new.mode, o.new.hash))
	return "-" + hex.EncodeToString(sum[:8])
}

// tempName is a name beside an op's path.
func (o op) tempName() string { return tempPrefix + strconv.Itoa(os.Getpid()) + o.tempEnd() }

// back is the op that takes o back.
func (o op) back() op { return op{path: o.path, old: o.new, new: o.old} }

// place puts a new file in its place.
func (a *applier) place(dir int, f readyFile) error {
	name := path.Base(f.op.path)
	if _, err := a.expect(dir, f.op); err != nil {
		_ = unix.Unlinkat(dir, f.temp, 0) // a conflict; other errors clean up at the end
		return err
	}
	a.reached("looked")
	isNew := f.op.old.mode == 0
	var err error
	if isNew {
		err = durable.MoveAt(dir, f.temp, name)
	} else {
		err = durable.SwapAt(dir, f.temp, name)
	}
	switch {
	case durable.CannotSwap(err):
		return unix.Renameat(dir, f.temp, dir, name)
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		_ = unix.Unlinkat(dir, f.temp, 0) // as above
		return errConflict                // somebody made or removed the file just now
	case err != nil || isNew:
		return err
	}
	a.reached("exchanged")
	err = a.cameOut(dir, f.temp, f.op)
	if errors.Is(err, errConflict) {
		return a.putBack(dir, f.temp, f.op)
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, f.temp, 0)
}

// takeAway removes the file that an op deletes.
func (a *applier) takeAway(dir int, o op) error {
	name, temp := path.Base(o.path), o.tempName()
	a.reached("looked")
	err := durable.MoveAt(dir, name, temp)
	switch {
	case durable.CannotSwap(err):
		return unix.Unlinkat(dir, name, 0)
	case errors.Is(err, fs.ErrNotExist):
		return errConflict
	case err != nil:
		return err
	}
	a.reached("taken away")
	err = a.cameOut(dir, temp, o)
	if errors.Is(err, errConflict) {
		if err := durable.MoveAt(dir, temp, name); err == nil || !errors.Is(err, fs.ErrExist) {
			return errors.Join(errConflict, err)
		}
		return keepBeside(dir, temp, o) // there is a new file already
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, temp, 0)
}

// cameOut checks that a file that was taken from an op's path is the one that the op starts from.
func (a *applier) cameOut(dir int, temp string, o op) error {
	st, err := lstatAt(dir, temp)
	if err != nil {
		return err
	}
	return a.matches(dir, temp, o, statKeyOf(&st).moved())
}

// moved is what stays of a file's stat data when it gets another name.
func (k statKey) moved() statKey {
	k.ctime = 0
	return k
}

// putBack takes an exchange back: another process had written to the file.
func (a *applier) putBack(dir int, temp string, o op) error {
	name := path.Base(o.path)
	if err := durable.SwapAt(dir, temp, name); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // the new file was removed already
			return keepBeside(dir, temp, o)
		}
		return err
	}
	if at, err := stateAt(dir, temp); err == nil && at.hash == o.new.hash {
		return errors.Join(errConflict, unix.Unlinkat(dir, temp, 0))
	}
	// The new file was written to as well in that moment: the newer one stays in its place.
	if err := durable.SwapAt(dir, temp, name); err != nil {
		return err
	}
	return keepBeside(dir, temp, o)
}

// keepBeside gives a file that another process wrote, and whose place is
// taken, a name that a person finds. The error is the conflict that says so.
func keepBeside(dir int, temp string, o op) error {
	base := path.Base(o.path)
	base = base[:min(len(base), 200)] // names have at most 255 bytes
	for i := range keptTries {
		kept := base + keptSuffix
		if i > 0 {
			kept += strconv.Itoa(i + 1)
		}
		err := durable.MoveAt(dir, temp, kept)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%w; what it held before is in %s", errConflict, path.Join(path.Dir(o.path), kept))
	}
	return fmt.Errorf("keeping %s: %w", temp, fs.ErrExist)
}

// stateAt reads what a name in an open folder holds; the zero state if there is nothing.
func stateAt(dir int, name string) (fileState, error) {
	st, err := lstatAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{}, nil
	}
	if err != nil {
		return fileState{}, err
	}
	key := statKeyOf(&st)
	state := fileState{mode: modeFile}
	var content []byte
	switch {
	case key.isSymlink():
		state.mode = modeSymlink
		content, err = readlinkAt(dir, name)
	case key.isRegular():
		content, _, _, err = (&reader{}).file(dir, name, key.size)
	default:
		return fileState{mode: modeDir}, nil
	}
	state.hash = plumbing.ComputeHash(plumbing.BlobObject, content)
	return state, err
}

// is tells whether a state that was read from disk is the one wanted, but for the executable bit.
func (f fileState) is(want fileState) bool {
	return f.hash == want.hash && (f.mode == modeSymlink) == (want.mode == modeSymlink) && (f.mode == 0) == (want.mode == 0)
}

// dropTemp removes a temporary file of an op that was interrupted. One that
// holds neither the old nor the new content was written by another process and came
// out of an exchange that nobody looked at any more: it goes back.
func (s *Store) dropTemp(dir int, temp string, o op) error {
	name := path.Base(o.path)
	place, err := stateAt(dir, name)
	if err != nil {
		return err
	}
	was, err := stateAt(dir, temp)
	if err != nil {
		return err
	}
	// Before the exchange it is new, whole or not: files are put in their places when they are whole and synced.
	ours := !place.is(o.new) || o.old.mode == 0 || was.is(o.old) || was.is(o.new)
	switch {
	case ours:
		return unix.Unlinkat(dir, temp, 0)
	case o.new.mode == 0:
		err = durable.MoveAt(dir, temp, name)
	default:
		err = unix.Renameat(dir, temp, dir, name)
	}
	if errors.Is(err, fs.ErrExist) {
		if err = keepBeside(dir, temp, o); errors.Is(err, errConflict) {
			err = nil
		}
	}
	return err
}
