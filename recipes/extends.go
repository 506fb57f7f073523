package recipes

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"muntin/recipes/internal/tree"
)

// A loader reads a recipe and the chain of those it extends.
type loader struct {
	Options
	problems *tree.Problems
	chain    []string
}

// load is the recipe as one tree, or nil when there are problems. The error is of
// what is no mistake in a file: one that cannot be read, or is not trusted.
func (l *loader) load(origin Origin) (*tree.Node, error) {
	l.chain = append(l.chain, origin.label())
	root := tree.Parse(l.problems, origin.label(), origin.Text, tree.Options{What: "recipe"})
	if root == nil {
		return nil, nil
	}
	short(root, l.problems)
	ref := root.Take("extends")
	switch {
	case ref.Value == nil:
		return root, nil
	case ref.Value.Kind != tree.Text:
		l.problems.Add(ref.Value.At, "extends: want the name of a recipe, or a path that begins with ./ or ../, got %s", ref.Value.Describe())
		return nil, nil
	case root.Get("muntin") == nil:
		l.problems.Add(root.At, "the version is missing: write \"muntin: %d\"", Version)
		return nil, nil
	}
	base, err := l.base(origin, ref.Value)
	if base == nil || err != nil {
		return nil, err
	}
	return merge(base, root, ""), nil
}

// base is what a recipe extends, as one tree.
func (l *loader) base(origin Origin, ref *tree.Node) (*tree.Node, error) {
	next, err := l.locate(origin, ref.Text)
	var untrusted *UntrustedError
	switch {
	case errors.As(err, &untrusted):
		return nil, err
	case err != nil:
		l.problems.Add(ref.At, "extends: %v", err)
		return nil, nil
	}
	chain := strings.Join(append(slices.Clone(l.chain), next.label()), " → ")
	switch {
	case slices.Contains(l.chain, next.label()):
		l.problems.Add(ref.At, "extends goes in a circle: %s", chain)
		return nil, nil
	case len(l.chain) > MaxDepth:
		l.problems.Add(ref.At, "extends: more than %d recipes behind each other: %s", MaxDepth, chain)
		return nil, nil
	}
	return l.load(next)
}

// errPath is about a path in extends.
var errPath = errors.New("want a name, or a path that begins with ./ or ../")

// locate finds what extends names. A recipe that extends its own name changes the
// one that it hides.
func (l *loader) locate(origin Origin, ref string) (Origin, error) {
	switch {
	case strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../"):
		if origin.Path == "" {
			return Origin{}, errPath
		}
		path := filepath.Join(filepath.Dir(origin.Path), filepath.FromSlash(ref))
		text, err := ReadFile(path)
		return Origin{Name: ref, Source: SourceFile, Path: path, Text: text}, err
	case isPath(ref):
		return Origin{}, errPath
	case ref == origin.Name && origin.Source == SourceRepo:
		return l.byName(ref, SourceUser)
	case ref == origin.Name && origin.Source == SourceUser, origin.Source == SourceBuiltin:
		return l.byName(ref, SourceBuiltin)
	case origin.Source == SourceUser:
		return l.byName(ref, SourceUser) // nothing that a repository brings along
	}
	return l.byName(ref, SourceRepo)
}

// merge writes the values of one mapping over those of another: mappings are
// merged in turn, agents by their names, everything else is replaced.
func merge(base, over *tree.Node, key string) *tree.Node {
	switch {
	case base.Kind == tree.Map && over.Kind == tree.Map:
		return mergeMaps(base, over)
	case key == "agents" && base.Kind == tree.List && over.Kind == tree.List:
		return mergeAgents(base, over)
	}
	return over
}

// excluded is the key whose value does not go together with that of another: who
// gives an agent a command takes its model away.
func excluded(key string) []string {
	switch key {
	case "model":
		return []string{"command"}
	case "command":
		return []string{"model", "system"}
	case "prompt":
		return []string{"prompt_file"}
	case "prompt_file":
		return []string{"prompt"}
	}
	return nil
}

func mergeMaps(base, over *tree.Node) *tree.Node {
	out := &tree.Node{Kind: tree.Map, At: over.At, Pairs: slices.Clone(base.Pairs)}
	for _, pair := range over.Pairs {
		if before := base.Get(pair.Key); before != nil {
			pair.Value = merge(before, pair.Value, pair.Key)
		}
		for _, other := range excluded(pair.Key) {
			if over.Get(other) == nil {
				out.Take(other)
			}
		}
		out.Set(pair)
	}
	return out
}

func mergeAgents(base, over *tree.Node) *tree.Node {
	out := &tree.Node{Kind: tree.List, At: over.At, Items: slices.Clone(base.Items)}
	for _, item := range over.Items {
		name := item.Get("name")
		at := -1
		if name != nil && name.Kind == tree.Text {
			at = slices.IndexFunc(base.Items, func(b *tree.Node) bool {
				before := b.Get("name")
				return before != nil && before.Kind == tree.Text && before.Text == name.Text
			})
		}
		if at < 0 {
			out.Items = append(out.Items, item)
			continue
		}
		out.Items[at] = merge(out.Items[at], item, "")
	}
	return out
}
