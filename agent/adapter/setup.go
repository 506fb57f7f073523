package adapter

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A Setup is what an adapter adds to the command line and the environment of
// a CLI, for that one process: nothing of the user's own settings is changed.
// In all texts {id} is the conversation's id, {files} the folder of the agent's
// private files, {home} the CLI's folder of settings, and {work} the working
// folder.
type Setup struct {
	Args   []Arg    // put behind the program's name
	New    []Arg    // the same where a conversation begins
	Resume []string // the words, behind the program's name, that go on with {id}
	Fork   []string // the words that begin a new conversation with what {id} holds
	Env    []string // NAME=value; a value that the agent has already stays
	Files  []File   // written before the start
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
}

// A Start is what to start. Files hold full paths.
type Start struct {
	Argv, Env    []string
	Files        []File
	Conversation string // its id, where it is known before the start
}

// Prepare gives the command line, the environment and the files with which a
// CLI is started. A command that is no conversation at the terminal comes back
// as it was.
func (a Adapter) Prepare(l Launch) Start {
	out := Start{Argv: slices.Clone(l.Argv), Env: slices.Clone(l.Env)}
	head := len(l.Argv) - len(command(l.Argv)) + 1 // env(1) and its assignments stay in front
	if len(l.Argv) < head || a.alone(l.Argv[head:]) {
		return out
	}
	user := l.Argv[head:]
	fill := func(id string) *strings.Replacer {
		return strings.NewReplacer("{id}", id, "{files}", l.FilesDir, "{home}", a.Home(l.Env), "{work}", l.WorkDir)
	}
	var words []string
	switch {
	case l.Conversation != "" && l.Fork && a.Setup.Fork != nil:
		words = filled(fill(l.Conversation), a.Setup.Fork)
	case l.Conversation != "" && a.Setup.Resume != nil:
		out.Conversation = l.Conversation
		words = filled(fill(l.Conversation), a.Setup.Resume)
	case a.Setup.Chosen:
		id := NewConversation()
		for _, arg := range a.Setup.New {
			if !says(user, arg.Unless) {
				out.Conversation = id
				words = append(words, filled(fill(id), arg.Words)...)
			}
		}
	}
	with := fill(out.Conversation)
	for _, arg := range a.Setup.Args {
		if !says(user, arg.Unless) {
			words = append(words, filled(with, arg.Words)...)
		}
	}
	out.Argv = slices.Concat(l.Argv[:head], words, user)
	for _, kv := range a.Setup.Env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(out.Env, func(has string) bool { return strings.HasPrefix(has, name+"=") }) {
			out.Env = append(out.Env, with.Replace(kv))
		}
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
	return out
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
