package extension

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// An Extension is one that was found.
type Extension struct {
	Manifest
	Dir    string // where its manifest is; absolute
	Source string // where it comes from, for people: user, project, command line
}

// A Place is where extensions are looked for.
type Place struct {
	Dir    string
	Source string
	One    bool // Dir is an extension itself, else each folder in it may be one
}

// Load reads the manifests in places; nothing is started. Problems tell what was
// left out, and why. The order is that of the places, and in a place that of the
// names; it is the order in which gates are asked. Of two extensions with one name
// that of a place with One counts, else the first: one that came with a repository
// cannot take the place of one of the user's.
func Load(places ...Place) (all []Extension, problems []string) {
	seen := map[string]int{}
	for _, p := range places {
		dirs, err := p.dirs()
		if err != nil {
			problems = append(problems, err.Error())
		}
		for _, dir := range dirs {
			m, err := LoadManifest(dir)
			if err != nil {
				problems = append(problems, err.Error())
				continue
			}
			e := Extension{Manifest: m, Dir: dir, Source: p.Source}
			i, taken := seen[m.Name]
			switch {
			case !taken:
				seen[m.Name] = len(all)
				all = append(all, e)
			case p.One:
				problems = append(problems, fmt.Sprintf("extension %s of %s is left out: %s counts", m.Name, all[i].Dir, dir))
				all[i] = e
			default:
				problems = append(problems, fmt.Sprintf("extension %s of %s is left out: %s counts", m.Name, dir, all[i].Dir))
			}
		}
	}
	return all, problems
}

// dirs are the folders of a place that hold a manifest.
func (p Place) dirs() ([]string, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("looking for extensions: %w", err)
	}
	if p.One {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for extensions: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		d := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(d, ManifestName)); err == nil {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	return dirs, nil
}
