// Package foreign makes recipes of other programs' files: tmuxinator and tmuxp
// projects, sub-agents of Claude Code, and recipes of Goose. What has no meaning
// here is never guessed at: it is listed.
package foreign

import (
	"fmt"
	"path/filepath"
	"strings"

	"muntin/internal/id"
	"muntin/recipes"
	"muntin/recipes/internal/tree"
)

// A Format is whose file it is.
type Format string

// The formats.
const (
	Tmuxinator Format = "tmuxinator" // https://github.com/tmuxinator/tmuxinator
	Tmuxp      Format = "tmuxp"      // https://tmuxp.git-pull.com/configuration/
	Subagent   Format = "subagent"   // https://docs.claude.com/en/docs/claude-code/sub-agents
	Goose      Format = "goose"      // https://block.github.io/goose/docs/guides/recipes/recipe-reference
)

// A File is a text with the name that errors call it.
type File struct {
	Name string
	Text []byte
}

// Detect tells whose file it is, or "" when nothing speaks for any.
func Detect(f File) Format {
	if strings.HasSuffix(f.Name, ".md") {
		return Subagent
	}
	root := tree.Parse(&tree.Problems{}, f.Name, f.Text, tree.Options{What: "file", Aliases: true})
	switch {
	case root == nil:
		return ""
	case root.Get("session_name") != nil:
		return Tmuxp
	case root.Get("windows") != nil || root.Get("tabs") != nil:
		return Tmuxinator
	case root.Get("instructions") != nil || root.Get("prompt") != nil || root.Get("title") != nil:
		return Goose
	}
	return ""
}

// Import makes a recipe of files of one format; several only of sub-agents, which
// become its roles. lost says, a line each, what was not carried over. Mistakes
// in a file are a *recipes.Error.
func Import(format Format, files []File) (recipe *recipes.Recipe, lost []string, err error) {
	if len(files) == 0 || len(files) > 1 && format != Subagent {
		return nil, nil, fmt.Errorf("importing from %s: want one file, got %d", format, len(files))
	}
	im := &importer{problems: &tree.Problems{}, names: map[string]bool{}}
	im.recipe = &recipes.Recipe{Version: recipes.Version}
	switch format {
	case Tmuxinator:
		im.tmuxinator(files[0])
	case Tmuxp:
		im.tmuxp(files[0])
	case Goose:
		im.goose(files[0])
	case Subagent:
		for _, f := range files {
			im.subagent(f)
		}
	default:
		return nil, nil, fmt.Errorf("importing: %q is no format: want tmuxinator, tmuxp, subagent or goose", format)
	}
	if err := im.problems.Err(); err != nil {
		return nil, nil, err
	}
	if im.recipe.Name == "" {
		base := filepath.Base(files[0].Name)
		im.recipe.Name = slug(strings.TrimSuffix(base, filepath.Ext(base)), "imported")
	}
	if len(im.recipe.Agents) > recipes.MaxAgents {
		return nil, nil, fmt.Errorf("importing %s: %d panes are more than the limit of %d agents", files[0].Name, len(im.recipe.Agents), recipes.MaxAgents)
	}
	im.recipe.FillDefaults()
	return im.recipe, im.lost, nil
}

// An importer makes one recipe.
type importer struct {
	problems *tree.Problems
	recipe   *recipes.Recipe
	lost     []string
	names    map[string]bool // of agents
}

func (im *importer) lose(at tree.Place, format string, args ...any) {
	where := ""
	if at.Source != nil {
		where = fmt.Sprintf("%s:%d: ", at.Source.Name, at.Line)
	}
	im.lost = append(im.lost, where+clean(fmt.Sprintf(format, args...)))
}

// rest lists the keys that nothing took.
func (im *importer) rest(n *tree.Node, why string) {
	for _, pair := range n.Pairs {
		im.lose(pair.KeyAt, "%s%s", pair.Key, why)
	}
}

// parse reads a file of YAML.
func (im *importer) parse(f File) *tree.Node {
	return tree.Parse(im.problems, f.Name, f.Text, tree.Options{What: "file", Aliases: true})
}

// text takes a scalar out of a mapping, as it was written.
func (im *importer) text(n *tree.Node, key string) string {
	pair := n.Take(key)
	switch {
	case pair.Value == nil || pair.Value.Kind == tree.Null:
		return ""
	case !pair.Value.Scalar():
		im.problems.Add(pair.Value.At, "%s: want text, got %s", key, pair.Value.Describe())
		return ""
	}
	return clean(pair.Value.Text)
}

// list is a list, or the one value that stands for it.
func list(n *tree.Node) []*tree.Node {
	switch {
	case n == nil || n.Kind == tree.Null:
		return nil
	case n.Kind == tree.List:
		return n.Items
	}
	return []*tree.Node{n}
}

// clean takes out what texts of a recipe must not have.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// slug makes a name of ours of any text; without a letter or digit it is other.
func slug(s, other string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if b.Len() == id.MaxName {
			break
		}
		switch {
		case r < 0x80 && strings.ContainsRune(id.Lower+id.Digits, r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return other
}

// agentName is a name that no other agent has.
func (im *importer) agentName(wish string) string {
	name := slug(wish, "pane")
	for n := 2; im.names[name]; n++ {
		suffix := fmt.Sprintf("-%d", n)
		base := slug(wish, "pane")
		name = base[:min(len(base), id.MaxName-len(suffix))] + suffix
	}
	im.names[name] = true
	return name
}
