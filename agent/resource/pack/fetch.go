package pack

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muntin/agent/resource"
	"muntin/internal/durable"
	"muntin/internal/proc"
)

// patience is how long git or npm may take.
const patience = 5 * time.Minute

// maxAnswer is how much of an answer is read: npm's lists all files of a package.
const maxAnswer = 16 << 20

// fetch gets a source's files in a version, or in the one that its ref means now,
// and puts them into the store.
func (s Store) fetch(ctx context.Context, src Source, version string) (Entry, error) {
	e := Entry{Name: src.name(), Source: src.String(), At: s.Now().UTC().Truncate(time.Second)}
	if !validName(e.Name) {
		return e, fmt.Errorf("%q can not be the name of a package", e.Name)
	}
	if src.Kind == FromFolder {
		p := resource.Package{Name: e.Name, Dir: src.Where}
		if info, err := os.Stat(src.Where); err != nil || !info.IsDir() {
			return e, errors.Join(err, fmt.Errorf("%s is not a folder", src.Where))
		}
		return e, manifest(&p)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return e, err
	}
	tmp, err := os.MkdirTemp(s.Dir, ".fetch-")
	if err != nil {
		return e, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // what stays does no harm
	files := filepath.Join(tmp, "files")
	if src.Kind == FromGit {
		e.Version, err = s.git(ctx, src.at(version), tmp, files)
	} else {
		e.Version, err = s.npm(ctx, src.at(version), tmp, files)
	}
	if err != nil {
		return e, err
	}
	p := resource.Package{Name: e.Name, Dir: files}
	if err := manifest(&p); err != nil {
		return e, err
	}
	if e.Integrity, err = Digest(files); err != nil {
		return e, err
	}
	return e, s.place(files, s.Folder(e))
}

// place moves fetched files to where they belong, in place of what is there.
func (s Store) place(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return durable.Rename(from, to)
}

// git fetches one commit, without its history, and takes its files out of it. No
// hook and no submodule has a part in that.
func (s Store) git(ctx context.Context, src Source, tmp, files string) (commit string, err error) {
	repo, tar := filepath.Join(tmp, "repo"), filepath.Join(tmp, "files.tar")
	ref := src.Ref
	if ref == "" {
		ref = "HEAD"
	}
	var out string
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--template=", repo},
		{"fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", src.Where, ref},
		{"rev-parse", "--verify", "--end-of-options", "FETCH_HEAD^{commit}"},
		{"archive", "--format=tar", "--output=" + tar, "FETCH_HEAD"},
	} {
		argv := []string{"git", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"}
		if args[0] != "init" {
			argv = append(argv, "--git-dir="+repo)
		}
		if out, err = s.run(ctx, tmp, append(argv, args...)); err != nil {
			return "", err
		}
		if args[0] == "rev-parse" {
			commit = strings.TrimSpace(out)
		}
	}
	return commit, extract(tar, files, false)
}

// npm fetches the published archive. npm runs no script for a package of a
// registry, and is told so beside; its folder is ours, so that no project's .npmrc
// counts.
func (s Store) npm(ctx context.Context, src Source, tmp, files string) (version string, err error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", errors.New("npm is not installed here; use git: or a folder")
	}
	spec := src.Where
	if src.Ref != "" {
		spec += "@" + src.Ref
	}
	out, err := s.run(ctx, tmp, []string{"npm", "pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", tmp, "--", spec})
	if err != nil {
		return "", err
	}
	packed, err := parsePacked(out)
	if err != nil {
		return "", fmt.Errorf("npm pack %s: %w", spec, err)
	}
	archives, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return "", fmt.Errorf("npm pack %s: want one archive, got %d", spec, len(archives))
	}
	text, err := os.ReadFile(archives[0])
	if err != nil {
		return "", err
	}
	if err := checkArchive(text, packed.Integrity); err != nil {
		return "", fmt.Errorf("npm pack %s: %w", spec, err)
	}
	return packed.Version, extract(archives[0], files, true)
}

// checkArchive compares an archive with what the registry says of it.
func checkArchive(text []byte, integrity string) error {
	sum := sha512.Sum512(text)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != integrity {
		return fmt.Errorf("the archive is %s, the registry says %s", got, integrity)
	}
	return nil
}

type packed struct{ Name, Version, Integrity string }

// parsePacked reads what `npm pack --json` prints: a list of one, or in newer
// versions an object with one.
func parsePacked(out string) (packed, error) {
	var list []packed
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		var byName map[string]packed
		if json.Unmarshal([]byte(out), &byName) != nil {
			return packed{}, fmt.Errorf("reading its answer: %w", err)
		}
		for _, p := range byName {
			list = append(list, p)
		}
	}
	if len(list) != 1 || list[0].Version == "" || list[0].Integrity == "" {
		return packed{}, errors.New("it named no version or no integrity")
	}
	return list[0], nil
}

func (s Store) run(ctx context.Context, dir string, argv []string) (string, error) {
	env := slices.DeleteFunc(slices.Clone(s.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE"}, name)
	})
	env = append(env, "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https:ssh:git:file")
	res, err := proc.Run(ctx, proc.Spec{Argv: argv, Dir: dir, Env: env, Timeout: patience, Keep: maxAnswer, Reap: true})
	return string(res.Stdout), err
}

// manifest tells what of a package's folder is loaded: what package.json says under
// "muntin" or "pi", else the folders skills, prompts and themes.
func manifest(p *resource.Package) error {
	var file struct {
		Muntin, Pi *struct{ Skills, Prompts, Themes []string }
	}
	text, err := os.ReadFile(filepath.Join(p.Dir, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading package.json of package %s: %w", p.Name, err)
	}
	said := file.Muntin
	if said == nil {
		said = file.Pi
	}
	if said != nil {
		p.Skills, p.Prompts, p.Themes = said.Skills, said.Prompts, said.Themes
	} else {
		p.Skills, p.Prompts, p.Themes = there(p.Dir, "skills"), there(p.Dir, "prompts"), there(p.Dir, "themes")
	}
	all := slices.Concat(p.Skills, p.Prompts, p.Themes)
	for _, path := range all {
		if !filepath.IsLocal(path) || strings.ContainsAny(path, "*?[!") {
			return fmt.Errorf("package %s: package.json: %q is not a folder in the package; patterns are not supported", p.Name, path)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("package %s brings no skills, prompts or themes", p.Name)
	}
	return nil
}

func there(dir, name string) []string {
	if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
		return nil
	}
	return []string{name}
}
