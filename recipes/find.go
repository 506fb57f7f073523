package recipes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/internal/nearest"
	"muntin/recipes/builtin"
	"muntin/recipes/internal/tree"
)

// ErrNotFound says that there is no recipe of the name asked for.
var ErrNotFound = errors.New("no such recipe")

// Trust tells whether the user has said that what lies in a folder may be used.
// It is asked about the top of the repository.
type Trust func(dir string) (bool, error)

// An UntrustedError says that a recipe is the repository's own, which nobody has
// trusted yet.
type UntrustedError struct {
	Name string
	Path string // of the recipe
	Dir  string // what Trust was asked about
}

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the recipe %s is this repository's own, and the repository is not trusted: %s", e.Name, e.Path)
}

// A Source says where a recipe comes from.
type Source string

// The sources, in the order in which names are looked up.
const (
	SourceRepo    Source = "repository"
	SourceUser    Source = "user"
	SourceBuiltin Source = "built-in"
	SourceFile    Source = "file" // named by its path
)

// An Origin is a recipe's text and where it comes from.
type Origin struct {
	Name   string // what it was found by
	Source Source
	Path   string // of its file; empty for a built-in one
	Text   []byte
}

// label is what errors call the recipe.
func (o Origin) label() string {
	if o.Path == "" {
		return o.Name
	}
	return o.Path
}

// Find reads a recipe and those it extends. name is a path when it has a slash in
// it or ends in .yaml or .yml; it is then relative to the working folder. Else it
// is looked up in the repository's .muntin/recipes, in the user's folder and among
// the built-in ones; the first that has it counts. Mistakes in it are an *Error,
// ErrNotFound says that there is none, and *UntrustedError that it is the
// repository's own, or builds on one, and o.Trust does not take it.
func Find(name string, o Options) (*Recipe, error) {
	origin, err := Locate(name, o)
	if err != nil {
		return nil, err
	}
	l := &loader{Options: o, problems: &tree.Problems{}}
	root, err := l.load(origin)
	if root == nil || err != nil {
		return nil, errors.Join(l.problems.Err(), err)
	}
	return decode(root, l.problems, o)
}

// Check finds the mistakes of a recipe as Find does, except that its parameters
// need no values.
func Check(name string, o Options) error {
	o.lenient = true
	_, err := Find(name, o)
	return err
}

// Params are the parameters of a recipe as the file has them, without values.
// They can be told although required ones have no value yet.
func Params(name string, o Options) ([]Param, error) {
	r, err := headOf(name, o)
	if err != nil {
		return nil, err
	}
	return r.Params, nil
}

// headOf reads only what a recipe says about itself.
func headOf(name string, o Options) (*Recipe, error) {
	origin, err := Locate(name, o)
	if err != nil {
		return nil, err
	}
	l := &loader{Options: o, problems: &tree.Problems{}}
	root, err := l.load(origin)
	if root == nil || err != nil {
		return nil, errors.Join(l.problems.Err(), err)
	}
	short := &tree.Node{Kind: tree.Map, At: root.At}
	for _, pair := range root.Pairs {
		if slices.Contains([]string{"name", "params", "description"}, pair.Key) {
			short.Pairs = append(short.Pairs, pair)
		}
	}
	d := newDecoder(l.problems)
	d.lenient = true
	r := d.recipe(short, Options{})
	return r, d.Err()
}

// Locate finds the text of a recipe as Find does.
func Locate(name string, o Options) (Origin, error) {
	if isPath(name) {
		text, err := ReadFile(name)
		return Origin{Name: name, Source: SourceFile, Path: name, Text: text}, err
	}
	return o.byName(name, SourceRepo)
}

func isPath(name string) bool {
	return strings.Contains(name, "/") || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// RepoDir is the folder of a repository's own recipes.
func RepoDir(root string) string { return filepath.Join(root, ".muntin", "recipes") }

// folder is the folder of a source; empty if it has none.
func (o Options) folder(s Source) string {
	switch {
	case s == SourceUser:
		return o.User
	case s == SourceRepo && o.Root != "":
		return RepoDir(o.Root)
	}
	return ""
}

// byName looks a name up, beginning with a source.
func (o Options) byName(name string, from Source) (Origin, error) {
	order := []Source{SourceRepo, SourceUser, SourceBuiltin}
	for _, s := range order[slices.Index(order, from):] {
		origin, err := o.from(s, name)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNotFound) {
			return origin, err
		}
	}
	var names []string
	for _, s := range order {
		names = append(names, o.names(s)...)
	}
	if near := nearest.Of(name, names); near != "" {
		return Origin{}, fmt.Errorf("%w: %s; did you mean %s?", ErrNotFound, quoted(name), near)
	}
	slices.Sort(names)
	return Origin{}, fmt.Errorf("%w: %s; there are %s; a file is named by its path", ErrNotFound, quoted(name), strings.Join(slices.Compact(names), ", "))
}

// from reads the recipe of a name from one source.
func (o Options) from(s Source, name string) (Origin, error) {
	if s == SourceBuiltin {
		text, err := builtin.Recipe(name)
		return Origin{Name: name, Source: s, Text: text}, err
	}
	dir := o.folder(s)
	if dir == "" {
		return Origin{}, fs.ErrNotExist
	}
	for _, ext := range []string{".yaml", ".yml"} {
		path := filepath.Join(dir, name+ext)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if s == SourceRepo {
			if err := o.trusted(name, path); err != nil {
				return Origin{}, err
			}
		}
		text, err := ReadFile(path)
		return Origin{Name: name, Source: s, Path: path, Text: text}, err
	}
	return Origin{}, fs.ErrNotExist
}

// trusted is an *UntrustedError unless the repository is trusted.
func (o Options) trusted(name, path string) error {
	ok := false
	if o.Trust != nil {
		var err error
		if ok, err = o.Trust(o.Root); err != nil {
			return fmt.Errorf("looking up whether %s is trusted: %w", o.Root, err)
		}
	}
	if !ok {
		return &UntrustedError{Name: name, Path: path, Dir: o.Root}
	}
	return nil
}

// names are the recipes of a source. A folder that cannot be read has none.
func (o Options) names(s Source) []string {
	if s == SourceBuiltin {
		return builtin.Names()
	}
	dir := o.folder(s)
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".yaml")
		if !ok {
			name, ok = strings.CutSuffix(e.Name(), ".yml")
		}
		if ok && name != "" {
			out = append(out, name)
		}
	}
	return out
}

// An Info is a line in the list of recipes.
type Info struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Source      Source   `json:"source"`
	Path        string   `json:"path,omitempty"`
	Params      []string `json:"params,omitempty"`
	Trusted     bool     `json:"trusted"`
	Problem     string   `json:"problem,omitempty"` // the first mistake of one that cannot be used
}

// List tells of all recipes that Find finds by a name, sorted. Nothing of a
// repository that is not trusted is read; only the names are listed.
func List(o Options) []Info {
	all := map[string]Info{}
	for _, s := range []Source{SourceBuiltin, SourceUser, SourceRepo} {
		for _, name := range o.names(s) {
			all[name] = o.info(s, name)
		}
	}
	var out []Info
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

func (o Options) info(s Source, name string) Info {
	info := Info{Name: name, Source: s, Trusted: true}
	origin, err := o.from(s, name)
	info.Path = origin.Path
	var untrusted *UntrustedError
	if errors.As(err, &untrusted) {
		info.Trusted, info.Path = false, untrusted.Path
		return info
	}
	if err == nil {
		var r *Recipe
		if r, err = headOf(name, o); err == nil {
			info.Description = strings.TrimSpace(r.Description)
			for i := range r.Params {
				info.Params = append(info.Params, r.Params[i].Name)
			}
		}
	}
	if err != nil {
		info.Problem, _, _ = strings.Cut(err.Error(), "\n")
	}
	return info
}

// Load reads a recipe that stands alone, such as a run's run.yaml, from the file
// at path. Mistakes in it are an *Error; a missing file matches ErrNotFound.
func Load(path string) (*Recipe, error) {
	src, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, src)
}

// ReadFile reads a file up to one byte more than MaxSize. A missing one matches
// ErrNotFound.
func ReadFile(path string) ([]byte, error) {
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
