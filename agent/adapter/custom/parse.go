package custom

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"muntin/agent/adapter"
)

// Version is what `muntin:` in a file says.
const Version = 1

// An Error is all that is wrong with an adapter's file. Commands exit with
// code 2 on it.
type Error struct{ Problems []Problem }

// A Problem is one mistake. Line and Col count from 1.
type Problem struct {
	File      string
	Line, Col int
	Text      string
}

// Error has a line "file:line:col: text" for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Text)
	}
	return strings.Join(lines, "\n")
}

// A document is the file, as it is written.
type document struct {
	Muntin      int                 `yaml:"muntin"`
	Description string              `yaml:"description"`
	Submit      string              `yaml:"submit"`
	Abort       string              `yaml:"abort"`
	SubmitDelay string              `yaml:"submit_delay"`
	LongDelay   string              `yaml:"long_delay"`
	Quiet       string              `yaml:"quiet"`
	ReadyQuiet  string              `yaml:"ready_quiet"`
	ReadyPaste  bool                `yaml:"ready_paste"`
	Steer       *bool               `yaml:"steer"`
	Signals     []signal            `yaml:"signals"`
	Composer    string              `yaml:"composer"`
	Screen      []sight             `yaml:"screen"`
	Args        []string            `yaml:"args"`
	New         []string            `yaml:"new"`
	Resume      []string            `yaml:"resume"`
	Fork        []string            `yaml:"fork"`
	Prompt      []string            `yaml:"prompt"`
	Alone       []string            `yaml:"alone"`
	Env         map[string]string   `yaml:"env"`
	StripEnv    []string            `yaml:"strip_env"`
	Approval    map[string][]string `yaml:"approval"`
	Sandbox     map[string][]string `yaml:"sandbox"`
	Thinking    []string            `yaml:"thinking"`
	Tools       []string            `yaml:"tools"`
	Versions    string              `yaml:"versions"`
	Home        home                `yaml:"home"`
	Transcript  transcript          `yaml:"transcript"`
}

type signal struct {
	Kind  string `yaml:"kind"`
	Has   string `yaml:"has"`
	Means string `yaml:"means"`
}

type sight struct {
	Pattern string `yaml:"pattern"`
	Lines   int    `yaml:"lines"`
	Means   string `yaml:"means"`
	Note    string `yaml:"note"`
}

type home struct {
	Env string `yaml:"env"`
	Dir string `yaml:"dir"`
}

type transcript struct {
	File   string `yaml:"file"`
	Format string `yaml:"format"`
}

// Parse reads an adapter. file is what errors call it.
func Parse(name, file string, src []byte) (adapter.Adapter, error) {
	c := checker{file: file}
	if len(src) > MaxSize {
		c.add(nil, "the file is larger than %d bytes", MaxSize)
		return adapter.Adapter{}, c.err()
	}
	tree, err := parser.ParseBytes(bytes.TrimPrefix(src, []byte("\ufeff")), 0)
	if err != nil {
		c.yaml(err)
		return adapter.Adapter{}, c.err()
	}
	c.tree = tree
	var doc document
	if err := yaml.UnmarshalWithOptions(src, &doc, yaml.Strict()); err != nil {
		c.yaml(err)
		return adapter.Adapter{}, c.err()
	}
	a := c.adapter(name, doc)
	if err := c.err(); err != nil {
		return adapter.Adapter{}, err
	}
	return a, nil
}

// A checker makes an adapter of a document and collects what is wrong with it.
type checker struct {
	file  string
	tree  *ast.File
	found []Problem
}

func (c *checker) err() error {
	if len(c.found) == 0 {
		return nil
	}
	slices.SortStableFunc(c.found, func(a, b Problem) int { return (a.Line-b.Line)<<16 + a.Col - b.Col })
	return &Error{c.found}
}

func (c *checker) add(at *token.Position, format string, args ...any) {
	p := Problem{File: c.file, Line: 1, Col: 1, Text: fmt.Sprintf(format, args...)}
	if at != nil {
		p.Line, p.Col = at.Line, at.Column
	}
	c.found = append(c.found, p)
}

// yaml takes an error of the YAML library's.
func (c *checker) yaml(err error) {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		c.add(e.GetToken().Position, "%s", e.GetMessage())
		return
	}
	c.add(nil, "%s", err)
}

// bad reports what stands at a YAML path, such as "$.screen[0].pattern".
func (c *checker) bad(at, format string, args ...any) {
	var pos *token.Position
	if p, err := yaml.PathString(at); err == nil && c.tree != nil {
		if node, err := p.FilterFile(c.tree); err == nil && node != nil {
			pos = node.GetToken().Position
		}
	}
	c.add(pos, format, args...)
}

func (c *checker) adapter(name string, d document) adapter.Adapter {
	if d.Muntin != Version {
		c.bad("$.muntin", "want \"muntin: %d\", the version of this form", Version)
	}
	a, _ := adapter.Lookup(adapter.Generic)
	a.Name, a.Description, a.Versions = name, d.Description, adapter.Range(d.Versions)
	if err := a.Versions.Check(); err != nil {
		c.bad("$.versions", "%s", err)
	}
	a.ReadyOutput, a.ReadyPaste = true, d.ReadyPaste
	a.NoSteer = d.Steer != nil && !*d.Steer
	a.Submit, a.Abort = c.keys("$.submit", d.Submit, a.Submit), c.keys("$.abort", d.Abort, a.Abort)
	a.SubmitDelay = c.duration("$.submit_delay", d.SubmitDelay, a.SubmitDelay)
	a.LongDelay = c.duration("$.long_delay", d.LongDelay, a.LongDelay)
	a.Quiet = c.duration("$.quiet", d.Quiet, a.Quiet)
	a.ReadyQuiet = c.duration("$.ready_quiet", d.ReadyQuiet, a.ReadyQuiet)
	a.StripEnv, a.Approval, a.Sandbox = d.StripEnv, d.Approval, d.Sandbox
	a.Thinking, a.Tools = c.holding("$.thinking", d.Thinking, "{value}"), c.holding("$.tools", d.Tools, "{value}")
	for i, s := range d.Signals {
		a.Rules = append(a.Rules, c.rule(fmt.Sprintf("$.signals[%d]", i), s))
	}
	if _, err := regexp.Compile(d.Composer); err != nil {
		c.bad("$.composer", "want a regular expression: %s", err)
	}
	a.Composer = d.Composer
	for i, s := range d.Screen {
		a.Sights = append(a.Sights, c.sight(fmt.Sprintf("$.screen[%d]", i), s))
	}
	a.Setup = adapter.Setup{Resume: d.Resume, Fork: d.Fork, Alone: d.Alone, Prompt: c.holding("$.prompt", d.Prompt, "{prompt}")}
	if d.Args != nil {
		a.Setup.Args = []adapter.Arg{{Words: d.Args}}
	}
	if d.New != nil {
		a.Setup.New, a.Setup.Chosen = []adapter.Arg{{Words: d.New, Unless: options(d.New, d.Resume)}}, true
	}
	for name, value := range d.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "MUNTIN_") {
			c.bad("$.env", "%q is no name of a variable that can be set", name)
		}
		a.Setup.Env = append(a.Setup.Env, name+"="+value)
	}
	slices.Sort(a.Setup.Env)
	a.HomeEnv, a.HomeDir = d.Home.Env, d.Home.Dir
	a.Transcript = d.Transcript.File
	a.Format = oneOf(c, "$.transcript.format", d.Transcript.Format, "", adapter.FormatClaude, adapter.FormatCodex, adapter.FormatPi, adapter.FormatGemini, adapter.FormatQwen, adapter.FormatRecords)
	if (a.Transcript == "") != (a.Format == "") {
		c.bad("$.transcript", "transcript: want both file and format")
	}
	return a
}

// holding gives words that must hold a placeholder, or be none.
func (c *checker) holding(at string, words []string, placeholder string) []string {
	if words != nil && !strings.Contains(strings.Join(words, "\x00"), placeholder) {
		c.bad(at, "want words with %s in them", placeholder)
	}
	return words
}

func (c *checker) rule(at string, s signal) adapter.Rule {
	return adapter.Rule{
		Signal: oneOf(c, at+".kind", s.Kind, adapter.SignalTitle, adapter.SignalNotify, adapter.SignalBell, adapter.SignalHook),
		Has:    s.Has, Means: c.means(at, s.Means),
	}
}

func (c *checker) sight(at string, s sight) adapter.Sight {
	if _, err := regexp.Compile(s.Pattern); err != nil || s.Pattern == "" {
		c.bad(at+".pattern", "want a regular expression: %s", why(err, "it is empty"))
	}
	if s.Lines < 0 || s.Lines > adapter.DialogLines {
		c.bad(at+".lines", "lines: want 1 to %d: what stands above is the transcript", adapter.DialogLines)
	}
	return adapter.Sight{Pattern: s.Pattern, Lines: s.Lines, Means: c.means(at, s.Means), Note: s.Note}
}

func (c *checker) means(at, text string) adapter.Meaning {
	return oneOf(c, at+".means", text, adapter.MeansIdle, adapter.MeansWorking, adapter.MeansDone, adapter.MeansError,
		adapter.MeansApproval, adapter.MeansQuestion, adapter.MeansLimit)
}

// oneOf is text, if it is one of the words.
func oneOf[T ~string](c *checker, at, text string, words ...T) T {
	if slices.Contains(words, T(text)) {
		return T(text)
	}
	var known []string
	for _, w := range words {
		if w != "" {
			known = append(known, string(w))
		}
	}
	c.bad(at, "%q is none of %s", text, strings.Join(known, ", "))
	return ""
}

const maxWait = time.Hour

func (c *checker) duration(at, text string, preset time.Duration) time.Duration {
	if text == "" {
		return preset
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxWait {
		c.bad(at, "want a duration up to %s, such as 150ms or 5s, got %q", maxWait, text)
		return preset
	}
	return d
}

// keys reads the names of keys, separated by spaces.
func (c *checker) keys(at, text string, preset []byte) []byte {
	if text == "" {
		return preset
	}
	var out []byte
	for _, word := range strings.Fields(text) {
		letter := strings.TrimPrefix(word, "ctrl-")
		switch {
		case word == "enter":
			out = append(out, '\r')
		case word == "escape":
			out = append(out, 0x1b)
		case word == "tab":
			out = append(out, '\t')
		case letter != word && len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z':
			out = append(out, letter[0]-'a'+1)
		default:
			c.bad(at, "%q is no key: want enter, escape, tab or ctrl-<letter>", word)
		}
	}
	return out
}

// options are the words that begin with a dash.
func options(lists ...[]string) (out []string) {
	for _, w := range slices.Concat(lists...) {
		if strings.HasPrefix(w, "-") && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func why(err error, none string) string {
	if err != nil {
		return err.Error()
	}
	return none
}
