package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"muntin/agent/compact"
	"muntin/agent/extension"
	"muntin/agent/harness"
	"muntin/agent/mcp"
	"muntin/cmd/internal/cli/app"
	extensions "muntin/cmd/internal/cli/extension"
	mcpcli "muntin/cmd/internal/cli/mcp"
	"muntin/internal/term"
)

// gather finds what a conversation is made of beside its model, as the options and
// settings say. No program of an extension is started.
func (o *opener) gather(ctx context.Context) (harness.Loaded, error) {
	l := harness.Loaded{
		NoContext: o.NoContext, Resources: o.place.Set, Retry: retries(o.settings.Retry.Attempts),
		Compaction: compact.Settings{
			Off: o.NoCompact, Window: o.Window, Reserve: o.settings.Compaction.Reserve, Keep: o.settings.Compaction.Keep,
		},
	}
	if !o.NoExtensions {
		trusted := o.place.Trust.Trusted
		l.Extensions, l.Problems = extensions.Find(o.App, o.dir, trusted, o.Extensions)
		config, err := mcpcli.Config(o.App, o.dir, trusted)
		if err != nil {
			return l, err
		}
		if len(config) > 0 {
			source, problems := mcp.Open(ctx, mcpcli.Options(o.App, config, o.dir))
			l.More, l.Problems = source, append(l.Problems, problems...)
		}
	}
	var err error
	if l.Tools, err = toolNames(o.Options, names(l)); err != nil && l.More != nil {
		err = errors.Join(err, l.More.Close())
	}
	return l, err
}

// reload is gather once more, with what the settings say now.
func (o *opener) reload(ctx context.Context) (harness.Loaded, error) {
	next := *o
	if err := next.enter(ctx, o.dir, false); err != nil {
		return harness.Loaded{}, err
	}
	l, err := next.gather(ctx)
	if err != nil {
		return l, err
	}
	o.Options, o.place, o.theme = next.Options, next.place, next.theme
	l.Problems = append(slices.Clone(o.place.Notes), l.Problems...)
	return l, nil
}

// host makes the host of a conversation's extensions, also where there are none yet;
// nil when there shall be none.
func (o *opener) host(ctx context.Context, all []extension.Extension) (*extension.Host, error) {
	if o.NoExtensions {
		return nil, nil
	}
	return extensions.NewHost(ctx, o.App, all, extensions.Setup{
		Dir: o.dir, Mode: o.mode(), Flags: o.ExtensionFlags, Env: toolEnv(o.App.Environ),
	})
}

func (o *opener) mode() string {
	switch {
	case o.ACP:
		return "acp"
	case o.Mode == "json" || o.Mode == "rpc":
		return o.Mode
	case o.Print || o.Mode != "":
		return "print"
	}
	return "tui"
}

// names are the names of the tools of extensions and of another source.
func names(l harness.Loaded) []string {
	var all []string
	for _, e := range l.Extensions {
		for _, t := range e.Tools {
			all = append(all, t.Name)
		}
	}
	if l.More != nil {
		for _, t := range l.More.Tools() {
			all = append(all, t.Spec().Name)
		}
	}
	return all
}

// headless shows what extensions say on standard error, where nobody can be asked.
type headless struct {
	app *app.App
	mu  sync.Mutex // held while it writes
}

// Ask implements harness.UI.
func (h *headless) Ask(context.Context, harness.Question) harness.Answer { return harness.Answer{} }

// Notify implements harness.UI.
func (h *headless) Notify(n harness.Notice) {
	if n.Level == harness.LevelReply {
		return // it is the outcome of the prompt
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(h.app.Streams.Err, "%s %s\n", h.app.Theme.Warn.Render(n.Extension+":"), strings.TrimRight(term.Clean(n.Text), "\n"))
}

// Status implements harness.UI.
func (h *headless) Status(harness.Status) {}
