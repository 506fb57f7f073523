// Package settings is what a person, and a project that is trusted, has said
// once for all: YAML files with known keys. A file is read with positions for
// what is wrong in it, and changed so that only the key that is meant changes.
package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"muntin/agent/resource/internal/doc"
	"muntin/internal/nearest"
)

// A Scope says whose a file is.
type Scope string

// The scopes, the weaker first.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// A Layer is one file.
type Layer struct {
	Scope Scope
	Path  string
	Data  []byte
}

// A Problem is something in a file that is left out.
type Problem struct {
	Path      string
	Line, Col int
	Text      string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Col, p.Text) }

// An Origin tells where a value stands.
type Origin struct {
	Scope Scope  `json:"scope"`
	Path  string `json:"path"`
	Line  int    `json:"line"`
}

// Settings are the values that hold, and where each comes from; a key that has
// its default is not in From.
type Settings struct {
	Values
	From   map[string][]Origin // by name; several of a list that is joined
	joined map[string]map[Scope][]string
}

// Of gives what one scope says for a list that is joined.
func (s Settings) Of(name string, scope Scope) []string { return s.joined[name][scope] }

// Read reads a file as a layer. One that does not exist has no Data. A file
// that is not regular is an error.
func Read(scope Scope, path string) (Layer, error) {
	l := Layer{Scope: scope, Path: path}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("reading settings: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return l, fmt.Errorf("reading settings: %w", err)
	}
	if !info.Mode().IsRegular() {
		return l, fmt.Errorf("reading settings: %s is not a regular file", path)
	}
	if l.Data, err = io.ReadAll(io.LimitReader(f, doc.MaxSize+1)); err != nil {
		return l, fmt.Errorf("reading settings: %w", err)
	}
	return l, nil
}

// Resolve makes one of all layers, of which the last has the last word, key by
// key. What is wrong is left out and told; the rest counts.
func Resolve(layers ...Layer) (Settings, []Problem) {
	r := resolver{keys: Keys(), out: Settings{From: map[string][]Origin{}, joined: map[string]map[Scope][]string{}}}
	for _, k := range r.keys {
		if k.Default == "" {
			continue
		}
		kind := doc.Text
		switch k.Type {
		case "number":
			kind = doc.Number
		case "true or false":
			kind = doc.Bool
		}
		if err := k.set(&r.out.Values, doc.Value{Kind: kind, Text: k.Default}); err != nil {
			panic(fmt.Sprintf("the default of %s: %v", k.Name, err))
		}
	}
	for _, l := range layers {
		if len(l.Data) == 0 {
			continue
		}
		r.layer = l
		root, err := doc.Parse(l.Data)
		var e *doc.Error
		if errors.As(err, &e) {
			r.add(e.Line, e.Col, "%s", e.Text)
		}
		r.walk("", root)
	}
	return r.out, r.found
}

type resolver struct {
	keys  []Key
	layer Layer
	out   Settings
	found []Problem
}

func (r *resolver) add(line, col int, format string, args ...any) {
	r.found = append(r.found, Problem{Path: r.layer.Path, Line: line, Col: col, Text: fmt.Sprintf(format, args...)})
}

func (r *resolver) walk(prefix string, v doc.Value) {
	for _, e := range v.Map {
		name := prefix + e.Key
		i := slices.IndexFunc(r.keys, func(k Key) bool { return k.Name == name })
		switch {
		case i >= 0:
			r.take(r.keys[i], e)
		case !isSection(name):
			r.add(e.Line, e.Col, "%s", unknown(name))
		case e.Value.Kind == doc.Map:
			r.walk(name+".", e.Value)
		case e.Value.Kind != doc.Null:
			r.add(e.Line, e.Col, "%s: want keys and values, got %s", name, e.Value.Kind)
		}
	}
}

func (r *resolver) take(k Key, e doc.Entry) {
	if k.User && r.layer.Scope != User {
		r.add(e.Line, e.Col, "%s is each user's own and does not count here", k.Name)
		return
	}
	if e.Value.Kind == doc.Null {
		return // a key without a value says nothing
	}
	if err := k.set(&r.out.Values, e.Value); err != nil {
		r.add(e.Value.Line, e.Value.Col, "%s: %s", k.Name, err)
		return
	}
	from := Origin{Scope: r.layer.Scope, Path: r.layer.Path, Line: e.Line}
	if k.Joined {
		var own Values
		if err := k.set(&own, e.Value); err == nil {
			list, _ := k.into(&own).(*[]string)
			if r.out.joined[k.Name] == nil {
				r.out.joined[k.Name] = map[Scope][]string{}
			}
			r.out.joined[k.Name][from.Scope] = *list
		}
		r.out.From[k.Name] = append(r.out.From[k.Name], from)
	} else {
		r.out.From[k.Name] = []Origin{from}
	}
}

// set puts a value in its place.
func (k Key) set(to *Values, v doc.Value) error {
	switch p := k.into(to).(type) {
	case *string:
		if v.Kind != doc.Text && v.Kind != doc.Number { // an id may look like a number
			return fmt.Errorf("want text, got %s", v.Kind)
		}
		if err := k.valid(v.Text); err != nil {
			return err
		}
		*p = v.Text
	case *bool:
		if v.Kind != doc.Bool {
			return fmt.Errorf("want true or false, got %s", v.Kind)
		}
		*p = v.Text == "true"
	case *int:
		n, err := strconv.Atoi(v.Text)
		if v.Kind != doc.Number || err != nil || n < 0 || n > 1<<30 {
			return fmt.Errorf("want a whole number that is not negative, got %s %s", v.Kind, v.Text)
		}
		*p = n
	case *[]string:
		if v.Kind != doc.List {
			return fmt.Errorf("want a list, such as [one, two], got %s", v.Kind)
		}
		list := []string{}
		for _, item := range v.List {
			if item.Kind != doc.Text && item.Kind != doc.Number {
				return fmt.Errorf("want texts in the list, got %s", item.Kind)
			}
			list = append(list, item.Text)
		}
		if k.Joined {
			list = append(*p, list...)
		}
		*p = list
	}
	return nil
}

// Get is the value of a key as it would be written in a file; ok is false for
// one that is not known.
func (s Settings) Get(name string) (value any, ok bool) {
	k, ok := find(name)
	if !ok {
		return nil, false
	}
	switch p := k.into(&s.Values).(type) {
	case *string:
		return *p, true
	case *bool:
		return *p, true
	case *int:
		return *p, true
	case *[]string:
		return *p, true
	}
	return nil, false
}

// Unknown says that there is no key of a name, and which was meant perhaps.
func Unknown(name string) error { return errors.New(unknown(name)) }

func unknown(name string) string {
	var known []string
	for _, k := range Keys() {
		known = append(known, k.Name)
	}
	text := fmt.Sprintf("there is no setting %q", name)
	if near := nearest.Of(snake(name), known); near != "" {
		return text + "; did you mean " + near + "?"
	}
	return text
}

// snake writes a name of another program's, as in contextFiles, in our way.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return b.String()
}
