package resources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"muntin/agent/resource"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/internal/trust"
)

// NoSandbox is what must be known before somebody trusts a folder.
const NoSandbox = "Trust is not a sandbox: what is trusted can make the agent do anything that you can do."

// a question asks whether a project is trusted.
type question struct {
	app     *app.App
	store   *trust.Store
	project string
	brought []resource.Item
}

// ask asks until there is an answer; the end of the input is a no for this once.
func (q question) ask(ctx context.Context) (Trust, error) {
	a, t := q.app, q.app.Theme
	folder, err := ProjectOf(a, q.project)
	if err != nil {
		return Trust{}, err
	}
	folder, err = trust.Canonical(folder)
	if err != nil {
		return Trust{}, err
	}
	parent := filepath.Dir(folder)
	fmt.Fprintf(a.Streams.Out, "%s brings along what the agent would load:\n", t.Strong.Render(term.CleanLine(folder)))
	for _, item := range q.brought {
		fmt.Fprintf(a.Streams.Out, "  %s %s\n", term.CleanLine(item.Path), t.Dim.Render("("+describe(item)+")"))
	}
	fmt.Fprintf(a.Streams.Out, "%s\n", t.Warn.Render(NoSandbox))
	fmt.Fprintf(a.Streams.Out, "Do you trust it?\n  y      yes\n  p      yes, and all in %s\n  o      only this once\n  n      no, do not ask again\n  Enter  not now\n",
		term.CleanLine(parent))
	for {
		fmt.Fprint(a.Streams.Out, t.Accent.Render("y/p/o/n: "))
		line, err := readLine(ctx, a.Streams.In)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.Streams.Out)
			return Trust{Why: "there was no answer"}, nil
		}
		if err != nil {
			return Trust{}, fmt.Errorf("reading the answer: %w", err)
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return q.keep(ctx, folder, true)
		case "p", "parent":
			return q.keep(ctx, parent, true)
		case "o", "once":
			return Trust{Trusted: true, Why: "trusted this once"}, nil
		case "n", "no":
			return q.keep(ctx, folder, false)
		case "":
			return Trust{Why: "not trusted this once"}, nil
		}
	}
}

func (q question) keep(ctx context.Context, folder string, trusted bool) (Trust, error) {
	d, err := q.store.Decide(ctx, folder, trusted)
	return Trust{Trusted: trusted, Why: "decided now for " + d.Folder}, err
}

// describe says what a resource is for.
func describe(item resource.Item) string {
	switch item.Kind { //nolint:exhaustive // a project brings no others
	case resource.KindSettings:
		return "settings: the model, the tools and more"
	case resource.KindSystem:
		return "a part of the system prompt"
	case resource.KindSkill:
		return "skills: what the model is told to do, and programs for it"
	case resource.KindPrompt:
		return "prompt templates"
	case resource.KindExtension:
		return "extensions: programs that run beside the agent"
	case resource.KindMCP:
		return "MCP servers: programs that give the agent tools"
	}
	return string(item.Kind) + "s"
}

// readLine reads up to a line's end and no further: what follows is for whoever
// reads next.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	const limit = 1 << 10
	var line strings.Builder
	b := make([]byte, 1)
	for line.Len() < limit {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := in.Read(b)
		switch {
		case n == 1 && b[0] == '\n':
			return line.String(), nil
		case n == 1:
			line.WriteByte(b[0])
		case err != nil:
			return line.String(), err
		}
	}
	return "", fmt.Errorf("the line is longer than %d bytes: %w", limit, os.ErrInvalid)
}
