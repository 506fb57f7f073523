package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/resource"
	"muntin/cmd/internal/cli/app"
	extensions "muntin/cmd/internal/cli/extension"
	mcpcli "muntin/cmd/internal/cli/mcp"
	"muntin/cmd/internal/cli/resources"
	"muntin/internal/term"
)

// newResources makes `muntin agent resources`.
func newResources(a *app.App) *cobra.Command {
	var asJSON, trusted, untrusted bool
	cmd := &cobra.Command{
		Use: "resources", Short: "Show what an agent in this folder loads, from where, and what it does not", Args: app.Args(0, 0, ""),
		Long: "Context files, settings, skills, prompt templates, themes, packages and extensions. Of two with\n" +
			"one name the nearer counts: what the command line names, the project's, the user's,\n" +
			"then that of packages. A project's are withheld until its folder is trusted.",
		Example: "  muntin agent resources\n  muntin agent resources --trust    as it would be",
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			dir, err := app.Confirmed(a.Dir)
			if err != nil {
				return err
			}
			p, err := resources.Open(ctx, resources.Options{App: a, Dir: dir, Trust: trusted, NoTrust: untrusted})
			if err != nil {
				return err
			}
			beside, problems := extensionItems(a, p)
			p.Notes = append(p.Notes, problems...)
			r := report{Dir: dir, Project: p.Project, Trust: p.Trust, Items: slices.Concat(plainItems(a, p), p.Set.Items, beside)}
			if asJSON {
				return a.PrintJSON(r)
			}
			return r.print(a, p.Notes)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&trusted, "trust", false, "as if the folder was trusted")
	f.BoolVar(&untrusted, "no-trust", false, "as if it was not")
	cmd.MarkFlagsMutuallyExclusive("trust", "no-trust")
	return cmd
}

// report is what is loaded.
type report struct {
	Dir     string          `json:"dir"`
	Project string          `json:"project"`
	Trust   resources.Trust `json:"trust"`
	Items   []resource.Item `json:"items"`
}

// plainItems are the context files and the files of settings.
func plainItems(a *app.App, p *resources.Place) []resource.Item {
	files, err := resource.ContextFiles(p.Dir, a.Getenv("HOME"))
	items := []resource.Item{}
	for _, f := range files {
		item := resource.Item{Kind: resource.KindContext, Name: filepath.Base(f.Path), Path: f.Path, Source: resource.FromProject, State: resource.Loaded}
		if !p.Settings.ContextFiles {
			item.State, item.Why = resource.Shadowed, "by the setting context_files: false"
		}
		items = append(items, item)
	}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			items = append(items, resource.Item{Kind: resource.KindContext, Source: resource.FromProject, State: resource.Invalid, Why: e.Error()})
		}
	}
	for _, layer := range p.Layers {
		if len(layer.Data) > 0 {
			items = append(items, resource.Item{
				Kind: resource.KindSettings, Name: filepath.Base(layer.Path), Path: layer.Path, Source: resource.Source(layer.Scope), State: resource.Loaded,
			})
		}
	}
	return items
}

// extensionItems are the extensions, and the files of MCP servers.
func extensionItems(a *app.App, p *resources.Place) (items []resource.Item, problems []string) {
	all, problems := extensions.Find(a, p.Dir, p.Trust.Trusted, nil)
	for _, e := range all {
		items = append(items, resource.Item{
			Kind: resource.KindExtension, Name: e.Name, Path: e.Dir, Source: resource.Source(e.Source), State: resource.Loaded,
		})
	}
	for _, f := range mcpcli.Files(a, p.Dir, p.Trust.Trusted) {
		item := resource.Item{Kind: resource.KindMCP, Name: filepath.Base(f), Path: f, Source: resource.FromUser, State: resource.Loaded}
		if f == resource.OfProject(p.Project, resource.ServersFile) {
			item.Source = resource.FromProject
		}
		if _, err := os.Stat(f); err == nil {
			items = append(items, item)
		}
	}
	return items, problems
}

func (r report) print(a *app.App, notes []string) error {
	t := a.Theme
	word := t.Warn.Render("not trusted")
	if r.Trust.Trusted {
		word = t.Good.Render("trusted")
	}
	fmt.Fprintf(a.Streams.Out, "%s  %s (%s)\n\n", t.Strong.Render(term.CleanLine(r.Project)), word, term.CleanLine(r.Trust.Why))
	table := term.NewTable("KIND", "NAME", "FROM", "STATE", "PATH")
	for _, i := range r.Items {
		style := t.Good
		switch i.State {
		case resource.Loaded:
		case resource.Shadowed:
			style = t.Dim
		case resource.Withheld:
			style = t.Warn
		case resource.Invalid:
			style = t.Bad
		}
		from := string(i.Source)
		if i.Package != "" {
			from += " " + i.Package
		}
		text := term.CleanLine(i.Path)
		if i.Why != "" {
			text += "  " + t.Dim.Render(term.CleanLine(strings.TrimSpace(i.Why)))
		}
		table.Row(string(i.Kind), term.CleanLine(i.Name), term.CleanLine(from), style.Render(string(i.State)), text)
	}
	if err := table.Write(a.Streams.Out, t, 0); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(a.Streams.Err, "muntin: %s\n", term.CleanLine(note))
	}
	return nil
}
