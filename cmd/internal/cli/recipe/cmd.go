// Package recipe holds the commands about recipes: ls, show and validate.
package recipe

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/recipes"
)

// NewCmd makes `muntin recipe`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{Use: "recipe", Short: "List, show and check recipes", Args: cobra.ArbitraryArgs, RunE: app.Subcommand}
	cmd.AddCommand(newLs(a), newShow(a), newValidate(a))
	return cmd
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the built-in recipes", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(context.Context, []string) error {
			list := recipes.Builtins()
			if asJSON {
				return a.PrintJSON(list)
			}
			table := term.NewTable("NAME", "WHAT IT IS FOR")
			for _, info := range list {
				table.Row(a.Theme.Strong.Render(info.Name), info.Description)
			}
			return table.Write(a.Streams.Out, a.Theme, 0)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newShow(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show <recipe>", Short: "Print a recipe with its defaults filled in", Args: app.Args(1, 1, "a recipe"),
		RunE: a.Interruptible(func(_ context.Context, args []string) error {
			recipe, err := find(a, args[0])
			if err != nil {
				return err
			}
			text, err := recipe.Marshal()
			if err != nil {
				return err
			}
			_, err = a.Streams.Out.Write(text)
			return err
		}),
	}
}

func newValidate(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "validate <recipe>", Short: "Check a recipe and tell every mistake with its place", Args: app.Args(1, 1, "a recipe"),
		RunE: a.Interruptible(func(_ context.Context, args []string) error {
			recipe, err := find(a, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Streams.Out, "%s %s: %d agents\n", a.Theme.Good.Render("✓"), recipe.Name, len(recipe.Resolve()))
			return nil
		}),
	}
}

// find reads a recipe; a repository is not needed for it.
func find(a *app.App, name string) (*recipes.Recipe, error) {
	root := ""
	if repo, err := state.FindRepo(a.Dir); err == nil {
		root = repo.Root
	}
	return recipes.Find(name, root)
}
