package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
	"muntin/internal/state"
)

// A sidecar holds none of the repository's objects. What git's index says of
// contents is therefore no use to it, and may even be in another hash: the
// index only tells what is tracked. The few contents that a snapshot needs
// from the repository itself are copied.

// alias stands in an index for the object with this name in the repository.
// It is never the hash of an object in the sidecar.
func (x *index) alias(name string) plumbing.Hash {
	h := plumbing.ComputeHash(plumbing.TagObject, []byte("object of another repository "+name))
	if x.aliases == nil {
		x.aliases = map[plumbing.Hash]string{}
	}
	x.aliases[h] = name
	return h
}

// An adopter copies the contents that the index has of some paths into the
// store, and tells the hashes of the copies by those in the index.
type adopter func(ctx context.Context, paths map[string]bool) (map[plumbing.Hash]plumbing.Hash, error)

// adoptIndex makes an index of the repository one for the sidecar: contents
// are aliases, but those of files that are not on disk are copied. Nested
// repositories that are named by another hash are left out.
func (s *Store) adoptIndex(ctx context.Context, x *index) error {
	x.mtime = 0 // no stat data: git's index vouches for nothing here
	kept := x.at[:0]
	for i := range x.at {
		e := x.entry(i)
		_, aliased := x.aliases[e.hash]
		if e.mode == modeGitlink && aliased {
			continue
		}
		if e.mode != modeGitlink && !aliased {
			x.setHash(i, x.alias(e.hash.String()))
		}
		kept = append(kept, x.at[i])
	}
	x.at = kept
	if err := x.survey(); err != nil {
		return err
	}
	copies, err := s.importEntries(ctx, x, x.skipped)
	if err != nil {
		return err
	}
	for _, i := range x.skipped {
		if h, ok := copies[x.entry(i).hash]; ok {
			x.setHash(i, h)
		}
	}
	return nil
}

// importPaths is the adopter of an index.
func (s *Store) importPaths(ctx context.Context, x *index, paths map[string]bool) (map[plumbing.Hash]plumbing.Hash, error) {
	var which []int
	for i := range x.at {
		if paths[string(x.path(i))] {
			which = append(which, i)
		}
	}
	copies, err := s.importEntries(ctx, x, which)
	if err != nil {
		return nil, err
	}
	return copies, s.odb.sync() // git will look for them
}

// importEntries copies the contents of some entries, and returns the hashes
// of the copies by the aliases. It changes nothing in the index: a copy that no
// checkpoint holds may go away again.
func (s *Store) importEntries(ctx context.Context, x *index, which []int) (map[plumbing.Hash]plumbing.Hash, error) {
	copies := map[plumbing.Hash]plumbing.Hash{}
	var wanted []int
	for _, i := range which {
		e := x.entry(i)
		name, ok := x.aliases[e.hash]
		if !ok {
			continue
		}
		h, ok := s.imported[name]
		if !ok {
			h, ok = parseHash(name) // an earlier process may have copied it
		}
		if ok && s.odb.has(h) {
			s.imported[name], copies[e.hash] = h, h
			continue
		}
		wanted = append(wanted, i)
	}
	if len(wanted) == 0 {
		return copies, nil
	}
	copyAll := s.copyEntries
	if s.git.longHash {
		copyAll = s.convertEntries
	}
	if err := copyAll(ctx, x, wanted); err != nil {
		return nil, err
	}
	for _, i := range wanted {
		h := x.entry(i).hash
		copies[h] = s.imported[x.aliases[h]]
	}
	return copies, nil
}

// copyEntries copies from a repository with objects like ours.
func (s *Store) copyEntries(_ context.Context, x *index, which []int) error {
	from := newPackReader(filepath.Join(s.repo.CommonDir, "objects"))
	defer from.close()
	for _, i := range which {
		name := x.aliases[x.entry(i).hash]
		h, _ := parseHash(name)
		obj, err := from.get(h, false)
		if err == nil {
			err = s.odb.writeAs(h, obj.kind, obj.content)
		}
		if err != nil {
			return fmt.Errorf("copying the content of %s from the repository: %w", x.path(i), err)
		}
		s.imported[name] = h
	}
	return nil
}

// convertEntries copies from a repository with objects of another kind, through git.
func (s *Store) convertEntries(ctx context.Context, x *index, which []int) error {
	var ask bytes.Buffer
	var wanted []string
	for _, i := range which {
		name := x.aliases[x.entry(i).hash]
		wanted = append(wanted, name)
		ask.WriteString(name + "\n")
	}
	out, err := s.git.run(ctx, "", &ask, "cat-file", "--batch")
	if err == nil {
		err = s.importBatch(out, wanted)
	}
	if err != nil {
		return fmt.Errorf("copying contents from the repository: %w", err)
	}
	return nil
}

// importBatch reads what `git cat-file --batch` prints: a line "name kind
// size", the content and a line feed for each object.
func (s *Store) importBatch(out []byte, wanted []string) error {
	for _, name := range wanted {
		line, rest, _ := bytes.Cut(out, []byte("\n"))
		f := strings.Fields(string(line))
		if len(f) != 3 || f[0] != name || f[1] != "blob" {
			return fmt.Errorf("git has no blob %s: %q", name, line)
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size < 0 || size >= len(rest) {
			return fmt.Errorf("git cat-file printed %q", line)
		}
		h, err := s.odb.write(plumbing.BlobObject, rest[:size])
		if err != nil {
			return err
		}
		s.imported[name] = h
		out = rest[size+1:]
	}
	return nil
}

// converter is the git that converts contents for the store: its objects go
// into the sidecar, by the repository's rules.
func (s *Store) converter() (*git, error) {
	if !s.where.Sidecar || s.plain {
		return s.git, nil
	}
	attrs, err := readOptional(filepath.Join(s.repo.CommonDir, "info", "attributes"))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.where.Path, "info", "attributes")
	if old, err := readOptional(file); err != nil || !bytes.Equal(old, attrs) {
		if err := durable.WriteFile(file, attrs, 0o600); err != nil {
			return nil, err
		}
	}
	g := newGit(state.Repo{Root: s.repo.Root, Main: s.repo.Main, GitDir: s.where.Path, CommonDir: s.where.Path})
	n := 0
	for _, key := range sortedKeys(s.conf.values) {
		switch key {
		case "core.autocrlf", "core.eol", "core.attributesfile", "core.checkroundtripencoding", "core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode":
		default:
			if !strings.HasPrefix(key, "filter.") {
				continue
			}
		}
		g.env = append(g.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, s.conf.values[key]))
		n++
	}
	g.env = append(g.env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
	return g, nil
}

// loadSettings reads the configuration, also that of a repository that the
// git of this machine is too old to open.
func (s *Store) loadSettings(ctx context.Context) error {
	var err error
	s.conf, err = s.git.loadSettings(ctx)
	if !s.where.Sidecar || s.plain || ctx.Err() != nil {
		return err
	}
	// A git that does not know an extension goes on as if there were no repository.
	sees := func(key string) bool {
		_, ok := s.conf.values["extensions."+key]
		return ok
	}
	if err == nil && !slices.ContainsFunc(sortedKeys(s.ext), func(key string) bool { return !sees(key) }) {
		return nil
	}
	g := newGit(state.Repo{Root: s.repo.Root, Main: s.repo.Main, GitDir: s.where.Path, CommonDir: s.where.Path})
	g.blind = true
	g.includes = []string{filepath.Join(s.repo.CommonDir, "config")}
	if worktree := filepath.Join(s.repo.GitDir, "config.worktree"); s.ext["worktreeconfig"] == "true" {
		g.includes = append(g.includes, worktree)
	}
	conf, blindErr := g.loadSettings(ctx)
	if blindErr != nil {
		return errors.Join(err, blindErr)
	}
	s.git, s.conf = g, conf
	return nil
}

// head returns HEAD's commit: its hash if the store has it, and its name in
// any case, "" for none.
func (s *Store) head(ctx context.Context) (plumbing.Hash, string, error) {
	if s.plain {
		return plumbing.ZeroHash, "", nil
	}
	name, err := headName(s.repo.GitDir, s.repo.CommonDir)
	if err != nil {
		return plumbing.ZeroHash, "", fmt.Errorf("reading HEAD: %w", err)
	}
	if !s.where.Sidecar {
		h, _ := parseHash(name)
		return h, name, nil
	}
	if name == "" && s.ext["refstorage"] != "" && !s.git.blind {
		// Refs that are not in files are git's to read. An unborn branch is an error to it.
		if out, err := s.git.run(ctx, "", nil, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
			name = strings.TrimSpace(string(out))
		}
	}
	return plumbing.ZeroHash, name, nil
}

// worktreeDir is the folder of the worktree's lock and journal.
func (h *home) worktreeDir() string {
	if !h.where.Sidecar {
		return filepath.Join(h.repo.GitDir, "muntin")
	}
	// Names that stay when the repository is moved.
	if h.repo.GitDir == h.repo.CommonDir {
		return filepath.Join(h.where.Path, "muntin", "main")
	}
	return filepath.Join(h.where.Path, "muntin", "worktree-"+filepath.Base(h.repo.GitDir))
}

// lend lets the store fetch missing objects of a partial clone for as long as ctx lives.
func (s *Store) lend(ctx context.Context) {
	if s.where.Sidecar || !s.conf.partial() {
		return
	}
	s.odb.fetch = func(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
		return s.git.run(ctx, "", nil, "cat-file", kind.String(), h.String())
	}
}
