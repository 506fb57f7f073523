package settings

import (
	"fmt"
	"strings"

	"muntin/agent/llm"
)

// Values are all settings, with their defaults where nothing is said.
type Values struct {
	Model        string   // provider/id[:thinking]; "": none
	Thinking     string   // a level of llm.Levels; "": the model's
	Deadlines    string   // as llm.ParseDeadlines reads them
	Tools        []string // as `muntin agent --tools` reads them; empty: the default ones
	ContextFiles bool     // AGENTS.md and CLAUDE.md are read
	Compaction   struct {
		Auto    bool
		Reserve int // tokens
		Keep    int // tokens
	}
	Retry struct {
		Attempts int // after the first try
	}
	Checkpoints string   // CheckpointsOn or CheckpointsOff
	Theme       string   // the name of one; "": muntin's own
	Editor      string   // a command; "": $VISUAL, then $EDITOR
	Trust       string   // TrustAsk, TrustAlways or TrustNever
	Skills      []string // folders
	Prompts     []string // folders
	Themes      []string // folders
}

// What is done in a folder that nobody has decided on.
const (
	TrustAsk    = "ask"
	TrustAlways = "always"
	TrustNever  = "never"
)

// Whether the agent saves the files before each turn that a person begins.
const (
	CheckpointsOn  = "on"
	CheckpointsOff = "off"
)

// A Key describes one setting, once: its form, its default and its meaning.
type Key struct {
	Name    string // with dots: "compaction.auto"
	Type    string // text, true or false, number, list
	Default string // as it would be written; "": nothing
	Doc     string
	Words   []string // what a text can be; nil: anything
	User    bool     // it counts in the user's own file only: a project cannot weaken what guards against it
	Joined  bool     // a list to which each file adds, in place of one that a nearer file replaces
	into    func(*Values) any
	check   func(string) error
}

// Keys are all that there are, in the order in which they are shown.
func Keys() []Key {
	levels := make([]string, 0, len(llm.Levels()))
	for _, l := range llm.Levels() {
		levels = append(levels, string(l))
	}
	all := []Key{
		{Name: "model", Doc: "provider/id, and behind it a level of thinking, as in anthropic/claude-opus-5:high", into: func(v *Values) any { return &v.Model }},
		{Name: "thinking", Doc: "how much the model thinks, where its name does not say it", Words: levels, into: func(v *Values) any { return &v.Thinking }},
		{Name: "tools", Doc: "tools to offer, by name or * pattern, or changes as in [+grep, -bash]", into: func(v *Values) any { return &v.Tools }},
		{Name: "deadlines", Doc: "such as connect=10s,firstEvent=10m,idle=2m,whole=none", check: checkDeadlines, into: func(v *Values) any { return &v.Deadlines }},
		{Name: "context_files", Default: "true", Doc: "read AGENTS.md and CLAUDE.md", into: func(v *Values) any { return &v.ContextFiles }},
		{Name: "compaction.auto", Default: "true", Doc: "summarise unasked when the model's window is nearly full", into: func(v *Values) any { return &v.Compaction.Auto }},
		{Name: "compaction.reserve", Default: "16384", Doc: "tokens of the window that stay free for the answer", into: func(v *Values) any { return &v.Compaction.Reserve }},
		{Name: "compaction.keep", Default: "20000", Doc: "tokens of the newest messages that are never summarised", into: func(v *Values) any { return &v.Compaction.Keep }},
		{Name: "retry.attempts", Default: "3", Doc: "how often a request that failed for a passing reason is made again", into: func(v *Values) any { return &v.Retry.Attempts }},
		{
			Name: "checkpoints", Default: CheckpointsOn, Words: []string{CheckpointsOn, CheckpointsOff},
			Doc:  "save the files before each turn on the agent's screen, in a repository; in a run the supervisor does it anyway",
			into: func(v *Values) any { return &v.Checkpoints },
		},
		{Name: "theme", Doc: "the colours, by the name of a theme", into: func(v *Values) any { return &v.Theme }},
		{Name: "skills", Doc: "more folders with skills", Joined: true, into: func(v *Values) any { return &v.Skills }},
		{Name: "prompts", Doc: "more folders with prompt templates", Joined: true, into: func(v *Values) any { return &v.Prompts }},
		{Name: "themes", Doc: "more folders with themes", Joined: true, into: func(v *Values) any { return &v.Themes }},
		{Name: "editor", User: true, Doc: "the command for long texts; without it $VISUAL, then $EDITOR", into: func(v *Values) any { return &v.Editor }},
		{
			Name: "trust", User: true, Default: TrustAsk, Words: []string{TrustAsk, TrustAlways, TrustNever},
			Doc:  "whether what a folder brings along is loaded, where nobody has decided yet; to ask without a terminal is no",
			into: func(v *Values) any { return &v.Trust },
		},
	}
	for i := range all {
		all[i].Type = typeOf(all[i].into(&Values{}))
	}
	return all
}

func typeOf(p any) string {
	switch p.(type) {
	case *bool:
		return "true or false"
	case *int:
		return "number"
	case *[]string:
		return "list"
	}
	return "text"
}

func checkDeadlines(text string) error {
	_, err := llm.ParseDeadlines(text)
	return err
}

// find looks a key up by its name.
func find(name string) (Key, bool) {
	for _, k := range Keys() {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}

// isSection reports whether keys begin with name and a dot.
func isSection(name string) bool {
	for _, k := range Keys() {
		if strings.HasPrefix(k.Name, name+".") {
			return true
		}
	}
	return false
}

// valid checks a text against the key's words.
func (k Key) valid(text string) error {
	if k.check != nil {
		return k.check(text)
	}
	if k.Words == nil {
		return nil
	}
	for _, w := range k.Words {
		if w == text {
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", text, strings.Join(k.Words, ", "))
}
