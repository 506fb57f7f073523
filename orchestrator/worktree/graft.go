package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Graft asks for the tree of a commit with a change of something else put
// into it: what differs between the trees From and To, in the paths that Take
// is true for (nil: all).
type Graft struct {
	Onto     string // a commit or tree
	From, To string // trees
	Take     func(path string) bool
}

// Graft makes such a tree. A path gets the contents that it has in To.
func (m *Manager) Graft(ctx context.Context, g Graft) (string, error) {
	tree, err := m.graft(ctx, g)
	if err != nil {
		return "", fmt.Errorf("putting a change onto %s: %w", g.Onto, err)
	}
	return tree, nil
}

func (m *Manager) graft(ctx context.Context, g Graft) (tree string, err error) {
	out, err := m.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--end-of-options", g.From, g.To)
	if err != nil {
		return "", err
	}
	in, err := indexInfo(out, g.Take)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "muntin-index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	for _, c := range []call{
		{args: []string{"read-tree", g.Onto}},
		{args: []string{"update-index", "-z", "--index-info"}, stdin: in},
		{args: []string{"write-tree"}},
	} {
		c.dir, c.env = m.repo.Root, env
		if out, err = m.git.run(ctx, c); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(out), nil
}

// indexInfo makes of `git diff-tree --raw -z` (":mode mode oid oid status", then
// the path) what `git update-index --index-info` reads. Removals come first, so
// that a file can become a folder.
func indexInfo(out string, take func(string) bool) (string, error) {
	var gone, come strings.Builder
	items := splitNul(out)
	for i := 0; i+1 < len(items); i += 2 {
		f := strings.Fields(strings.TrimPrefix(items[i], ":"))
		if len(f) != 5 {
			return "", fmt.Errorf("reading git's diff: cannot read %.80q", items[i])
		}
		mode, oid, path := f[1], f[3], items[i+1]
		if take != nil && !take(path) {
			continue
		}
		if strings.Trim(mode, "0") == "" {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", oid, path)
		} else {
			fmt.Fprintf(&come, "%s %s\t%s\x00", mode, oid, path)
		}
	}
	return gone.String() + come.String(), nil
}
