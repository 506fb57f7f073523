package resource

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/agent/resource/internal/doc"
	"muntin/internal/term"
)

const maxTheme = 64 << 10

// Names of the files that change the system prompt.
const (
	systemFile = "SYSTEM.md"
	appendFile = "APPEND_SYSTEM.md"
)

// A Theme is a file with colours. Only its name is known before Read.
type Theme struct {
	Name string
	Path string
}

// Read reads the theme's file and gives the colours by the names of styles.
func (t Theme) Read() (map[string]string, error) {
	text, err := readHead(t.Path, maxTheme)
	if err != nil {
		return nil, fmt.Errorf("reading the theme %s: %w", t.Path, err)
	}
	colours, err := ParseTheme(text)
	if err != nil {
		return nil, fmt.Errorf("reading the theme %s: %w", t.Path, err)
	}
	return colours, nil
}

// ParseTheme reads a theme: YAML with a map "colors" of the names of styles and
// their colours, and a map "vars" of names that colours can be given by. See
// term.Theme.With for what a style and a colour can be.
func ParseTheme(text string) (map[string]string, error) {
	root, err := doc.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	vars, colours := map[string]string{}, map[string]string{}
	for _, e := range root.Map {
		into := colours
		switch e.Key {
		case "colors":
		case "vars":
			into = vars
		default:
			return nil, fmt.Errorf("%d:%d: %q: want colors and vars only", e.Line, e.Col, e.Key)
		}
		for _, c := range e.Value.Map {
			if c.Value.Kind != doc.Text && c.Value.Kind != doc.Number {
				return nil, fmt.Errorf("%d:%d: %s: want a colour, got %s", c.Value.Line, c.Value.Col, c.Key, c.Value.Kind)
			}
			into[c.Key] = c.Value.Text
		}
	}
	for style, colour := range colours {
		if v, ok := vars[colour]; ok {
			colours[style] = v
		}
	}
	_, err = term.DefaultTheme().With(colours)
	return colours, err
}

// themes finds the YAML files in a folder.
func (l *loader) themes(root root) {
	entries, err := os.ReadDir(root.path)
	if err != nil {
		return // of a folder that somebody named it is told before
	}
	for _, e := range entries {
		name, ext := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
		if ext != ".yaml" && ext != ".yml" || e.IsDir() || name == "" {
			continue
		}
		item := Item{Kind: KindTheme, Name: name, Path: filepath.Join(root.path, e.Name()), Source: root.source, Package: root.pack}
		if l.first(item) {
			l.set.Themes = append(l.set.Themes, Theme{Name: name, Path: item.Path})
		}
	}
}

// Theme is the theme of a name.
func (s *Set) Theme(name string) (Theme, bool) {
	i := slices.IndexFunc(s.Themes, func(t Theme) bool { return t.Name == name })
	if i < 0 {
		return Theme{}, false
	}
	return s.Themes[i], true
}

// system reads a file for the system prompt.
func (l *loader) system(r root) {
	item := Item{Kind: KindSystem, Name: filepath.Base(r.path), Path: r.path, Source: r.source}
	text, err := readHead(r.path, MaxFile)
	if err == nil && len(text) > MaxFile {
		err = fmt.Errorf("it is larger than %d KiB", MaxFile>>10)
	}
	if err != nil {
		l.invalid(item, err)
		return
	}
	if !l.first(item) {
		return
	}
	file := File{Path: r.path, Text: strings.ToValidUTF8(text, "\uFFFD")}
	if item.Name == systemFile {
		l.set.System = file
	} else {
		l.set.Append = file
	}
}
