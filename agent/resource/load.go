package resource

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/agent/resource/settings"
)

// A Kind is a kind of resource.
type Kind string

// The kinds of resources.
const (
	KindContext   Kind = "context"
	KindSettings  Kind = "settings"
	KindSystem    Kind = "system"
	KindSkill     Kind = "skill"
	KindPrompt    Kind = "prompt"
	KindTheme     Kind = "theme"
	KindPackage   Kind = "package"
	KindExtension Kind = "extension" // this package names their folders; who runs them loads them
	KindMCP       Kind = "mcp"       // likewise
)

// A Source says where a resource comes from, the nearest first.
type Source string

// The sources.
const (
	FromFlag    Source = "command line"
	FromProject Source = "project"
	FromUser    Source = "user"
	FromPackage Source = "package"
	FromMuntin  Source = "muntin" // it comes with the program
)

// A State says what became of a resource.
type State string

// The states.
const (
	Loaded   State = "loaded"
	Shadowed State = "shadowed" // another of its name is nearer
	Withheld State = "withheld" // its folder is not trusted; it was not read
	Invalid  State = "invalid"
)

// An Item is one resource that was found.
type Item struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`
	Path    string `json:"path"`
	Source  Source `json:"source"`
	Package string `json:"package,omitempty"`
	State   State  `json:"state"`
	Why     string `json:"why,omitempty"` // it is not loaded
}

// Options say where to look. Dir is needed.
type Options struct {
	Dir      string // the working folder
	Home     string // the user's home folder; "": none
	Config   string // the user's folder of settings; "": none
	Trusted  bool   // the person trusts the project that Dir lies in
	Skills   []string
	Prompts  []string
	Themes   []string
	Settings settings.Settings
	Packages []Package
	BuiltIn  string // a folder with the skills that come with the program; "": none
}

// A Package is a folder with skills, prompts and themes.
type Package struct {
	Name    string
	Dir     string
	Skills  []string // folders in Dir
	Prompts []string
	Themes  []string
}

// A Set is what was found.
type Set struct {
	Skills    []Skill
	Templates []Template
	Themes    []Theme
	System    File // in place of the system prompt's own words; without a Path there is none
	Append    File // added to the system prompt
	Items     []Item
}

// Names in a project's folder, and in the user's.
const (
	projectDir = ".muntin"
	agentsDir  = ".agents" // shared by agents: only skills are in it
)

// Names in both of what others load.
const (
	ExtensionsFolder = "extensions"
	ServersFile      = "mcp.json"
)

// OfProject is the path of a name in the folder of a project's own.
func OfProject(project, name string) string { return filepath.Join(project, projectDir, name) }

// Project is the folder that trust is asked for and that project settings lie in:
// the top of the repository that dir lies in, else dir.
func Project(dir string) string { return folders(dir, "")[0] }

// Brought gives what a project would load if it was trusted, by looking at names
// only. dir is the working folder; own are folders of the user's that are no
// project's even where they lie in one.
func Brought(dir string, own ...string) []Item {
	var all []Item
	for _, r := range projectRoots(dir) {
		if slices.Contains(own, r.path) {
			continue
		}
		if info, err := os.Lstat(r.path); err == nil && (info.IsDir() || r.file || info.Mode()&os.ModeSymlink != 0) {
			all = append(all, Item{Kind: r.kind, Name: filepath.Base(r.path), Path: r.path, Source: FromProject})
		}
	}
	return all
}

// a root is a folder, or a file, that resources of one kind come from.
type root struct {
	kind   Kind
	path   string
	source Source
	pack   string
	file   bool
	named  bool // a person named it: it is told when it is not there
}

// projectRoots are all that a project can bring, the nearest first.
func projectRoots(dir string) []root {
	top := Project(dir)
	in := func(kind Kind, name string, file bool) root {
		return root{kind: kind, path: filepath.Join(top, projectDir, name), source: FromProject, file: file}
	}
	all := []root{
		in(KindSettings, "settings.yaml", true), in(KindSystem, systemFile, true), in(KindSystem, appendFile, true),
		in(KindSkill, "skills", false), in(KindPrompt, "prompts", false), in(KindTheme, "themes", false),
		in(KindExtension, ExtensionsFolder, false), in(KindMCP, ServersFile, true),
	}
	up := folders(dir, "")
	slices.Reverse(up)
	for _, d := range up {
		all = append(all, root{kind: KindSkill, path: filepath.Join(d, agentsDir, "skills"), source: FromProject})
	}
	return all
}

// SettingsFile is a project's file of settings.
func SettingsFile(project string) string { return filepath.Join(project, projectDir, "settings.yaml") }

// UserSettings is the user's file of settings; "" where there is no folder for it.
func UserSettings(config string) string {
	if config == "" {
		return ""
	}
	return filepath.Join(config, "settings.yaml")
}

// Own are the user's own folders, which are no project's wherever they lie.
func Own(home, config string) []string {
	var all []string
	if home != "" {
		all = append(all, filepath.Join(home, agentsDir, "skills"))
	}
	if config != "" {
		all = append(all, filepath.Join(config, "skills"), filepath.Join(config, "prompts"), filepath.Join(config, "themes"),
			filepath.Join(config, ExtensionsFolder), filepath.Join(config, ServersFile))
	}
	return all
}

// Load finds all resources. What is wrong with one is told in its item, and the
// others count.
func Load(o Options) *Set {
	l := loader{set: &Set{}, seen: map[string]Item{}, paths: map[string]bool{}}
	for _, r := range roots(o) {
		l.root(r)
	}
	if !o.Trusted {
		for _, item := range Brought(o.Dir, Own(o.Home, o.Config)...) {
			item.State, item.Why = Withheld, "the folder is not trusted"
			l.set.Items = append(l.set.Items, item)
		}
	}
	return l.set
}

// roots are all folders to look in, the nearest first.
func roots(o Options) []root {
	var all []root
	add := func(from Source, dir string, named bool, skills, prompts, themes []string) {
		for _, x := range []struct {
			kind  Kind
			paths []string
		}{{KindSkill, skills}, {KindPrompt, prompts}, {KindTheme, themes}} {
			for _, p := range x.paths {
				all = append(all, root{kind: x.kind, path: resolved(p, dir, o.Home), source: from, named: named})
			}
		}
	}
	add(FromFlag, o.Dir, true, o.Skills, o.Prompts, o.Themes)
	own := Own(o.Home, o.Config)
	if o.Trusted {
		scoped(o, settings.Project, add)
		for _, r := range projectRoots(o.Dir) {
			if !slices.Contains(own, r.path) {
				all = append(all, r)
			}
		}
	}
	scoped(o, settings.User, add)
	if o.Config != "" {
		for _, name := range []string{systemFile, appendFile} {
			all = append(all, root{kind: KindSystem, path: filepath.Join(o.Config, name), source: FromUser, file: true})
		}
		add(FromUser, o.Config, false, []string{"skills"}, []string{"prompts"}, []string{"themes"})
	}
	if o.Home != "" {
		add(FromUser, filepath.Join(o.Home, agentsDir), false, []string{"skills"}, nil, nil)
	}
	for _, p := range o.Packages {
		at := len(all)
		add(FromPackage, p.Dir, false, p.Skills, p.Prompts, p.Themes)
		for i := range all[at:] {
			all[at+i].pack = p.Name
		}
	}
	if o.BuiltIn != "" {
		add(FromMuntin, o.BuiltIn, true, []string{"."}, nil, nil)
	}
	return all
}

// scoped adds the folders that the settings of one scope name.
func scoped(o Options, scope settings.Scope, add func(from Source, dir string, named bool, skills, prompts, themes []string)) {
	from := FromUser
	dir := o.Config
	if scope == settings.Project {
		from, dir = FromProject, Project(o.Dir)
	}
	s := o.Settings
	add(from, dir, true, s.Of("skills", scope), s.Of("prompts", scope), s.Of("themes", scope))
}

// resolved is a path as a person writes it, relative to dir or to the home folder.
func resolved(path, dir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

type loader struct {
	set   *Set
	seen  map[string]Item // by kind and name
	paths map[string]bool // roots that were looked at
}

func (l *loader) root(r root) {
	key := string(r.kind) + " " + r.path
	if l.paths[key] {
		return
	}
	l.paths[key] = true
	info, err := os.Stat(r.path)
	if err != nil || info.IsDir() == r.file {
		if err == nil {
			err = fmt.Errorf("it is a %s", map[bool]string{true: "folder", false: "file"}[info.IsDir()])
		}
		if r.named || !os.IsNotExist(err) {
			l.invalid(Item{Kind: r.kind, Name: filepath.Base(r.path), Path: r.path, Source: r.source, Package: r.pack}, plainError(err))
		}
		return
	}
	switch r.kind { //nolint:exhaustive // the others have no folders, or others load them
	case KindSkill:
		l.skills(r)
	case KindPrompt:
		l.templates(r)
	case KindTheme:
		l.themes(r)
	case KindSystem:
		l.system(r)
	}
}

// first takes an item unless a nearer one has its name.
func (l *loader) first(item Item) bool {
	key := string(item.Kind) + " " + item.Name
	if nearer, ok := l.seen[key]; ok {
		item.State, item.Why = Shadowed, "by "+nearer.Path
		l.set.Items = append(l.set.Items, item)
		return false
	}
	item.State = Loaded
	l.seen[key] = item
	l.set.Items = append(l.set.Items, item)
	return true
}

func (l *loader) invalid(item Item, err error) {
	item.State, item.Why = Invalid, strings.Join(strings.Split(err.Error(), "\n"), "; ")
	l.set.Items = append(l.set.Items, item)
}

// Problems tells of what is invalid, a line each.
func (s *Set) Problems() []string {
	var all []string
	for _, i := range s.Items {
		if i.State == Invalid {
			all = append(all, fmt.Sprintf("%s %s: %s", i.Kind, i.Path, i.Why))
		}
	}
	return all
}

// Withheld gives the paths of what was not read.
func (s *Set) Withheld() []string {
	var all []string
	for _, i := range s.Items {
		if i.State == Withheld {
			all = append(all, i.Path)
		}
	}
	return all
}
