// Package builtin holds the recipes that ship with muntin, and the project and
// the scripted conversation of its demo. It only hands out bytes.
package builtin

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.yaml
var recipes embed.FS

//go:embed all:demo
var demo embed.FS

// Names are the names of the built-in recipes, sorted.
func Names() []string {
	entries, err := recipes.ReadDir(".")
	if err != nil {
		panic("the embedded recipes cannot be read: " + err.Error())
	}
	var out []string
	for _, e := range entries { // sorted by ReadDir
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return out
}

// Recipe is the YAML of a built-in recipe. The error matches fs.ErrNotExist
// if there is none of this name.
func Recipe(name string) ([]byte, error) {
	src, err := recipes.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("built-in recipe %q: %w", name, fs.ErrNotExist)
	}
	return src, nil
}

// DemoProject is the tree of files that the demo's repository starts with.
// Embedded files have no modes: whoever writes them decides what is executable.
func DemoProject() fs.FS {
	sub, err := fs.Sub(demo, "demo/project")
	if err != nil {
		panic("the embedded demo cannot be read: " + err.Error())
	}
	return sub
}

// Script is the conversation that the model scripted/<name> replays. The error
// matches fs.ErrNotExist if there is none of this name.
func Script(name string) ([]byte, error) {
	if name != "demo" {
		return nil, fmt.Errorf("built-in script %q: %w", name, fs.ErrNotExist)
	}
	src, err := demo.ReadFile("demo/script.yaml")
	if err != nil {
		return nil, fmt.Errorf("built-in script %q: %w", name, err)
	}
	return src, nil
}
