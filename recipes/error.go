package recipes

import "muntin/recipes/internal/tree"

// A Problem is one mistake in a recipe. Line and Col count from 1, Col in
// characters; a Line of 0 is about the whole of what File names.
type Problem = tree.Problem

// An Error is all that is wrong with a recipe and those it extends, sorted by
// file and place. Its text has, for each problem, "file:line:col: text" and the
// source line with a pointer to the place. Commands exit with code 2 on it.
type Error = tree.Error
