package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"muntin/agent"
	"muntin/agent/extension"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/resource/settings"
	"muntin/agent/rpc"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
	"muntin/cmd/internal/cli/session"
	"muntin/internal/term"
)

// an opener opens conversations as the options say.
type opener struct {
	Options         // the settings have completed them
	given   Options // as the command line says
	dir     string  // the working folder
	place   *resources.Place
	theme   term.Theme
	record  func() error // writes the recording of the conversation opened last

	ext      *extension.Host // of the conversation opened last; nil: none
	problems []string        // what was found wrong with its extensions and servers
}

// newOpener loads what holds in the working folder. ask says that a person may be
// asked whether the folder is trusted.
func newOpener(ctx context.Context, o Options, ask bool) (*opener, error) {
	if o.Thinking != "" && !slices.Contains(llm.Levels(), llm.Level(o.Thinking)) {
		return nil, app.Usage("thinking %q: want one of %v", o.Thinking, llm.Levels())
	}
	dir, err := app.Confirmed(o.App.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the working folder: %w", err)
	}
	if o.System, err = textOrFile(o.System); err != nil {
		return nil, err
	}
	if o.Append, err = textOrFile(o.Append); err != nil {
		return nil, err
	}
	op := &opener{given: o, record: func() error { return nil }}
	return op, op.enter(ctx, dir, ask)
}

// enter loads what holds in a folder, from now on the working folder.
func (o *opener) enter(ctx context.Context, dir string, ask bool) error {
	g := o.given
	place, err := resources.Open(ctx, resources.Options{
		App: g.App, Dir: dir, Trust: g.Trust, NoTrust: g.NoTrust, Ask: ask, Skills: g.Skills, Prompts: g.Prompts,
	})
	if err != nil {
		return err
	}
	g.settle(place.Settings)
	o.Options, o.dir, o.place = g, dir, place
	return o.colours()
}

// settle takes from the settings what the command line does not say.
func (o *Options) settle(s settings.Settings) {
	o.settings = s
	if len(o.Tools) == 0 && !o.NoTools {
		o.Tools = s.Tools
	}
	o.NoContext = o.NoContext || !s.ContextFiles
	o.NoCompact = o.NoCompact || !s.Compaction.Auto
}

// colours makes the theme. One that the settings name wrongly is told, not fatal.
func (o *opener) colours() error {
	o.theme = o.App.Theme
	name := cmp.Or(o.Theme, o.settings.Theme)
	if name == "" {
		return nil
	}
	t, ok := o.place.Set.Theme(name)
	err := fmt.Errorf("there is no theme %q", name)
	if ok {
		var colours map[string]string
		if colours, err = t.Read(); err == nil {
			o.theme, err = o.App.Theme.With(colours)
		}
	}
	if err != nil && o.Theme != "" {
		return app.Hint(err, "muntin agent resources lists the themes")
	}
	if err != nil {
		o.place.Notes = append(o.place.Notes, err.Error())
	}
	return nil
}

// tellNotes tells what was left out, where there is no screen for it.
func (o *opener) tellNotes() {
	for _, note := range append(o.place.Notes, o.place.Set.Problems()...) {
		fmt.Fprintf(o.App.Streams.Err, "muntin: %s\n", term.CleanLine(note))
	}
}

// expanded gives prompts with the text of a template in place of its name.
func expanded(h *harness.Harness, prompts []harness.Input) ([]harness.Input, error) {
	for i := range prompts {
		text, err := h.Expand(prompts[i].Text)
		if err != nil {
			return nil, err
		}
		prompts[i].Text = text
	}
	return prompts, nil
}

// retries are the policy for a number of retries, of which 0 means none.
func retries(n int) agent.RetryPolicy {
	if n == 0 {
		n = -1
	}
	return agent.RetryPolicy{MaxAttempts: n}
}

// open opens the conversation that the options name.
func (o *opener) open(ctx context.Context, withEvents func(*harness.Options)) (*harness.Harness, error) {
	path, err := o.Session.path(o.App, o.dir)
	if err != nil {
		return nil, err
	}
	return o.openAt(ctx, rpc.Place{File: path}, withEvents)
}

// openAt opens a conversation at a place. A model on the command line counts before
// the one that the conversation was held with.
func (o *opener) openAt(ctx context.Context, at rpc.Place, withEvents func(*harness.Options)) (*harness.Harness, error) {
	name := o.Model
	if at.Model != "" {
		name = at.Model
	}
	if name == "" && at.File != "" {
		name = lastModel(at.File)
	}
	found, err := o.gather(ctx)
	if err != nil {
		return nil, err
	}
	opts, err := o.options(ctx, at, found, name)
	if err != nil {
		opts.Extensions.Close()
		if found.More != nil {
			err = errors.Join(err, found.More.Close())
		}
		return nil, err
	}
	withEvents(&opts)
	o.ext, o.problems = opts.Extensions, found.Problems
	if opts.UI != nil && o.mode() != "tui" {
		for _, p := range o.problems {
			opts.UI.Notify(harness.Notice{Level: "warning", Text: p, Extension: "extensions"})
		}
	}
	h, err := harness.Open(ctx, opts)
	if err != nil {
		return nil, session.Explain(err)
	}
	if o.Name != "" && h.Session().Name() == "" && at.Parent == "" {
		err = h.Session().Rename(o.Name)
	}
	return h, err
}

// options are those of a conversation at a place with a model and what was found for
// it. With an error there may be extensions to close.
func (o *opener) options(ctx context.Context, at rpc.Place, found harness.Loaded, name string) (harness.Options, error) {
	a := o.App
	var opts harness.Options
	var err error
	if opts.Extensions, err = o.host(ctx, found.Extensions); err != nil {
		return opts, err
	}
	model, level, err := newModel(ctx, o.Options, opts.Extensions, name)
	if err != nil {
		return opts, err
	}
	if o.record, err = recorder(o.Options, &model); err != nil {
		return opts, err
	}
	switch {
	case at.Thinking != "":
		level = at.Thinking
	case o.Thinking != "":
		level = llm.Level(o.Thinking)
	}
	return harness.Options{
		Provider: model.Provider, Model: model.Name, Known: model.Known, Thinking: level, Dir: o.dir, Session: at.File, Parent: at.Parent,
		Tools: found.Tools, System: o.System, AppendSystem: o.Append, NoContext: found.NoContext,
		Env: toolEnv(a.Environ), SpillDir: spillDir(a, at.File), Now: a.Now, Changed: changedFiles(a),
		Compaction: found.Compaction, Retry: found.Retry, Resources: found.Resources, DefaultThinking: llm.Level(o.settings.Thinking),
		Extensions: opts.Extensions, More: found.More, Reload: o.reload,
	}, nil
}
