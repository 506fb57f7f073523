// Package recipe holds the commands about recipes, and finds recipes for other
// commands.
package recipe

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/recipes"
)

// NewCmd makes `muntin recipe`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "recipe", Short: "List, show, write, check and import recipes", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
		Long: "A recipe is a YAML file that describes a run: its agents, board, checks and limits.\n" +
			"A name is looked up in the repository's .muntin/recipes, when you trust it, then in\n" +
			"$XDG_CONFIG_HOME/muntin/recipes, then among the built-in ones. docs/recipes.md has\n" +
			"all keys.",
		Example: "  muntin recipe ls\n" +
			"  muntin recipe new mine --from workers\n" +
			"  muntin recipe validate ./fleet.yaml --set n=3",
	}
	cmd.AddCommand(newLs(a), newShow(a), newNew(a), newEdit(a), newValidate(a), newSchema(a), newImport(a))
	return cmd
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List all recipes that have a name", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(context.Context, []string) error {
			s := Source{App: a}
			o, err := s.options()
			if err != nil {
				return err
			}
			list := recipes.List(o)
			if asJSON {
				return a.PrintJSON(list)
			}
			table := term.NewTable("NAME", "FROM", "WHAT IT IS FOR")
			for _, info := range list {
				what := term.Clean(info.Description)
				switch {
				case !info.Trusted:
					what = a.Theme.Warn.Render("not read: the repository is not trusted")
				case info.Problem != "":
					what = a.Theme.Bad.Render(term.Clean(info.Problem))
				}
				table.Row(a.Theme.Strong.Render(term.Clean(info.Name)), string(info.Source), what)
			}
			return table.Write(a.Streams.Out, a.Theme, 0)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newShow(a *app.App) *cobra.Command {
	s := Source{App: a}
	var source bool
	cmd := &cobra.Command{
		Use: "show <recipe>", Short: "Print a recipe as it would be started", Args: app.Args(1, 1, "a recipe"),
		Long: "Print a recipe as it would be started: what it extends merged in, parameters put\n" +
			"in, roles and defaults written out. With --source print its file as it is.",
		Example:           "  muntin recipe show workers\n  muntin recipe show --source workers > mine.yaml",
		ValidArgsFunction: s.Complete,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			if source {
				return showSource(&s, args[0])
			}
			recipe, err := s.Load(ctx, args[0])
			if err != nil {
				return err
			}
			text, err := recipe.Resolved().Marshal()
			if err != nil {
				return err
			}
			_, err = a.Streams.Out.Write(text)
			return err
		}),
	}
	s.Flags(cmd)
	cmd.Flags().BoolVar(&source, "source", false, "print the file as it is")
	return cmd
}

func showSource(s *Source, name string) error {
	o, err := s.options()
	if err != nil {
		return err
	}
	o.Trust = func(string) (bool, error) { return true, nil } // to look at it is how trust begins
	origin, err := recipes.Locate(name, o)
	if err != nil {
		return s.explain(name, err)
	}
	text := string(origin.Text)
	if s.App.Streams.OutTTY {
		text = term.Clean(text)
	}
	_, err = fmt.Fprint(s.App.Streams.Out, text)
	return err
}

func newValidate(a *app.App) *cobra.Command {
	s := Source{App: a}
	cmd := &cobra.Command{
		Use: "validate <recipe>", Short: "Check a recipe and tell every mistake with its place", Args: app.Args(1, 1, "a recipe"),
		Example:           "  muntin recipe validate ./fleet.yaml --set n=3",
		ValidArgsFunction: s.Complete,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			recipe, err := s.Load(ctx, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Streams.Out, "%s %s: %d agents\n", a.Theme.Good.Render("✓"), recipe.Name, len(recipe.Resolve()))
			return nil
		}),
	}
	s.Flags(cmd)
	return cmd
}

func newSchema(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of recipes, for editors", Args: app.Args(0, 0, ""),
		Example: "  muntin recipe schema > recipe.schema.json\n" +
			"  # then, as the first line of a recipe:\n" +
			"  # yaml-language-server: $schema=recipe.schema.json",
		RunE: a.Interruptible(func(context.Context, []string) error {
			_, err := a.Streams.Out.Write(recipes.Schema())
			return err
		}),
	}
}
