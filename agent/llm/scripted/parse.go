package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"muntin/agent/llm"
)

// maxChunk keeps a wrong number from meaning anything.
const maxChunk = 1 << 20

// The shape of the file. The types that check a value know its place.
type (
	fileScript struct {
		Version *version   `yaml:"version"`
		Name    string     `yaml:"name"`
		Chunk   chunk      `yaml:"chunk"`
		Delay   span       `yaml:"delay"`
		Rules   []fileRule `yaml:"rules"`
		Steps   []fileStep `yaml:"steps"`
	}
	fileRule struct {
		Match pattern    `yaml:"match"`
		Steps []fileStep `yaml:"steps"`
	}
	fileStep struct {
		Thinking string     `yaml:"thinking"`
		Text     string     `yaml:"text"`
		Tools    []fileTool `yaml:"tools"`
		Delay    span       `yaml:"delay"`
		Stop     stopReason `yaml:"stop"`
		Usage    *fileUsage `yaml:"usage"`
		Error    *fileError `yaml:"error"`
		Cut      bool       `yaml:"cut"`
		CutTimes count      `yaml:"cut_times"`
	}
	fileTool struct {
		Name      toolName  `yaml:"name"`
		Arguments arguments `yaml:"arguments"`
	}
	fileUsage struct {
		Input      count `yaml:"input"`
		Output     count `yaml:"output"`
		CacheRead  count `yaml:"cache_read"`
		CacheWrite count `yaml:"cache_write"`
		Reasoning  count `yaml:"reasoning"`
	}
	fileError struct {
		Status     status `yaml:"status"`
		Message    string `yaml:"message"`
		RetryAfter span   `yaml:"retry_after"`
		Times      count  `yaml:"times"`
	}

	version    int
	chunk      int
	count      int
	status     int
	span       time.Duration
	stopReason llm.StopReason
	toolName   string
	arguments  json.RawMessage
	pattern    struct{ re *regexp.Regexp }
)

// Parse reads a script. name is for errors, which have the form
// "name:line:column: what is wrong".
func Parse(name string, data []byte) (*Script, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, placed(name, err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: expected one document, found %d", name, len(file.Docs))
	}
	body := file.Docs[0].Body
	plain := &plainOnly{}
	ast.Walk(plain, body)
	if plain.err != nil {
		return nil, placed(name, plain.err)
	}
	var f fileScript
	if err := yaml.NodeToValue(body, &f, yaml.Strict()); err != nil {
		return nil, placed(name, err)
	}
	if f.Version == nil {
		return nil, fmt.Errorf("%s:1:1: version is missing; this program reads version 1", name)
	}
	s := &Script{Name: f.Name, Chunk: int(f.Chunk), Delay: time.Duration(f.Delay), Steps: steps(f.Steps)}
	if s.Name == "" {
		s.Name = name
	}
	for i, r := range f.Rules {
		if r.Match.re == nil {
			return nil, fmt.Errorf("%s: rules[%d]: match is missing", name, i)
		}
		s.Rules = append(s.Rules, Rule{Match: r.Match.re, Steps: steps(r.Steps)})
	}
	return s, nil
}

func steps(in []fileStep) []Step {
	out := make([]Step, 0, len(in))
	for _, f := range in {
		s := Step{
			Thinking: f.Thinking, Text: f.Text, Delay: time.Duration(f.Delay), Stop: llm.StopReason(f.Stop),
			Cut: f.Cut, CutTimes: int(f.CutTimes),
		}
		for _, t := range f.Tools {
			args := json.RawMessage(t.Arguments)
			if args == nil {
				args = json.RawMessage("{}")
			}
			s.Tools = append(s.Tools, Tool{Name: string(t.Name), Arguments: args})
		}
		if u := f.Usage; u != nil {
			s.Usage = &llm.Usage{
				Input: int(u.Input), Output: int(u.Output), CacheRead: int(u.CacheRead), CacheWrite: int(u.CacheWrite),
				Reasoning: int(u.Reasoning), Total: int(u.Input + u.Output + u.CacheRead + u.CacheWrite),
			}
		}
		if e := f.Error; e != nil {
			s.Error = &Error{Status: int(e.Status), Message: e.Message, RetryAfter: time.Duration(e.RetryAfter), Times: int(e.Times)}
		}
		out = append(out, s)
	}
	return out
}

// placed gives an error of the parser in our form.
func placed(name string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) {
		if t := at.GetToken(); t != nil && t.Position != nil {
			return fmt.Errorf("%s:%d:%d: %s", name, t.Position.Line, t.Position.Column, at.GetMessage())
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// wrong makes an error at a node.
func wrong(node ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: node.GetToken()}
}

// plainOnly finds what a script may not have. Aliases are left out because a few
// lines of them can stand for gigabytes.
type plainOnly struct{ err error }

// Visit implements ast.Visitor.
func (p *plainOnly) Visit(node ast.Node) ast.Visitor {
	if p.err != nil || node == nil {
		return nil
	}
	switch node.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		p.err = wrong(node, "anchors, aliases and merge keys are not supported")
		return nil
	case *ast.TagNode:
		p.err = wrong(node, "tags are not supported")
		return nil
	}
	return p
}

// number takes a whole number within bounds.
func number(node ast.Node, low, high int) (int, error) {
	n, ok := node.(*ast.IntegerNode)
	if !ok {
		return 0, wrong(node, "expected a whole number")
	}
	var v int
	switch x := n.Value.(type) {
	case int64:
		v = int(x)
	case uint64:
		if x > uint64(high) {
			return 0, wrong(node, "expected a number from %d to %d", low, high)
		}
		v = int(x)
	}
	if v < low || v > high {
		return 0, wrong(node, "expected a number from %d to %d", low, high)
	}
	return v, nil
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (v *version) UnmarshalYAML(node ast.Node) error {
	n, err := number(node, 0, 1<<30)
	if err == nil && n != 1 {
		err = wrong(node, "version %d is not known; this program reads version 1", n)
	}
	*v = version(n)
	return err
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *chunk) UnmarshalYAML(node ast.Node) error {
	n, err := number(node, 0, maxChunk)
	*c = chunk(n)
	return err
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *count) UnmarshalYAML(node ast.Node) error {
	n, err := number(node, 0, 1<<30)
	*c = count(n)
	return err
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *status) UnmarshalYAML(node ast.Node) error {
	n, err := number(node, 400, 599)
	*s = status(n)
	return err
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *span) UnmarshalYAML(node ast.Node) error {
	text, ok := scalar(node)
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d < 0 {
		return wrong(node, "expected a duration such as 15ms or 2s")
	}
	*s = span(d)
	return nil
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *stopReason) UnmarshalYAML(node ast.Node) error {
	text, _ := scalar(node)
	switch r := llm.StopReason(text); r {
	case llm.StopEnd, llm.StopLength, llm.StopToolUse:
		*s = stopReason(r)
		return nil
	}
	return wrong(node, "expected stop, length or toolUse")
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (t *toolName) UnmarshalYAML(node ast.Node) error {
	text, ok := scalar(node)
	if !ok || text == "" {
		return wrong(node, "expected the name of a tool")
	}
	*t = toolName(text)
	return nil
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (p *pattern) UnmarshalYAML(node ast.Node) error {
	text, ok := scalar(node)
	if !ok {
		return wrong(node, "expected a regular expression")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return wrong(node, "%v", err)
	}
	p.re = re
	return nil
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (a *arguments) UnmarshalYAML(node ast.Node) error {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		return wrong(node, "expected the arguments as a mapping")
	}
	text, err := appendJSON(nil, node, 0)
	*a = arguments(text)
	return err
}

func scalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

// keyText gives the text of a mapping's key.
func keyText(node ast.Node) (string, bool) {
	if text, ok := scalar(node); ok {
		return text, true
	}
	if t := node.GetToken(); t != nil && t.Type != token.MappingKeyType {
		return t.Value, true
	}
	return "", false
}
