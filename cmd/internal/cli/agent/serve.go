package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm/catalog"
	"muntin/agent/rpc"
	"muntin/agent/session"
	"muntin/agent/session/export"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/models"
)

// runServe lets another program drive the agent. The first signal is an orderly
// end, the second ends the process.
func runServe(ctx context.Context, o Options) error {
	a := o.App
	if len(o.Args) > 0 {
		return app.Usage("prompts and files come as commands with --mode rpc, not as arguments")
	}
	if o.Record != "" {
		return app.Usage("--record is for one model; with --mode rpc there may be several")
	}
	op, err := newOpener(ctx, o, false)
	if err != nil {
		return err
	}
	op.tellNotes()
	path, err := o.Session.path(a, op.dir)
	if err != nil {
		return err
	}
	shop, err := models.NewShop(a)
	if err != nil {
		return err
	}
	scope, err := scopeOf(ctx, shop, o)
	if err != nil {
		return err
	}
	ctx, stop := a.Signals(ctx)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	var server *rpc.Server
	server = rpc.NewServer(rpc.Options{
		In: a.Streams.In, Out: a.Streams.Out, Scope: scope, Models: shop.Available, Export: exportTo(op.dir),
		Open: func(ctx context.Context, at rpc.Place, onEvent func(agent.Event)) (*harness.Harness, error) {
			return op.openAt(ctx, at, func(opts *harness.Options) {
				opts.OnEvent, opts.UI, opts.OnWaiting = onEvent, server, server.Waiting
			})
		},
		NewFile: func() (string, error) {
			return Conversation{None: o.Session.None, Dir: o.Session.Dir}.path(a, op.dir)
		},
		OpenModel: func(ctx context.Context, name string) (harness.Model, error) {
			m, _, err := newModel(ctx, op.Options, op.ext, name)
			if err == nil && m.Name != name {
				err = fmt.Errorf("it means %s", m.Name)
			}
			return m, err
		},
	})
	return server.Serve(ctx, rpc.Place{File: path})
}

// scopeOf are the models of --models.
func scopeOf(ctx context.Context, shop *models.Shop, o Options) ([]rpc.Scope, error) {
	var scope []rpc.Scope
	for _, pattern := range o.Models {
		name, level := catalog.Split(pattern)
		found := 0
		for _, m := range shop.Available() {
			full := m.Provider + "/" + m.ID
			byName, err := filepath.Match(name, full)
			byID, _ := filepath.Match(name, m.ID)
			if err != nil {
				return nil, app.Usage("--models %s: %w", pattern, err)
			}
			if byName || byID {
				scope = append(scope, rpc.Scope{Name: full, Thinking: level})
				found++
			}
		}
		if found > 0 {
			continue
		}
		c, err := shop.Open(ctx, models.Options{Name: pattern, BaseURL: o.BaseURL, APIKey: o.APIKey})
		if err != nil {
			return nil, err
		}
		scope = append(scope, rpc.Scope{Name: c.Name, Thinking: c.Level})
	}
	return scope, nil
}

// exportTo writes pages; those without a name go into the working folder.
func exportTo(dir string) func(path string, s *session.Session) (string, error) {
	return func(path string, s *session.Session) (string, error) {
		if path == "" {
			path = filepath.Join(dir, "muntin-session-"+s.Header().ID+".html")
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return "", fmt.Errorf("exporting the session: %w", err)
		}
		return path, errors.Join(export.HTML(f, s), f.Close())
	}
}
