// Package custom reads the adapters that a user has written: one YAML file
// each, named as the program that it is for.
package custom

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muntin/agent/adapter"
	"muntin/internal/id"
)

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 256 << 10

// ErrNotFound says that no adapter has that name.
var ErrNotFound = errors.New("no such adapter")

// Dir is the folder of the user's adapters: adapters in the folder of muntin's
// settings (getenv is os.Getenv).
func Dir(getenv func(string) string) string {
	base := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(base, "muntin", "adapters")
}

// For is adapter.For, with the user's adapters for the commands that nothing
// built in is for.
func For(dir string, argv []string) (adapter.Adapter, error) {
	a := adapter.For(argv)
	program := adapter.Program(argv)
	if a.Name != adapter.Generic || program == "" {
		return a, nil
	}
	own, err := Load(dir, program)
	if errors.Is(err, ErrNotFound) {
		return a, nil
	}
	return own, err
}

// Find is adapter.Lookup, with the user's adapters behind what is built in.
func Find(dir, name string) (adapter.Adapter, error) {
	if a, ok := adapter.Lookup(name); ok {
		return a, nil
	}
	return Load(dir, name)
}

// Load reads the user's adapter of that name. The error matches ErrNotFound if
// there is none, and is an *Error for what is wrong with its file.
func Load(dir, name string) (adapter.Adapter, error) {
	if id.CheckName("adapter", name) != nil {
		return adapter.Adapter{}, fmt.Errorf("%w: %s", ErrNotFound, name) // no name of a file either
	}
	file := filepath.Join(dir, name+".yaml")
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return adapter.Adapter{}, fmt.Errorf("%w: %s is not built in, and %s does not exist", ErrNotFound, name, file)
	}
	if err != nil {
		return adapter.Adapter{}, fmt.Errorf("reading adapter: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return adapter.Adapter{}, fmt.Errorf("reading adapter: %w", err)
	}
	return Parse(name, file, src)
}

// Names lists the user's adapters.
func Names(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.yaml")) // dir is a path, no pattern of the user's; none if it is odd
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(path.Base(f), ".yaml")
		if id.CheckName("adapter", name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
