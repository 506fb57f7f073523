// Package examples holds the extensions that ship with muntin, to be copied and
// changed, and the one-file libraries that they use: one for each of Go, Python,
// TypeScript and the shell.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"muntin/agent/extension"
)

//go:embed all:_files
var files embed.FS

// An Example is one that ships.
type Example struct {
	Name        string `json:"name"`
	Language    string `json:"language"`
	Description string `json:"description"`
}

// a library is the file by which a language speaks the protocol.
type library struct{ main, language, dir, file string }

func libraries() []library {
	return []library{
		{"main.go", "Go", "go", "muntin.go"},
		{"main.py", "Python", "python", "muntin.py"},
		{"main.ts", "TypeScript", "typescript", "muntin.ts"},
		{"main.sh", "shell", "sh", "muntin.sh"},
	}
}

// libraryOf is the library of the language that an example is written in.
func libraryOf(example string) (library, error) {
	for _, l := range libraries() {
		if _, err := fs.Stat(files, path.Join("_files", example, l.main)); err == nil {
			return l, nil
		}
	}
	return library{}, fmt.Errorf("example %s: %w", example, fs.ErrNotExist)
}

// List gives all examples, by name.
func List() ([]Example, error) {
	dirs, err := files.ReadDir("_files")
	if err != nil {
		return nil, err
	}
	var all []Example
	for _, d := range dirs {
		if d.Name() == "sdk" {
			continue
		}
		l, err := libraryOf(d.Name())
		if err != nil {
			return nil, err
		}
		data, err := files.ReadFile(path.Join("_files", d.Name(), extension.ManifestName))
		if err != nil {
			return nil, err
		}
		m, err := extension.ParseManifest(data)
		if err != nil {
			return nil, fmt.Errorf("example %s: %w", d.Name(), err)
		}
		all = append(all, Example{Name: d.Name(), Language: l.language, Description: m.Description})
	}
	return all, nil
}

// Write makes an extension of an example: a folder with its files, the library of its
// language, and its new name. The folder must not exist. The error matches
// fs.ErrNotExist when there is no such example.
func Write(dir, name, from string) error {
	if strings.Contains(from, "/") {
		return fmt.Errorf("example %s: %w", from, fs.ErrNotExist)
	}
	l, err := libraryOf(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("making the extension %s: %w", name, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("making the extension %s: %w", name, err)
	}
	copies := map[string]string{
		extension.ManifestName: path.Join("_files", from, extension.ManifestName),
		l.main:                 path.Join("_files", from, l.main),
		l.file:                 path.Join("_files", "sdk", l.dir, l.file),
	}
	for file, source := range copies {
		data, err := files.ReadFile(source)
		if err != nil {
			return err
		}
		if file == extension.ManifestName {
			data = []byte(strings.Replace(string(data), "name: "+from+"\n", "name: "+name+"\n", 1))
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return fmt.Errorf("making the extension %s: %w", name, err)
		}
	}
	if l.language != "Go" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+name+"\n\ngo 1.24\n"), 0o644); err != nil {
		return fmt.Errorf("making the extension %s: %w", name, err)
	}
	return nil
}
