package foreign

import (
	"path"
	"slices"
	"strings"

	"muntin/recipes"
	"muntin/recipes/internal/tree"
)

// A window is one of a tmux project.
type window struct {
	name   string
	layout string
	panes  int
}

// tmuxinator reads a project of tmuxinator: windows with a layout and panes, of
// which each is a line, or several, to type into a shell.
func (im *importer) tmuxinator(f File) {
	root := im.parse(f)
	if root == nil {
		return
	}
	if strings.Contains(string(f.Text), "<%") {
		im.lose(root.At, "the ERB template: its marks stay in the texts as they are")
	}
	im.recipe.Name = slug(first(im.text(root, "name"), im.text(root, "project_name")), "")
	im.directory(root, "root")
	im.directory(root, "project_root")
	var windows []window
	for _, n := range append(list(root.Take("windows").Value), list(root.Take("tabs").Value)...) {
		if n.Kind != tree.Map {
			windows = append(windows, im.window(n, clean(n.Text), ""))
			continue
		}
		for _, pair := range n.Pairs {
			windows = append(windows, im.inatorWindow(pair))
		}
	}
	im.rest(root, ": agents are programs of their own, no lines typed into a shell")
	im.layout(windows)
	im.needAgents(root)
}

func (im *importer) inatorWindow(pair tree.Pair) window {
	n := pair.Value
	if n.Kind != tree.Map {
		w := window{name: pair.Key, panes: 1} // a list is lines of one pane
		im.pane(n.At, pair.Key, lines(n))
		return w
	}
	layout := im.text(n, "layout")
	dir := im.directory(n, "root")
	w := window{name: pair.Key, layout: layout}
	for _, p := range list(n.Take("panes").Value) {
		title := pair.Key
		if p.Kind == tree.Map && len(p.Pairs) > 0 {
			title, p = p.Pairs[0].Key, p.Pairs[0].Value
		}
		im.pane(p.At, title, lines(p))
		im.last().Dir = dir
		w.panes++
	}
	im.rest(n, "")
	return w
}

// window is a window of one pane.
func (im *importer) window(n *tree.Node, name, layout string) window {
	im.pane(n.At, name, nil)
	return window{name: name, layout: layout, panes: 1}
}

// tmuxp reads a session of tmuxp.
func (im *importer) tmuxp(f File) {
	root := im.parse(f)
	if root == nil {
		return
	}
	im.recipe.Name = slug(im.text(root, "session_name"), "")
	im.directory(root, "start_directory")
	var windows []window
	for _, n := range list(root.Take("windows").Value) {
		if n.Kind != tree.Map {
			im.problems.Add(n.At, "windows: want keys and values, got %s", n.Describe())
			return
		}
		w := window{name: im.text(n, "window_name"), layout: im.text(n, "layout")}
		dir := im.directory(n, "start_directory")
		for _, p := range list(n.Take("panes").Value) {
			im.muxpPane(p, w.name, dir)
			w.panes++
		}
		im.rest(n, "")
		windows = append(windows, w)
	}
	im.rest(root, "")
	im.layout(windows)
	im.needAgents(root)
}

func (im *importer) muxpPane(p *tree.Node, name, dir string) {
	if p.Kind != tree.Map {
		commands := lines(p)
		if len(commands) == 1 && slices.Contains([]string{"blank", "pane"}, commands[0]) {
			commands = nil // tmuxp's words for an empty shell
		}
		im.pane(p.At, name, commands)
		im.last().Dir = dir
		return
	}
	im.pane(p.At, name, lines(p.Take("shell_command").Value))
	im.last().Dir = dir
	if own := im.directory(p, "start_directory"); own != "" {
		im.last().Dir = own
	}
	p.Take("focus")
	im.rest(p, "")
}

// lines are the commands of a pane.
func lines(n *tree.Node) []string {
	var out []string
	for _, item := range list(n) {
		if item.Kind == tree.Map {
			item = item.Get("cmd") // tmuxp's long form
		}
		if item != nil && item.Scalar() && item.Kind != tree.Null && strings.TrimSpace(item.Text) != "" {
			out = append(out, clean(item.Text))
		}
	}
	return out
}

// pane adds an agent for a pane. A line that a shell has to read stays one.
func (im *importer) pane(at tree.Place, name string, commands []string) {
	a := recipes.Agent{Name: im.agentName(name), Role: recipes.RoleAssistant, Isolation: recipes.IsolationNone}
	const shell = "'\"\\$`|&;<>(){}*?#~=[]!\n"
	switch {
	case len(commands) == 0:
		a.Command = []string{"sh"}
		im.lose(at, "the shell that a person uses: agent %s is sh", a.Name)
	case len(commands) == 1 && !strings.ContainsAny(commands[0], shell):
		a.Command = strings.Fields(commands[0])
	default:
		a.Command = []string{"sh", "-c", strings.Join(commands, "\n")}
	}
	im.recipe.Agents = append(im.recipe.Agents, a)
}

func (im *importer) last() *recipes.Agent { return &im.recipe.Agents[len(im.recipe.Agents)-1] }

// directory takes a folder that lies in the repository.
func (im *importer) directory(n *tree.Node, key string) string {
	at := tree.Place{}
	if v := n.Get(key); v != nil {
		at = v.At
	}
	dir := im.text(n, key)
	clean := path.Clean(dir)
	switch {
	case dir == "" || clean == ".":
		return ""
	case path.IsAbs(dir) || strings.HasPrefix(dir, "~") || strings.ContainsAny(dir, "$<\n\t") || strings.HasPrefix(clean, "..") || strings.Contains(strings.ToLower(clean), ".git"):
		im.lose(at, "%s: %s: agents work in the repository that muntin is started in", key, dir)
		return ""
	}
	return clean
}

// layout chooses what comes nearest to the windows of the project.
func (im *importer) layout(windows []window) {
	most, style := 0, ""
	for _, w := range windows {
		most = max(most, w.panes)
		style = first(style, w.layout)
		if w.layout != "" && !recipes.IsLayout(w.layout) {
			im.lose(tree.Place{}, "the layout of the window %s: %s", w.name, w.layout)
		}
	}
	if !recipes.IsLayout(style) || strings.Contains(style, ",") { // a layout of tmux's own counts its panes
		if style != "" && recipes.IsLayout(style) {
			im.lose(tree.Place{}, "the layout %s: it does not fit the board's pane", style)
		}
		style = recipes.LayoutTiled
	}
	switch {
	case most <= 1:
		im.recipe.Layout.Style = recipes.LayoutWindows
	case len(windows) == 1:
		im.recipe.Layout.Style = style
	default:
		im.recipe.Layout = recipes.Layout{Style: style, Panes: min(most, 50)}
		im.lose(tree.Place{}, "which window each pane is in: windows get up to %d panes each", most)
	}
}

func (im *importer) needAgents(root *tree.Node) {
	if len(im.recipe.Agents) == 0 {
		im.problems.Add(root.At, "there are no panes to make agents of")
	}
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
