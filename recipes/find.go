package recipes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/nearest"
	"muntin/recipes/builtin"
)

// ErrNotFound says that there is no recipe of the name asked for.
var ErrNotFound = errors.New("no such recipe")

// Trust tells whether the user has said that what lies in a folder may be used.
type Trust func(dir string) (bool, error)

// An Info is a line in the list of recipes.
type Info struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Load reads the recipe in the file at path. Mistakes in it are an *Error; a
// missing file matches ErrNotFound.
func Load(path string) (*Recipe, error) {
	src, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, src)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist", ErrNotFound, path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading recipe: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading recipe: %w", err)
	}
	return src, nil
}

// Find reads a built-in recipe by its name, or a file when name has a slash in
// it or ends in .yaml or .yml; the path is then relative to the working folder.
// A recipe of the repository at repoRoot (empty: none) is not found by its bare
// name, since nobody has said yet that it can be trusted; the error says how
// to name it. The error matches ErrNotFound if there is none.
func Find(name, repoRoot string) (*Recipe, error) {
	if strings.Contains(name, "/") || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return Load(name)
	}
	src, err := builtin.Recipe(name)
	if err == nil {
		return Parse(name, src)
	}
	for _, ext := range []string{".yaml", ".yml"} {
		path := filepath.Join(repoRoot, ".muntin", "recipes", name+ext)
		if _, err := os.Stat(path); repoRoot != "" && err == nil {
			return nil, fmt.Errorf("%w: %s is not built in; to use the repository's own, look at it and give its path: %s", ErrNotFound, name, path)
		}
	}
	names := builtin.Names()
	if near := nearest.Of(name, names); near != "" {
		return nil, fmt.Errorf("%w: %q; did you mean %s?", ErrNotFound, name, near)
	}
	return nil, fmt.Errorf("%w: %q; built in are %s; a file is named by its path", ErrNotFound, name, strings.Join(names, ", "))
}

// Builtins lists the built-in recipes by name. A test makes sure that they parse.
func Builtins() []Info {
	var out []Info
	for _, name := range builtin.Names() {
		info := Info{Name: name}
		if r, err := Find(name, ""); err == nil {
			info.Description = r.Description
		}
		out = append(out, info)
	}
	return out
}
