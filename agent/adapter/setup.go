package adapter

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// A Setup is what an adapter adds to the command line and the environment of
// a CLI, for that one process: nothing of the user's own settings is changed.
// In all texts {id} is the conversation's id, {files} the folder of the agent's
// private files, {files_url} the same as a URL, {home} the CLI's folder of
// settings, {work} the working folder, and {self} muntin.
type Setup struct {
	Args   []Arg    // put behind the program's name
	New    []Arg    // the same where a conversation begins
	Resume []string // the words, behind the program's name, that go on with {id}
	Fork   []string // the words that begin a new conversation with what {id} holds
	// Prompt is the words, at the end of the command line, that begin a new
	// conversation with {prompt}. NotFirst are characters with which it must not
	// begin then.
	Prompt   []string
	NotFirst string
	Env      []string // NAME=value; a value that the agent has already stays
	Files    []File   // written before the start
	// Alone names the words that make the program something other than a
	// conversation at the terminal: then nothing is added.
	Alone []string
	// Chosen says that {id} is ours to choose; else the CLI chooses, and the
	// supervisor learns it.
	Chosen bool
}

// An Arg is some words of a command line, left out if the user's own words
// hold one of Unless, which says the same.
type Arg struct {
	Words  []string
	Unless []string
}

// A File is a private file for the CLI to read. Its text is Text, with the
// placeholders filled in, or the settings that run the adapter's hooks.
type File struct {
	Name  string
	Text  string
	Hooks bool
}

// A Launch is what Prepare works on.
type Launch struct {
	Argv         []string // as the user wrote it
	Env          []string
	WorkDir      string
	FilesDir     string // where private files of this agent go
	Self         string // the path of muntin, which hooks run
	Conversation string // id of the one to go on with; empty: a new one
	Fork         bool   // go on with a copy of it
	Wants        Wants  // what the program is to be told in its own words
}

// Wants are what a CLI is asked for in words of its own. The zero value asks
// for nothing.
type Wants struct {
	Approval string   // a name of Adapter.Approval
	Sandbox  string   // a name of Adapter.Sandbox
	Thinking string   // as the CLI names it
	Tools    []string // as the CLI names them
}

// A Start is what to start. Files hold full paths.
type Start struct {
	Argv, Env    []string
	Files        []File
	Conversation string // its id, where it is known before the start
	Hooked       bool   // it has the adapter's hooks: it will tell of its turns by them
}

// maxPrompt is the longest prompt on a command line, in bytes. Linux takes
// 128 KiB in one word, and the command line and the environment together have
// a limit everywhere.
const maxPrompt = 96 << 10

// Prepare gives the command line, the environment and the files with which a
// CLI is started. A command that is no conversation at the terminal comes back
// as it was. The error says what the CLI has no words for.
func (a Adapter) Prepare(l Launch) (Start, error) {
	out := Start{Argv: slices.Clone(l.Argv), Env: slices.Clone(l.Env)}
	head := len(l.Argv) - len(command(l.Argv)) + 1 // env(1) and its assignments stay in front
	if len(l.Argv) < head || a.alone(l.Argv[head:]) {
		if l.Fork || l.Wants.any() {
			return out, fmt.Errorf("adapter %s: the command is no conversation at the terminal: it can be told of no fork, approval, sandbox, thinking or tools", a.Name)
		}
		return out, nil
	}
	user := l.Argv[head:]
	words, err := a.talks(l, user, &out)
	if err != nil {
		return out, err
	}
	wanted, err := a.wanted(l.Wants, user)
	if err != nil {
		return out, err
	}
	with := l.filler(a, out.Conversation)
	out.Hooked = len(a.Hooks) > 0
	for _, arg := range a.Setup.Args {
		if says(user, arg.Unless) {
			out.Hooked = out.Hooked && !strings.Contains(strings.Join(arg.Words, " "), "{files")
			continue
		}
		words = append(words, filled(with, arg.Words)...)
	}
	out.Argv = slices.Concat(l.Argv[:head], words, wanted, user)
	for _, kv := range a.Setup.Env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.ContainsFunc(out.Env, func(has string) bool { return strings.HasPrefix(has, name+"=") }) {
			out.Hooked = out.Hooked && !strings.Contains(value, "{files")
			continue
		}
		out.Env = append(out.Env, with.Replace(kv))
	}
	for _, f := range a.Setup.Files {
		f.Name = filepath.Join(l.FilesDir, f.Name)
		if f.Hooks {
			f.Text = hookSettings(a.Hooks, a.HookTimeout, l.Self, f.Text)
		} else {
			f.Text = with.Replace(f.Text)
		}
		out.Files = append(out.Files, f)
	}
	return out, nil
}

func (l Launch) filler(a Adapter, id string) *strings.Replacer {
	files := url.URL{Scheme: "file", Path: l.FilesDir}
	return strings.NewReplacer("{id}", id, "{files}", l.FilesDir, "{files_url}", files.String(), "{home}", a.Home(l.Env), "{work}", l.WorkDir, "{self}", l.Self)
}

// talks gives the words of the conversation: the one to go on with, a copy of
// it, or a new one.
func (a Adapter) talks(l Launch, user []string, out *Start) (words []string, err error) {
	switch {
	case l.Fork && l.Conversation == "":
		return nil, fmt.Errorf("adapter %s: no conversation to fork", a.Name)
	case l.Fork && a.Setup.Fork == nil:
		return nil, fmt.Errorf("adapter %s: it has no words to fork a conversation", a.Name)
	case l.Fork:
		return filled(l.filler(a, l.Conversation), a.Setup.Fork), nil
	case l.Conversation != "" && a.Setup.Resume != nil:
		out.Conversation = l.Conversation
		return filled(l.filler(a, l.Conversation), a.Setup.Resume), nil
	case a.Setup.Chosen:
		id := NewConversation()
		for _, arg := range a.Setup.New {
			if !says(user, arg.Unless) {
				out.Conversation = id
				words = append(words, filled(l.filler(a, id), arg.Words)...)
			}
		}
	}
	return words, nil
}

func (w Wants) any() bool {
	return w.Approval != "" || w.Sandbox != "" || w.Thinking != "" || len(w.Tools) > 0
}

// wanted gives the words for what is asked of the CLI. What the user's own
// words say already is left out; a sandbox goes before that of an approval
// mode.
func (a Adapter) wanted(w Wants, user []string) (words []string, err error) {
	approval, err := a.choice("approval mode", w.Approval, a.Approval)
	if err != nil {
		return nil, err
	}
	sandbox, err := a.choice("sandbox", w.Sandbox, a.Sandbox)
	if err != nil {
		return nil, err
	}
	values := []struct {
		what, value string
		words       []string
	}{{"thinking", w.Thinking, a.Thinking}, {"tools", strings.Join(w.Tools, ","), a.Tools}}
	words = append(unsaid(approval, slices.Concat(user, sandbox)), unsaid(sandbox, user)...)
	for _, v := range values {
		switch {
		case v.value == "":
		case v.words == nil:
			return nil, fmt.Errorf("adapter %s: it has no words for %s", a.Name, v.what)
		default:
			words = append(words, unsaid(filled(strings.NewReplacer("{value}", v.value), v.words), user)...)
		}
	}
	return words, nil
}

func (a Adapter) choice(what, name string, known map[string][]string) ([]string, error) {
	words, ok := known[name]
	switch {
	case name == "" || ok:
		return words, nil
	case len(known) == 0:
		return nil, fmt.Errorf("adapter %s: it has no words for the %s %q", a.Name, what, name)
	}
	return nil, fmt.Errorf("adapter %s: %q is no %s of it: it has %s", a.Name, name, what, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// unsaid leaves out the options, with their values, that are said already. "-c"
// may be said again and again.
func unsaid(words, said []string) (out []string) {
	drop := false
	for _, w := range words {
		if option, _, _ := strings.Cut(w, "="); strings.HasPrefix(w, "-") {
			drop = w != "-c" && says(said, []string{option})
		}
		if !drop {
			out = append(out, w)
		}
	}
	return out
}

// Prompted gives the command line of a start that begins a new conversation,
// with its first prompt on it. user is the command as the user wrote it. ok is
// false if the CLI takes no prompt there, or not this one: then it has to be
// typed.
func (a Adapter) Prompted(start Start, user []string, text string) (argv []string, ok bool) {
	user = command(user)
	if a.Setup.Prompt == nil || len(user) == 0 || a.alone(user[1:]) || says(user, a.own()) || positional(user[1:]) {
		return nil, false
	}
	if text == "" || len(text) > maxPrompt || strings.ContainsRune(text, 0) || strings.ContainsAny(text[:1], a.Setup.NotFirst) {
		return nil, false
	}
	return slices.Concat(start.Argv, filled(strings.NewReplacer("{prompt}", text), a.Setup.Prompt)), true
}

// positional reports whether a word stands by itself, and not behind an option
// whose value it may be: it may be a prompt already.
func positional(words []string) bool {
	for i, w := range words {
		if !strings.HasPrefix(w, "-") && (i == 0 || !strings.HasPrefix(words[i-1], "-") || strings.Contains(words[i-1], "=")) {
			return true
		}
	}
	return false
}

// own are the words of the user's with which a first prompt may go elsewhere:
// those of another conversation, and of a prompt.
func (a Adapter) own() []string {
	words := []string{"--"}
	for _, arg := range a.Setup.New {
		words = append(words, arg.Unless...)
	}
	for _, w := range slices.Concat(a.Setup.Resume, a.Setup.Prompt) {
		if name, _, _ := strings.Cut(w, "="); strings.HasPrefix(w, "-") {
			words = append(words, name)
		}
	}
	return words
}

// alone reports whether the words ask for something other than a conversation
// at the terminal.
func (a Adapter) alone(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(a.Setup.Alone, w) })
}

// says reports whether one of the words is one of the options, by itself or
// with a value behind "=".
func says(words, options []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		name, _, _ := strings.Cut(w, "=")
		return slices.Contains(options, name)
	})
}

func filled(with *strings.Replacer, words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = with.Replace(w)
	}
	return out
}

// Home is the CLI's folder of settings and conversations, as its environment
// has it.
func (a Adapter) Home(env []string) string {
	get := func(name string) string {
		for i := len(env) - 1; i >= 0; i-- { // the last one counts
			if v, ok := strings.CutPrefix(env[i], name+"="); ok && name != "" {
				return v
			}
		}
		return ""
	}
	if dir := get(a.HomeEnv); dir != "" {
		return filepath.Join(dir, a.HomeSub)
	}
	return filepath.Join(get("HOME"), a.HomeDir)
}

// Transcripts is the pattern (filepath.Match) of the file that holds the
// conversation; empty if there is none to read. An empty id gives the pattern
// of all conversations.
func (a Adapter) Transcripts(env []string, id string) string {
	if a.Transcript == "" {
		return ""
	}
	if id == "" {
		id = "*"
	}
	return filepath.Join(a.Home(env), strings.NewReplacer("{id8}", id[:min(len(id), 8)], "{id}", id).Replace(a.Transcript))
}

// ConversationOf is the id in the path of a conversation's file: the UUID that
// its name ends with. It is empty where there is none.
func ConversationOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	const uuid = 36
	if len(name) < uuid || !isUUID(name[len(name)-uuid:]) {
		return ""
	}
	return name[len(name)-uuid:]
}

func isUUID(s string) bool {
	for i := range len(s) {
		switch dash := i == 8 || i == 13 || i == 18 || i == 23; {
		case dash != (s[i] == '-'), !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])):
			return false
		}
	}
	return true
}

// NewConversation makes the id of a conversation: a random UUID (RFC 9562,
// version 4), which is what the CLIs take.
func NewConversation() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
