package worktree

import (
	"context"
	"strconv"
	"strings"

	"muntin/internal/proc"
)

// lsofHolders asks lsof which processes have their working folder in dir. It
// is what there is on systems without /proc.
func lsofHolders(ctx context.Context, dir string) (pids []int, notes []string) {
	res, err := proc.Run(ctx, proc.Spec{Argv: []string{"lsof", "-w", "-n", "-P", "-a", "-d", "cwd", "-F", "pn"}, Keep: 16 << 20})
	if err != nil && len(res.Stdout) == 0 {
		return nil, []string{"cannot see which processes use the folder: " + err.Error()}
	}
	return parseLsof(string(res.Stdout), dir), nil
}

// parseLsof reads lsof's field output (lsof(8), OUTPUT FOR OTHER PROGRAMS): a
// line p<pid>, then n<path> for its working folder.
func parseLsof(out, dir string) []int {
	var pids []int
	pid := 0
	for line := range strings.SplitSeq(out, "\n") {
		if num, ok := strings.CutPrefix(line, "p"); ok {
			pid, _ = strconv.Atoi(num)
		}
		path, ok := strings.CutPrefix(line, "n")
		if ok && pid > 0 && (path == dir || inside(dir, path)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
