// Package resources loads what a person and a project have said for agents, in two
// phases: first the user's own, then, if the person trusts the folder, the
// project's. Nothing of the project is read before that is known.
package resources

import (
	"context"
	"fmt"
	"path/filepath"

	"muntin/agent/resource"
	"muntin/agent/resource/settings"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/internal/trust"
)

// Options say where to look and what the command line adds.
type Options struct {
	App     *app.App
	Dir     string // the working folder
	Trust   bool   // for this once
	NoTrust bool   // for this once
	Ask     bool   // a person sits at the terminal and may be asked
	Skills  []string
	Prompts []string
	Themes  []string
}

// A Place is a folder with all that holds in it.
type Place struct {
	Dir      string
	Project  string // the folder that trust is about
	Trust    Trust
	Settings settings.Settings
	Layers   []settings.Layer // the files that Settings are of, the user's first
	Set      *resource.Set
	Notes    []string // what is wrong, and what was left out, for the person
}

// Trust tells whether the project is trusted, and by what.
type Trust struct {
	Trusted bool   `json:"trusted"`
	Why     string `json:"why"`
	Open    bool   `json:"open"` // nobody has decided, and it would matter
}

// Open loads what holds in a folder.
func Open(ctx context.Context, o Options) (*Place, error) {
	a := o.App
	p := &Place{Dir: o.Dir, Project: resource.Project(o.Dir)}
	if path := resource.UserSettings(a.Layout.Config); path != "" {
		layer, err := settings.Read(settings.User, path)
		if err != nil {
			p.Notes = append(p.Notes, err.Error())
		}
		p.Layers = append(p.Layers, layer)
	}
	own, problems := settings.Resolve(p.Layers...)
	brought := resource.Brought(o.Dir, resource.Own(a.Getenv("HOME"), a.Layout.Config)...)
	var err error
	if p.Trust, err = decide(ctx, o, own.Trust, p.Project, brought); err != nil {
		return nil, err
	}
	p.Settings = own
	if p.Trust.Trusted {
		layer, err := settings.Read(settings.Project, resource.SettingsFile(p.Project))
		if err != nil {
			p.Notes = append(p.Notes, err.Error())
		}
		p.Layers = append(p.Layers, layer)
		p.Settings, problems = settings.Resolve(p.Layers...)
	}
	for _, x := range problems {
		p.Notes = append(p.Notes, "settings "+term.CleanLine(x.String()))
	}
	p.Set = resource.Load(resource.Options{
		Dir: o.Dir, Home: a.Getenv("HOME"), Config: a.Layout.Config, Trusted: p.Trust.Trusted,
		Skills: absolute(o.Dir, o.Skills), Prompts: absolute(o.Dir, o.Prompts), Themes: absolute(o.Dir, o.Themes), Settings: p.Settings,
	})
	if p.Trust.Open {
		p.Notes = append(p.Notes, fmt.Sprintf("not loaded, since nobody has decided whether the folder is trusted: %s; see muntin trust --help",
			names(p.Project, brought)))
	}
	return p, nil
}

// absolute takes paths of the command line relative to dir.
func absolute(dir string, paths []string) []string {
	var all []string
	for _, path := range paths {
		if !filepath.IsAbs(path) && (len(path) < 2 || path[:2] != "~/") {
			path = filepath.Join(dir, path)
		}
		all = append(all, path)
	}
	return all
}

// Store is the person's decisions on trust.
func Store(a *app.App) *trust.Store { return trust.NewStore(a.Layout.Trust(), a.Now) }

// decide tells whether the project is trusted: what the command line says, else the
// nearest decision, else the user's setting, else the person's answer.
func decide(ctx context.Context, o Options, setting, project string, brought []resource.Item) (Trust, error) {
	switch {
	case o.Trust:
		return Trust{Trusted: true, Why: "--trust"}, nil
	case o.NoTrust:
		return Trust{Why: "--no-trust"}, nil
	case len(brought) == 0:
		return Trust{Why: "it brings nothing along"}, nil
	}
	store := Store(o.App)
	verdict, err := store.Lookup(trust.PlaceOf(o.App.Layout, project))
	if err != nil {
		return Trust{}, app.Hint(err, "repair or remove the file; --no-trust goes on without the folder's own")
	}
	if verdict.Known {
		return Trust{Trusted: verdict.Trusted, Why: fmt.Sprintf("decided on %s for %s", verdict.At.Format("2006-01-02"), verdict.Folder)}, nil
	}
	switch {
	case setting == settings.TrustAlways:
		return Trust{Trusted: true, Why: "the setting trust: always"}, nil
	case setting == settings.TrustNever:
		return Trust{Why: "the setting trust: never"}, nil
	case !o.Ask:
		return Trust{Why: "nobody has decided", Open: true}, nil
	}
	return question{app: o.App, store: store, project: project, brought: brought}.ask(ctx)
}

// ProjectOf is the folder that trust is about for a folder: where the top of its
// repository is a worktree that muntin made, that of the repository it was made of.
func ProjectOf(a *app.App, dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	project := resource.Project(abs)
	if p := trust.PlaceOf(a.Layout, project); p.Main != "" {
		return p.Main, nil
	}
	return project, nil
}

// Editor is the command that the user's settings name for long texts; "" when
// they name none.
func Editor(a *app.App) (string, error) {
	path := resource.UserSettings(a.Layout.Config)
	if path == "" {
		return "", nil
	}
	layer, err := settings.Read(settings.User, path)
	if err != nil {
		return "", err
	}
	s, _ := settings.Resolve(layer)
	return s.Editor, nil
}

func names(project string, items []resource.Item) string {
	text := ""
	for i, item := range items {
		if i > 0 {
			text += ", "
		}
		rel, err := filepath.Rel(project, item.Path)
		if err != nil {
			rel = item.Path
		}
		text += term.CleanLine(rel)
	}
	return text
}
