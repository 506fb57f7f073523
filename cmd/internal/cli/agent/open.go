package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muntin/agent/compact"
	"muntin/agent/extension"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/rpc"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/session"
)

// an opener opens conversations as the options say.
type opener struct {
	Options
	dir    string       // the working folder
	record func() error // writes the recording of the conversation opened last

	ext      *extension.Host // of the conversation opened last; nil: none
	problems []string        // what was found wrong with its extensions
}

func newOpener(o Options) (*opener, error) {
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
	return &opener{Options: o, dir: dir, record: func() error { return nil }}, nil
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
	host, err := o.host(ctx)
	if err != nil {
		return nil, err
	}
	more, err := o.mcp(ctx)
	if err != nil {
		host.Close()
		return nil, err
	}
	opts, err := o.options(ctx, at, beside{host, more}, name)
	if err != nil {
		host.Close()
		if more != nil {
			err = errors.Join(err, more.Close())
		}
		return nil, err
	}
	withEvents(&opts)
	o.ext = host
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

// beside is where more comes from than muntin has; both may be nil.
type beside struct {
	host *extension.Host
	more harness.ToolSource
}

// options are those of a conversation at a place with a model and extensions.
func (o *opener) options(ctx context.Context, at rpc.Place, b beside, name string) (harness.Options, error) {
	a := o.App
	tools, err := toolNames(o.Options, names(b.host, b.more))
	if err != nil {
		return harness.Options{}, err
	}
	model, level, err := newModel(ctx, o.Options, b.host, name)
	if err != nil {
		return harness.Options{}, err
	}
	if o.record, err = recorder(o.Options, &model); err != nil {
		return harness.Options{}, err
	}
	switch {
	case at.Thinking != "":
		level = at.Thinking
	case o.Thinking != "":
		level = llm.Level(o.Thinking)
	}
	return harness.Options{
		Provider: model.Provider, Model: model.Name, Known: model.Known, Thinking: level, Dir: o.dir, Session: at.File, Parent: at.Parent,
		Tools: tools, System: o.System, AppendSystem: o.Append, NoContext: o.NoContext,
		Env: toolEnv(a.Environ), SpillDir: spillDir(a, at.File), Now: a.Now, Changed: changedFiles(a),
		Compaction: compact.Settings{Off: o.NoCompact, Window: o.Window},
		Extensions: b.host, More: b.more, Reload: o.reload,
	}, nil
}
