package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"muntin/agent/extension"
	"muntin/agent/harness"
	"muntin/agent/mcp"
	"muntin/cmd/internal/cli/app"
	extensions "muntin/cmd/internal/cli/extension"
	mcpcli "muntin/cmd/internal/cli/mcp"
	"muntin/internal/term"
)

// host makes the host of the conversation's extensions; nil when there are none. No
// program is started.
func (o *opener) host(ctx context.Context) (*extension.Host, error) {
	if o.NoExtensions {
		return nil, nil
	}
	all, problems, err := extensions.Find(o.App, o.dir, o.Extensions)
	if err != nil {
		return nil, err
	}
	o.problems = problems
	if len(all) == 0 && len(o.ExtensionFlags) == 0 {
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

// mcp are the tools of the MCP servers; nil when none is configured.
func (o *opener) mcp(ctx context.Context) (harness.ToolSource, error) {
	if o.NoExtensions {
		return nil, nil
	}
	config, problems, err := mcpcli.Config(o.App, o.dir)
	if err != nil {
		return nil, err
	}
	o.problems = append(o.problems, problems...)
	if len(config) == 0 {
		return nil, nil
	}
	source, problems := mcp.Open(ctx, mcpcli.Options(o.App, config, o.dir))
	o.problems = append(o.problems, problems...)
	return source, nil
}

// names are the names of the tools of extensions and of another source.
func names(h *extension.Host, more harness.ToolSource) []string {
	tools := h.Tools()
	if more != nil {
		tools = append(tools, more.Tools()...)
	}
	var all []string
	for _, t := range tools {
		all = append(all, t.Spec().Name)
	}
	return all
}

// reload finds the extensions anew.
func (o *opener) reload() ([]extension.Extension, []string, error) {
	return extensions.Find(o.App, o.dir, o.Extensions)
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
