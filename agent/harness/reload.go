package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muntin/agent"
	"muntin/agent/compact"
	"muntin/agent/extension"
	"muntin/agent/resource"
)

// Loaded is what an agent can take while a conversation goes on: what its files say
// now. All of it takes the place of what was there.
type Loaded struct {
	Extensions []extension.Extension
	More       ToolSource    // as Options.More; the one before is closed
	Tools      []string      // as Options.Tools
	NoContext  bool          // leave the project's context files out
	Resources  *resource.Set // as Options.Resources
	Compaction compact.Settings
	Retry      agent.RetryPolicy
	Problems   []string // for people
}

// Reload takes what Options.Reload finds: extensions, whose programs are ended and
// started when they are needed, tools, skills, templates, and the files that the
// system prompt is made of. problems are for people. During a run it fails with an
// error that matches agent.ErrBusy, and then, as after each error, all is as before.
func (h *Harness) Reload(ctx context.Context) (problems []string, err error) {
	if h.reload == nil {
		return nil, nil
	}
	err = h.idle(ctx, func(ctx context.Context) error {
		loaded, err := h.reload(ctx)
		if err != nil {
			return fmt.Errorf("loading again: %w", err)
		}
		if h.ext != nil {
			if err := h.ext.Reload(loaded.Extensions); err != nil {
				if loaded.More != nil {
					err = errors.Join(err, loaded.More.Close())
				}
				return err
			}
		}
		problems, err = h.take(loaded)
		h.ext.Tell(extension.EventSessionStart, map[string]string{"reason": "reload"})
		return err
	})
	return problems, err
}

// take goes on with what was loaded.
func (h *Harness) take(l Loaded) (problems []string, err error) {
	h.mu.Lock()
	before := h.more
	h.more, h.names, h.found = l.More, l.Tools, l.Resources
	h.sizes, h.window, h.retry = l.Compaction, l.Compaction.Window, l.Retry
	h.kernel.SetRetry(h.policy())
	h.mu.Unlock()
	if before != nil {
		if err := before.Close(); err != nil {
			l.Problems = append(l.Problems, err.Error())
		}
	}
	h.readContext(l.NoContext)
	problems = append(l.Problems, h.Problems()...)
	tools, err := h.toolsNamed(l.Tools)
	if err != nil { // a tool that was named went with its extension
		problems = append(problems, err.Error())
		tools, err = h.toolsNamed(nil)
	}
	if err != nil {
		return problems, err
	}
	if err := h.kernel.SetTools(tools); err != nil {
		return problems, err
	}
	h.describe(tools)
	return problems, nil
}

// source is where tools come from beside extensions; nil: there is none.
func (h *Harness) source() ToolSource {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.more
}

func (h *Harness) resources() *resource.Set {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.found
}

// readContext reads the context files.
func (h *Harness) readContext(none bool) {
	var files []resource.File
	var missing error
	if !none {
		files, missing = resource.ContextFiles(h.prompt.Dir, h.home)
	}
	h.prompt.Files = files
	h.mu.Lock()
	h.missing = missing
	h.mu.Unlock()
}

// describe makes the system prompt for some tools.
func (h *Harness) describe(tools []agent.Tool) string {
	p := h.prompt
	if found := h.resources(); found != nil {
		p.Skills = found.Skills
		p.System = cmp.Or(p.System, found.System.Text)
		p.Append = cmp.Or(p.Append, found.Append.Text)
	}
	p.Tools = nil
	for _, t := range tools {
		p.Tools = append(p.Tools, t.Spec())
	}
	system := p.Text()
	h.room.measure(system, tools)
	h.mu.Lock()
	h.system = system
	h.mu.Unlock()
	if h.kernel != nil {
		h.kernel.SetSystem(system)
	}
	return system
}

// Problems tells what was found wrong while opening, or while loading again, and
// left out: lines of the session, context files, resources.
func (h *Harness) Problems() []string {
	var all []string
	for _, p := range h.session.Problems() {
		all = append(all, "session "+h.session.Path()+": "+p.String())
	}
	h.mu.Lock()
	found, missing := h.found, h.missing
	h.mu.Unlock()
	if missing != nil {
		all = append(all, strings.Split(missing.Error(), "\n")...)
	}
	if found != nil {
		all = append(all, found.Problems()...)
	}
	return all
}

// A Command is a name that a person types after a slash.
type Command = resource.Command

// The kinds of a Command. An extension carries its own out; the others stand for texts.
const (
	KindExtension = resource.KindExtension
	KindSkill     = resource.KindSkill
	KindPrompt    = resource.KindPrompt
)

// Commands are those of extensions, which count first, then the prompt templates and
// skills that Expand knows. A prompt that begins with one of an extension runs it.
func (h *Harness) Commands() []Command {
	all := []Command{}
	for _, c := range h.ext.Commands() {
		all = append(all, Command{Name: c.Name, Description: c.Description, Kind: KindExtension})
	}
	for _, c := range h.resources().Commands() {
		if !slices.ContainsFunc(all, func(o Command) bool { return o.Name == c.Name }) {
			all = append(all, c)
		}
	}
	return all
}

// Calls reports whether a prompt calls a command of an extension, which a run that goes
// on cannot take.
func (h *Harness) Calls(text string) bool { return h.ext.Has(text) }

// Expand gives what a text that a person typed stands for, as resource.Set.Expand
// does. Whoever takes prompts from a person calls it before Prompt.
func (h *Harness) Expand(text string) (string, error) {
	if h.Calls(text) {
		return text, nil
	}
	return h.resources().Expand(text)
}
