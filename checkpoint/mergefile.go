package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muntin/internal/proc"
)

// mergeConflicts is the largest count of conflicts that git merge-file tells
// by its exit status; above are its errors.
const mergeConflicts = 127

// mergeFile merges three texts, ours, base and theirs, by lines, and returns
// the result with markers at the conflicts, and their number. It is git's own
// merge (git-merge-file(1)), so that a conflict looks as people know it and is one where git
// would see one; no Go library merges with the same care for adjacent
// changes. It runs only for files that were changed on both sides.
func (g *git) mergeFile(ctx context.Context, dir string, sides [3][]byte, labels [3]string) (text []byte, conflicts int, err error) {
	temp, err := os.MkdirTemp(dir, "merge-")
	if err != nil {
		return nil, 0, fmt.Errorf("merging: %w", err)
	}
	defer func() {
		if e := os.RemoveAll(temp); e != nil && err == nil {
			err = fmt.Errorf("merging: %w", e)
		}
	}()
	argv := []string{"git", "-c", "merge.conflictStyle=merge", "merge-file", "-p", "-q"}
	for _, l := range labels {
		argv = append(argv, "-L", l)
	}
	for i, name := range []string{"now", "base", "other"} {
		file := filepath.Join(temp, name)
		if err := os.WriteFile(file, sides[i], 0o600); err != nil {
			return nil, 0, fmt.Errorf("merging: %w", err)
		}
		argv = append(argv, file)
	}
	var out bytes.Buffer
	_, err = proc.Run(ctx, proc.Spec{Argv: argv, Dir: g.repo.Root, Env: g.env, Stdout: &out})
	var exit *proc.ExitError
	if errors.As(err, &exit) && exit.Result.Signal == 0 && exit.Result.Code <= mergeConflicts {
		return out.Bytes(), exit.Result.Code, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("git merge-file: %w", err)
	}
	return append([]byte{}, out.Bytes()...), 0, nil
}
