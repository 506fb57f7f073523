// Package resources loads what a person and a project have said for agents, in two
// phases: first the user's own, then, if the person trusts the folder, the
// project's. Nothing of the project is read before that is known.
package resources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"muntin/agent/extension/skill"
	"muntin/agent/resource"
	"muntin/agent/resource/pack"
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

// Decide tells whether the project that a folder lies in is trusted, for whatever it
// brings along, in the way that Open does: settings, skills and extensions have one
// decision.
func Decide(ctx context.Context, o Options) (Trust, error) {
	p := &Place{Dir: o.Dir, Project: resource.Project(o.Dir)}
	own, _ := p.own(o.App)
	return decide(ctx, o, own.Trust, brought(o))
}

// own resolves the user's own settings, the first layer.
func (p *Place) own(a *app.App) (settings.Settings, []settings.Problem) {
	if path := resource.UserSettings(a.Layout.Config); path != "" {
		layer, err := settings.Read(settings.User, path)
		if err != nil {
			p.Notes = append(p.Notes, err.Error())
		}
		p.Layers = append(p.Layers, layer)
	}
	return settings.Resolve(p.Layers...)
}

func brought(o Options) []resource.Item {
	return resource.Brought(o.Dir, resource.Own(o.App.Getenv("HOME"), o.App.Layout.Config)...)
}

// Open loads what holds in a folder.
func Open(ctx context.Context, o Options) (*Place, error) {
	a := o.App
	p := &Place{Dir: o.Dir, Project: resource.Project(o.Dir)}
	own, problems := p.own(a)
	brought := brought(o)
	var err error
	if p.Trust, err = decide(ctx, o, own.Trust, brought); err != nil {
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
	builtIn := filepath.Join(a.Layout.State, "skills")
	if err := skill.Write(builtIn); err != nil {
		p.Notes = append(p.Notes, err.Error())
		builtIn = ""
	}
	packages, broken := packages(a)
	p.Set = resource.Load(resource.Options{
		Dir: o.Dir, Home: a.Getenv("HOME"), Config: a.Layout.Config, Trusted: p.Trust.Trusted,
		Skills: absolute(o.Dir, o.Skills), Prompts: absolute(o.Dir, o.Prompts), Themes: absolute(o.Dir, o.Themes), Settings: p.Settings, Packages: packages,
		BuiltIn: builtIn,
	})
	p.Set.Items = append(p.Set.Items, broken...)
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

// Packages is the person's packages.
func Packages(a *app.App) pack.Store {
	return pack.Store{Lock: filepath.Join(a.Layout.Config, "packages.json"), Dir: filepath.Join(a.Layout.State, "packages"), Env: a.Environ, Now: a.Now}
}

// packages gives those whose files are here, and an item for each of the others.
func packages(a *app.App) ([]resource.Package, []resource.Item) {
	if a.Layout.Config == "" {
		return nil, nil
	}
	store := Packages(a)
	broken := func(name string, path string, err error) resource.Item {
		return resource.Item{Kind: resource.KindPackage, Name: name, Path: path, Source: resource.FromUser, State: resource.Invalid, Why: err.Error()}
	}
	entries, err := store.List()
	if err != nil {
		return nil, []resource.Item{broken("", store.Lock, err)}
	}
	var all []resource.Package
	var items []resource.Item
	for _, e := range entries {
		p, err := store.Package(e)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; muntin package sync fetches them", err)
		}
		if err != nil {
			items = append(items, broken(e.Name, store.Folder(e), err))
			continue
		}
		all = append(all, p)
	}
	return all, items
}

// Store is the person's decisions on trust.
func Store(a *app.App) *trust.Store { return trust.NewStore(a.Layout.Trust(), a.Now) }

// decide tells whether the project is trusted: what the command line says, else the
// nearest decision, else the user's setting, else the person's answer.
func decide(ctx context.Context, o Options, setting string, brought []resource.Item) (Trust, error) {
	project := resource.Project(o.Dir)
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
