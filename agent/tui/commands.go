package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muntin/internal/term"
)

// ErrNoAnswer says that the person left a question without an answer.
var ErrNoAnswer = errors.New("there was no answer")

var errNothing = errors.New("there is nothing to choose from")

// commands are all slash commands that can be carried out, sorted by name.
func (l *loop) commands() []Command {
	h := l.opts.Host
	all := []Command{
		{Name: "help", Help: "the commands and how they are used", Run: l.help},
		{Name: "hotkeys", Help: "the keys", Run: hotkeys},
		{Name: "quit", Help: "leave"},
		{Name: "copy", Help: "copy the last answer to the clipboard", Run: l.copyLast},
		{Name: "thinking", Args: "[level]", Help: "how much the model thinks", Run: l.thinking},
		{Name: "compact", Args: "[instructions]", Help: "replace what is old by a summary", Idle: true, Run: l.compact},
		{Name: "name", Args: "[name]", Help: "name the conversation", Run: l.name},
		{Name: "session", Help: "what the conversation holds and cost", Run: l.session},
		{Name: "reload", Help: "load settings, skills, prompt templates, extensions and MCP servers again", Idle: true, Run: l.reload},
		{Name: "tree", Help: "walk the conversation, and go on from another message", Idle: true, Run: l.tree},
	}
	if h.OpenModel != nil && h.Models != nil {
		all = append(all, Command{Name: "model", Args: "[provider/id]", Help: "ask another model", Run: l.model})
	}
	if h.Open != nil && h.NewFile != nil {
		all = append(all,
			Command{Name: "new", Help: "begin a new conversation", Idle: true, Run: l.fresh},
			Command{Name: "fork", Help: "go on from an earlier message in a new conversation", Idle: true, Run: l.fork},
			Command{Name: "clone", Help: "go on in a copy of the conversation", Idle: true, Run: l.clone})
	}
	if h.Open != nil && h.Sessions != nil {
		all = append(all, Command{Name: "resume", Help: "go on with an earlier conversation", Idle: true, Run: l.resume})
	}
	if h.Settings != nil {
		all = append(all, Command{Name: "settings", Args: "[set name value]", Help: "show the settings, or change one", Run: l.settings})
	}
	if h.Trust != nil {
		all = append(all, Command{Name: "trust", Args: "[yes|no|forget]", Help: "whether this folder's own settings, skills and extensions are loaded", Idle: true, Run: l.trust})
	}
	if h.Export != nil {
		all = append(all, Command{Name: "export", Args: "[file.html]", Help: "write the conversation as a page", Run: l.export})
	}
	if h.Checkpoints != nil {
		all = append(all,
			Command{Name: "checkpoints", Help: "the saved states of the files", Run: l.checkpoints},
			Command{Name: "rollback", Args: "[undo]", Help: "files and conversation back to before a message, or take that back", Idle: true, Run: l.rollback},
			Command{Name: "diff", Args: "[checkpoint]", Help: "what changed since a checkpoint, or the newest one", Run: l.diff})
	}
	all = append(all, h.Commands...)
	all = append(all, *l.named.Load()...)
	slices.SortStableFunc(all, func(a, b Command) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Command) bool { return a.Name == b.Name })
}

// learn finds what commands the agent has of its own. Its files are read for it, which
// is too much for each key that is pressed.
func (l *loop) learn() {
	all := []Command{}
	for _, c := range l.Agent().Commands() {
		all = append(all, Command{Name: c.Name, Args: c.Hint, Help: c.Description})
	}
	l.named.Store(&all)
}

// slash carries out a text that is a slash command, and reports whether it is one.
func (l *loop) slash(ctx context.Context, text string) bool {
	name, arg, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	if !strings.HasPrefix(text, "/") || name == "" || strings.ContainsAny(name, "/.\n") {
		return false
	}
	if l.command != nil && name != "quit" { // it may change which commands there are
		l.later = append(l.later, text)
		return true
	}
	all := l.commands()
	i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name })
	switch {
	case i < 0:
		l.display.note("There is no command /" + term.CleanLine(name) + "; /help tells what there is.")
		return true
	case name == "quit":
		l.quit = true
		return true
	case all[i].Run == nil:
		return false // a prompt is made of it
	case all[i].Idle && (l.running != nil || len(l.queue) > 0):
		l.display.note("/" + name + " needs that nothing runs: wait for the end of the turn, or press Esc.")
		return true
	}
	cmd := all[i]
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cancel: cancel, idle: cmd.Idle}
	l.command = r
	l.work.Go(func() {
		defer cancel()
		page, err := cmd.Run(ctx, asker{l}, strings.TrimSpace(arg))
		if page != "" && err == nil {
			l.display.page(page)
		}
		if err != nil {
			r.err = fmt.Errorf("/%s: %w", cmd.Name, err)
		}
		l.over <- r
	})
	return true
}

// ended takes the end of a command.
func (l *loop) ended(ctx context.Context, r *running) {
	if r == l.command {
		l.command = nil
	}
	l.shells = slices.DeleteFunc(l.shells, func(s *running) bool { return s == r })
	if r.err != nil && !errors.Is(r.err, ErrNoAnswer) && !errors.Is(r.err, context.Canceled) {
		l.display.note(term.CleanLine(r.err.Error()))
	}
	l.tellFacts(ctx)
	for l.command == nil && len(l.later) > 0 {
		next := l.later[0]
		l.later = l.later[1:]
		l.take(ctx, input{kind: inputLine, text: next})
	}
}

// An asker asks for a command.
type asker struct{ l *loop }

func (a asker) Choose(ctx context.Context, title string, items []string) (int, error) {
	q := question{title: title}
	for _, text := range items {
		q.items = append(q.items, item{label: text})
	}
	return a.l.choose(ctx, q)
}

func (a asker) Text(ctx context.Context, title, start string) (string, error) {
	in, err := a.l.question(ctx, question{title: title, text: start})
	return in.text, err
}

func (l *loop) help(context.Context, Asker, string) (string, error) {
	var b strings.Builder
	b.WriteString("| Command | What it does |\n|---|---|\n")
	for _, c := range l.commands() {
		fmt.Fprintf(&b, "| /%s | %s |\n", strings.ReplaceAll(strings.TrimSpace(c.Name+" "+c.Args), "|", "\\|"), strings.ReplaceAll(c.Help, "|", "\\|"))
	}
	b.WriteString("\n`!command` runs a shell command and tells the model, `!!command` does not tell it.\n`@` names a file. /hotkeys lists the keys.\n")
	return b.String(), nil
}

func hotkeys(context.Context, Asker, string) (string, error) {
	var b strings.Builder
	b.WriteString("| Key | What it does |\n|---|---|\n")
	for _, k := range keyHelp() {
		fmt.Fprintf(&b, "| %s | %s |\n", k[0], k[1])
	}
	return b.String(), nil
}
