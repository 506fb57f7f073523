package tui

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"muntin/internal/proc"
)

// Limits of what is completed.
const (
	maxFiles  = 100_000
	maxFound  = 50
	listAgain = 10 * time.Second // from when on the files are listed again
)

// complete shows completions for what stands before the cursor: of a command at the
// beginning, of a file behind @, and of any word as a file when asked is true.
func (m *model) complete(asked bool) {
	m.popup = nil
	before := m.edit.Before()
	if strings.HasPrefix(before, "/") && !strings.ContainsAny(before, " \n") {
		m.offer(len(before), m.findCommands(before[1:]))
		return
	}
	word := before[strings.LastIndexAny(before, " \n\t")+1:]
	name, at := strings.CutPrefix(word, "@")
	name = strings.TrimPrefix(name, `"`)
	if !at && (!asked || word == "") {
		return
	}
	if m.now().Sub(m.listed) > listAgain {
		m.listed, m.wantFiles = m.now(), true
	}
	m.offer(len(word), m.findFiles(name, at))
}

func (m *model) offer(length int, all []completion) {
	if len(all) > 0 {
		m.popup = &popup{items: all, length: length}
	}
}

// takeFiles takes the files of the folder.
func (m *model) takeFiles(files []string) {
	m.files = files
	if m.popup == nil && m.dialog == nil {
		m.complete(false)
	}
}

func (m *model) findCommands(want string) []completion {
	if m.opts.commands == nil {
		return nil
	}
	var found []scored
	for _, c := range m.opts.commands() {
		if score, ok := fuzzy(want, c.Name); ok {
			text := "/" + c.Name
			if c.Args != "" {
				text += " "
			}
			found = append(found, scored{completion{text, "/" + strings.TrimSpace(c.Name+" "+c.Args), c.Help}, score})
		}
	}
	if want == "" { // as /help has them
		var all []completion
		for _, f := range found {
			all = append(all, f.completion)
		}
		return all
	}
	return best(found)
}

func (m *model) findFiles(want string, at bool) []completion {
	var found []scored
	for _, f := range m.files {
		score, ok := fuzzy(want, f)
		if !ok {
			continue
		}
		text := f
		if strings.ContainsAny(f, " \t") {
			text = `"` + f + `"`
		}
		if at {
			text = "@" + text
		}
		found = append(found, scored{completion{text + " ", f, ""}, score})
	}
	return best(found)
}

type scored struct {
	completion
	score int
}

// best are the completions with the highest scores.
func best(found []scored) []completion {
	slices.SortStableFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(len(a.label), len(b.label)), cmp.Compare(a.label, b.label))
	})
	var all []completion
	for _, f := range found[:min(len(found), maxFound)] {
		all = append(all, f.completion)
	}
	return all
}

// fuzzy reports whether the characters of want occur in text in this order, and how
// well: runs, beginnings of words and the last part of a path count most. Capitals
// count only where want has them.
func fuzzy(want, text string) (score int, ok bool) {
	if want == "" {
		return 0, true
	}
	if !strings.ContainsFunc(want, unicode.IsUpper) {
		text = strings.ToLower(text)
	}
	base := strings.LastIndexByte(strings.TrimSuffix(text, "/"), '/') + 1
	if i := strings.Index(text[base:], want); i >= 0 { // within the file's own name
		score = 1000 - min(i, 100)
		if len(text)-base == len(want) {
			score += 500
		}
		return score, true
	}
	if i := strings.Index(text, want); i >= 0 {
		return 500 - min(i, 100), true
	}
	at, last := 0, -2
	for _, r := range want {
		i := strings.IndexRune(text[at:], r)
		if i < 0 {
			return 0, false
		}
		at += i
		switch {
		case at == last+1:
			score += 6
		case at == 0 || strings.IndexByte("/_-. ", text[at-1]) >= 0:
			score += 4
		case at >= base:
			score += 2
		}
		last = at
		at++
	}
	return score, true
}

// listFiles lists the files of a folder, relative to it: in a git repository those
// that git does not ignore, elsewhere all that are not hidden.
func listFiles(ctx context.Context, dir string, env []string) []string {
	res, err := proc.Run(ctx, proc.Spec{
		Argv: []string{"git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"},
		Dir:  dir, Env: env, Timeout: 10 * time.Second, Keep: 16 << 20,
	})
	if err == nil {
		files := strings.Split(strings.TrimSuffix(string(res.Stdout), "\x00"), "\x00")
		return withFolders(files[:min(len(files), maxFiles)])
	}
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read is left out
		if err != nil || ctx.Err() != nil || len(files) >= maxFiles {
			return fs.SkipAll
		}
		name, hidden := d.Name(), strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && path != dir && (hidden || name == "node_modules" || name == "vendor") {
			return fs.SkipDir
		}
		if rel, err := filepath.Rel(dir, path); err == nil && !d.IsDir() && !hidden {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	return withFolders(files)
}

// withFolders adds the folders that files lie in.
func withFolders(files []string) []string {
	seen := map[string]bool{}
	for _, f := range files {
		for i := strings.LastIndexByte(f, '/'); i > 0; i = strings.LastIndexByte(f[:i], '/') {
			if seen[f[:i+1]] {
				break
			}
			seen[f[:i+1]] = true
		}
	}
	folders := make([]string, 0, len(seen))
	for d := range seen {
		folders = append(folders, d)
	}
	slices.Sort(folders)
	return append(slices.DeleteFunc(files, func(f string) bool { return f == "" }), folders...)
}
