package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"muntin/agent/llm"
	"muntin/internal/id"
)

// ManifestName is the file that makes a folder an extension.
const ManifestName = "extension.yaml"

// Default deadlines, where a manifest names none.
const (
	DefaultStart   = 10 * time.Second // from the start to ready
	DefaultGate    = 5 * time.Second
	DefaultTool    = 10 * time.Minute
	DefaultCommand = time.Minute
)

// A Manifest says what an extension registers. It is read from extension.yaml.
type Manifest struct {
	Protocol    int         `json:"protocol" jsonschema:"1"`
	Name        string      `json:"name" jsonschema:"lower-case letters, digits and hyphens"`
	Version     string      `json:"version,omitempty"`
	Description string      `json:"description,omitempty"`
	Command     []string    `json:"command" jsonschema:"the program and its arguments; a program or file with a slash, as ./main.py, is in the extension's folder"`
	Start       Duration    `json:"start,omitempty" jsonschema:"how long it may take to be ready, such as 30s"`
	Gates       []Gate      `json:"gates,omitempty"`
	Events      []string    `json:"events,omitempty" jsonschema:"names of events that the extension sees"`
	Tools       []ToolDef   `json:"tools,omitempty"`
	Commands    []Command   `json:"commands,omitempty"`
	Flags       []Flag      `json:"flags,omitempty"`
	Providers   []Provider  `json:"providers,omitempty"`
	Permissions *Permission `json:"permissions,omitempty" jsonschema:"what the program may do; without it, all that the user may"`
}

// A Gate is a place where the extension decides or changes something.
type Gate struct {
	On       string   `json:"on" jsonschema:"input, before_start, context, request, tool_call, tool_result, turn, compaction, session_switch or user_bash"`
	Tools    []string `json:"tools,omitempty" jsonschema:"of tool_call and tool_result: names or patterns with *; none: all"`
	Deadline Duration `json:"deadline,omitempty" jsonschema:"how long it may take, without the time in which the user is asked; default 5s"`
	Open     bool     `json:"open,omitempty" jsonschema:"when the extension fails, go on as if it had agreed"`
}

// A ToolDef is a tool that the extension runs. One with the name of a built-in
// tool takes its place.
type ToolDef struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters,omitempty" jsonschema:"a JSON Schema of type object; none: no parameters"`
	Sequential  bool           `json:"sequential,omitempty" jsonschema:"it never runs beside another tool"`
	Deadline    Duration       `json:"deadline,omitempty" jsonschema:"default 10m"`
}

// A Command is one that the user calls as /name.
type Command struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Arguments   string   `json:"arguments,omitempty" jsonschema:"a hint, such as <file>"`
	Deadline    Duration `json:"deadline,omitempty" jsonschema:"default 1m"`
}

// A Flag is a setting, given by --extension-flag EXTENSION.NAME=VALUE.
type Flag struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty" jsonschema:"bool or string (the default)"`
	Default     string `json:"default,omitempty"`
	Description string `json:"description,omitempty"`
}

// A Provider is a provider of models that the extension serves.
type Provider struct {
	ID     string  `json:"id"`
	Models []Model `json:"models"`
}

// A Model is one model of a provider. Numbers are tokens.
type Model struct {
	ID            string   `json:"id"`
	Name          string   `json:"name,omitempty"`
	ContextWindow int      `json:"contextWindow,omitempty"`
	MaxTokens     int      `json:"maxTokens,omitempty"`
	Reasoning     bool     `json:"reasoning,omitempty"`
	Input         []string `json:"input,omitempty" jsonschema:"text, image"`
}

// A Permission is what a program may do. Its own folder and what programs of the
// system need can always be read, its state folder and a temporary folder always be
// written.
type Permission struct {
	Env     []string `json:"env,omitempty" jsonschema:"names of environment variables beside PATH, HOME, LANG and TZ"`
	Network bool     `json:"network,omitempty"`
	Read    []string `json:"read,omitempty" jsonschema:"folders; . is the working folder, ~/x is under the home folder, / is everything"`
	Write   []string `json:"write,omitempty" jsonschema:"folders, which can be read too"`
}

// A Duration is a time.Duration that is written as a text such as "30s".
type Duration time.Duration

// UnmarshalJSON reads a text such as "1m30s".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration is a text such as 30s, not %s", data)
	}
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return fmt.Errorf("%q is no duration such as 30s", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

func (d Duration) or(other time.Duration) time.Duration {
	if d > 0 {
		return time.Duration(d)
	}
	return other
}

// ParseManifest reads the text of a manifest. The error names what is wrong in it.
func ParseManifest(data []byte) (Manifest, error) {
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(asJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, err
	}
	return m, m.check()
}

// LoadManifest reads the manifest in a folder.
func LoadManifest(dir string) (Manifest, error) {
	file := filepath.Join(dir, ManifestName)
	data, err := os.ReadFile(file)
	if err != nil {
		return Manifest{}, fmt.Errorf("reading an extension: %w", err)
	}
	m, err := ParseManifest(data)
	if err != nil {
		return m, fmt.Errorf("reading %s: %w", file, err)
	}
	return m, nil
}

func (m Manifest) check() error {
	var errs []error
	if m.Protocol != Protocol {
		errs = append(errs, fmt.Errorf("protocol %d: this muntin speaks %d", m.Protocol, Protocol))
	}
	errs = append(errs, id.CheckName("an extension", m.Name))
	if len(m.Command) == 0 || m.Command[0] == "" {
		errs = append(errs, errors.New("command is missing"))
	}
	for _, g := range m.Gates {
		if !slices.Contains(Gates(), g.On) {
			errs = append(errs, fmt.Errorf("gate %q: there are %v", g.On, Gates()))
		}
		for _, p := range g.Tools {
			if _, err := path.Match(p, ""); err != nil {
				errs = append(errs, fmt.Errorf("gate %s: tools %q: %w", g.On, p, err))
			}
		}
	}
	names := map[string]bool{}
	once := func(kind, name string) {
		key := kind + " " + name
		if name == "" || names[key] {
			errs = append(errs, fmt.Errorf("%q: every %s needs a name of its own", name, kind))
		}
		names[key] = true
	}
	for _, t := range m.Tools {
		once("tool", t.Name)
	}
	for _, c := range m.Commands {
		once("command", c.Name)
		errs = append(errs, id.CheckName("a command", c.Name))
	}
	for _, f := range m.Flags {
		once("flag", f.Name)
		if f.Type != "" && f.Type != "bool" && f.Type != "string" {
			errs = append(errs, fmt.Errorf("flag %s: type %q: want bool or string", f.Name, f.Type))
		}
	}
	for _, p := range m.Providers {
		once("provider", p.ID)
		for _, model := range p.Models {
			once("model "+p.ID+"/", model.ID)
		}
	}
	return errors.Join(errs...)
}

// Spec is what the model is told of the tool.
func (t ToolDef) Spec() llm.Tool {
	spec := llm.Tool{Name: t.Name, Description: t.Description, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	if len(t.Parameters) > 0 {
		if raw, err := json.Marshal(t.Parameters); err == nil { // it was read from JSON
			spec.Parameters = raw
		}
	}
	return spec
}

// values are the flags' values: the defaults, and what was given.
func (m Manifest) values(given map[string]string) (map[string]any, error) {
	all := map[string]any{}
	var errs []error
	for _, f := range m.Flags {
		text, ok := given[f.Name]
		if !ok {
			text = f.Default
		}
		if f.Type != "bool" {
			all[f.Name] = text
			continue
		}
		switch text {
		case "true", "":
			all[f.Name] = text == "true" || ok
		case "false":
			all[f.Name] = false
		default:
			errs = append(errs, fmt.Errorf("flag %s of extension %s: %q: want true or false", f.Name, m.Name, text))
		}
	}
	for name := range given {
		if !slices.ContainsFunc(m.Flags, func(f Flag) bool { return f.Name == name }) {
			errs = append(errs, fmt.Errorf("extension %s has no flag %q", m.Name, name))
		}
	}
	return all, errors.Join(errs...)
}

// gate gives the gate that looks at a tool; tool is "" for gates without one.
func (m Manifest) gate(on, tool string) (Gate, bool) {
	for _, g := range m.Gates {
		if g.On != on {
			continue
		}
		if len(g.Tools) == 0 || slices.ContainsFunc(g.Tools, func(p string) bool {
			ok, err := path.Match(p, tool)
			return ok && err == nil
		}) {
			return g, true
		}
	}
	return Gate{}, false
}
