package agent

import (
	"context"

	"muntin/agent"
	"muntin/agent/acp"
	"muntin/agent/harness"
	"muntin/cmd/internal/cli/app"
)

// runACP lets an editor drive the agent. Each of its sessions is a conversation of its
// own, in the folder that the editor names.
func runACP(ctx context.Context, o Options) error {
	a := o.App
	if len(o.Args) > 0 || o.Print || o.Mode != "" || o.Record != "" {
		return app.Usage("prompts come from the editor with --acp: no arguments, -p, --mode or --record")
	}
	if o.Session.File != "" || o.Session.Continue || o.Session.Resume != "" || o.Session.Fork != "" {
		return app.Usage("an editor's conversations are new ones: no --session, --continue, --resume or --fork with --acp")
	}
	op, err := newOpener(ctx, o, false)
	if err != nil {
		return err
	}
	ctx, stop := a.Signals(ctx)
	defer stop()
	return acp.Serve(ctx, acp.Options{
		In: a.Streams.In, Out: a.Streams.Out, Version: a.Version,
		Open: func(ctx context.Context, dir string, onEvent func(agent.Event), ui harness.UI) (*harness.Harness, error) {
			dir, err := app.Confirmed(dir)
			if err != nil {
				return nil, err
			}
			here := opener{given: op.given, record: op.record}
			if err := here.enter(ctx, dir, false); err != nil {
				return nil, err
			}
			here.tellNotes()
			return here.open(ctx, func(opts *harness.Options) { opts.OnEvent, opts.UI = onEvent, ui })
		},
	})
}
