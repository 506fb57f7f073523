package recipes

import (
	"muntin/recipes/internal/tree"
)

// Options say how recipes are found and what is put into them.
type Options struct {
	Root  string                      // the top of the repository; empty: none
	User  string                      // the folder of the user's own recipes; empty: none
	Trust Trust                       // nil: the repository's own recipes are refused
	Set   map[string]string           // values of parameters
	Ask   func(Param) (string, error) // asks a person for a required one; nil: it is a mistake without value

	lenient bool // parameters may be without a value
}

// Parse reads a recipe that stands alone: it extends none, and its parameters
// have their defaults. name is what errors call it: its path, or the name of a
// built-in recipe. Whatever is wrong with the text is an *Error.
func Parse(name string, src []byte) (*Recipe, error) { return parse(name, src, false) }

func parse(name string, src []byte, lenient bool) (*Recipe, error) {
	p := &tree.Problems{}
	root := tree.Parse(p, name, src, tree.Options{What: "recipe"})
	if root == nil {
		return nil, p.Err()
	}
	if at := root.Take("extends"); at.Value != nil {
		p.Add(at.KeyAt, "a recipe that is read on its own can extend none")
	}
	short(root, p)
	return decode(root, p, Options{lenient: lenient})
}

// decode makes a recipe of a tree that has everything it extends in it.
func decode(root *tree.Node, p *tree.Problems, o Options) (*Recipe, error) {
	d := newDecoder(p)
	d.lenient = o.lenient
	r := d.recipe(root, o)
	d.validate(r)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// short writes `check: X` as `checks: {task: X}`, so that one can change the other.
func short(root *tree.Node, p *tree.Problems) {
	pair := root.Take("check")
	if pair.Value == nil {
		return
	}
	if pair.Value.Kind == tree.Null {
		p.Add(pair.KeyAt, "check has no value: give one, or leave the key out")
		return
	}
	checks := root.Get("checks")
	switch {
	case checks == nil:
		checks = &tree.Node{Kind: tree.Map, At: pair.Value.At}
		root.Set(tree.Pair{Key: "checks", KeyAt: pair.KeyAt, Value: checks})
	case checks.Kind != tree.Map:
		return // reported when it is read
	case checks.Get("task") != nil:
		p.Add(pair.Value.At, "check and checks.task say the same: keep one of them")
		return
	}
	checks.Set(tree.Pair{Key: "task", KeyAt: pair.KeyAt, Value: pair.Value})
}
