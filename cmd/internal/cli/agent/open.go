package agent

import (
	"context"
	"fmt"
	"slices"

	"muntin/agent/compact"
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
	a, name := o.App, o.Model
	if at.Model != "" {
		name = at.Model
	}
	if name == "" && at.File != "" {
		name = lastModel(at.File)
	}
	tools, err := toolNames(o.Options)
	if err != nil {
		return nil, err
	}
	model, level, err := newModel(ctx, o.Options, name)
	if err != nil {
		return nil, err
	}
	if o.record, err = recorder(o.Options, &model); err != nil {
		return nil, err
	}
	switch {
	case at.Thinking != "":
		level = at.Thinking
	case o.Thinking != "":
		level = llm.Level(o.Thinking)
	}
	opts := harness.Options{
		Provider: model.Provider, Model: model.Name, Known: model.Known, Thinking: level, Dir: o.dir, Session: at.File, Parent: at.Parent,
		Tools: tools, System: o.System, AppendSystem: o.Append, NoContext: o.NoContext,
		Env: toolEnv(a.Environ), SpillDir: spillDir(a, at.File), Now: a.Now, Changed: changedFiles(a),
		Compaction: compact.Settings{Off: o.NoCompact, Window: o.Window},
	}
	withEvents(&opts)
	h, err := harness.Open(ctx, opts)
	if err != nil {
		return nil, session.Explain(err)
	}
	if o.Name != "" && h.Session().Name() == "" && at.Parent == "" {
		err = h.Session().Rename(o.Name)
	}
	return h, err
}
