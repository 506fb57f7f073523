package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mend takes back what a killed fast-forward had written before it died: files that
// hold what they have in the commit that it aimed at, or in one before it, or the
// beginning of that, or are gone. They get what HEAD has, so that git can do all of it again;
// what they held is in the commit. If any of the paths holds something else, it is the
// agent's: nothing is changed, and mended is false.
func (m *Manager) mend(ctx context.Context, over *OverwriteError) (mended bool, err error) {
	dir, paths := over.Dir, over.Paths
	for _, path := range paths {
		torn, err := m.torn(ctx, dir, over.to, path)
		if err != nil || !torn {
			return false, err
		}
	}
	for _, path := range paths {
		_, err := m.git.run(ctx, call{dir: dir, args: []string{"cat-file", "-e", "HEAD:" + path}})
		if err == nil {
			_, err = m.git.run(ctx, call{dir: dir, args: []string{"checkout", "--quiet", "HEAD", "--", ":(top,literal)" + path}})
		} else if exitCode(err) > 0 {
			err = os.Remove(filepath.Join(dir, path))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// torn tells whether a file may have been left so by a git that was writing it.
func (m *Manager) torn(ctx context.Context, dir, commit, path string) (bool, error) {
	full := filepath.Join(dir, path)
	info, err := os.Lstat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, nil
	}
	have, err := os.ReadFile(full)
	if err != nil {
		return false, err
	}
	out, err := m.git.run(ctx, call{dir: dir, args: []string{
		"log", "--format=%H", "--full-history", fmt.Sprintf("--max-count=%d", mostTargets), "HEAD.." + commit, "--", ":(top,literal)" + path,
	}})
	if err != nil {
		return false, err
	}
	for _, target := range append([]string{commit}, strings.Fields(out)...) {
		want, err := m.git.run(ctx, call{dir: dir, args: []string{"cat-file", "--filters", target + ":" + path}})
		if err == nil && bytes.HasPrefix([]byte(want), have) {
			return true, nil
		}
		if err != nil && exitCode(err) < 0 {
			return false, err
		}
	}
	return false, nil
}

// mostTargets bounds how many commits a cut-off merge may have aimed at.
const mostTargets = 20

// overwrite is the OverwriteError in err, in dir, nil if there is none.
func overwrite(err error, dir string) *OverwriteError {
	var found *OverwriteError
	if !errors.As(err, &found) || found.Dir != dir {
		return nil
	}
	return found
}
