// Package pack holds the commands about packages of skills, prompts and themes.
package pack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/resource/pack"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
	"muntin/internal/term"
)

// NewCmd makes `muntin package`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "package", Short: "Skills, prompts and themes that others publish", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
		Long: "A package is a folder with skills, prompts and themes, from git, from npm or from\n" +
			"this machine. What is fetched is pinned by its commit or version and a digest of\n" +
			"its files, in packages.json beside your settings; only update changes it. Nothing\n" +
			"of a package is run to install it. What its skills tell an agent to do is as good\n" +
			"as its author: look at it first.",
		Example: "  muntin package add git:github.com/anthropics/skills\n" +
			"  muntin package add https://example.com/team/skills.git@v1.2\n" +
			"  muntin package add npm:@scope/name@1.0.0\n" +
			"  muntin package add ./my-skills\n" +
			"  muntin package update",
	}
	cmd.AddCommand(newAdd(a), newLs(a), newRm(a), newUpdate(a), newSync(a))
	return cmd
}

func newAdd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "add <source>", Short: "Fetch a package and pin it", Args: app.Args(1, 1, "one source"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			source := args[0]
			if strings.HasPrefix(source, ".") {
				abs, err := filepath.Abs(source)
				if err != nil {
					return err
				}
				source = abs
			}
			if _, err := pack.ParseSource(source); err != nil {
				return app.Usage("%w", err)
			}
			e, err := resources.Packages(a).Add(ctx, source)
			if err != nil {
				return err
			}
			return tell(a, e)
		}),
	}
}

// tell prints what is pinned, and what of it is loaded.
func tell(a *app.App, e pack.Entry) error {
	p, err := resources.Packages(a).Package(e)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Streams.Out, "%s %s in %s\n", a.Theme.Strong.Render(e.Name), short(e), term.CleanLine(p.Dir))
	for _, what := range []struct {
		name  string
		paths []string
	}{{"skills", p.Skills}, {"prompts", p.Prompts}, {"themes", p.Themes}} {
		if len(what.paths) > 0 {
			fmt.Fprintf(a.Streams.Out, "  %s: %s\n", what.name, term.CleanLine(strings.Join(what.paths, ", ")))
		}
	}
	return nil
}

// short is a version for people.
func short(e pack.Entry) string {
	if e.Version == "" {
		return "as it is"
	}
	return "at " + term.CleanLine(e.Version[:min(len(e.Version), 12)])
}

// a row is a package as `ls` prints it.
type row struct {
	pack.Entry
	Dir   string `json:"dir"`
	State string `json:"state"` // ok, missing or changed
	Why   string `json:"why,omitempty"`
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the packages, and check their files", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(context.Context, []string) error {
			store := resources.Packages(a)
			entries, err := store.List()
			if err != nil {
				return err
			}
			rows := []row{}
			for _, e := range entries {
				r := row{Entry: e, Dir: store.Folder(e), State: "ok"}
				if _, err := store.Package(e); err != nil {
					r.State, r.Why = "missing", err.Error()
				} else if err := store.Verify(e); err != nil {
					r.State, r.Why = "changed", err.Error()
				}
				rows = append(rows, r)
			}
			if asJSON {
				return a.PrintJSON(rows)
			}
			table := term.NewTable("PACKAGE", "VERSION", "SINCE", "STATE", "SOURCE")
			for _, r := range rows {
				style := a.Theme.Good
				if r.State != "ok" {
					style = a.Theme.Bad
				}
				table.Row(r.Name, short(r.Entry), r.At.Local().Format(time.DateOnly), style.Render(r.State), term.CleanLine(r.Source))
			}
			return table.Write(a.Streams.Out, a.Theme, 0)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explained adds what helps where a name is not known.
func explained(err error) error {
	if errors.Is(err, pack.ErrUnknown) {
		return app.Hint(err, "muntin package ls lists them")
	}
	return err
}

func newRm(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "rm <package>", Short: "Drop a package; a folder of yours stays", Args: app.Args(1, 1, "one package"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			if err := resources.Packages(a).Remove(ctx, args[0]); err != nil {
				return explained(err)
			}
			fmt.Fprintf(a.Streams.Out, "removed %s\n", args[0])
			return nil
		}),
	}
}

// each calls do for the packages that are named, or for all.
func each(a *app.App, args []string, do func(name string) error) error {
	if len(args) == 0 {
		entries, err := resources.Packages(a).List()
		if err != nil {
			return err
		}
		for _, e := range entries {
			args = append(args, e.Name)
		}
	}
	var errs []error
	for _, name := range args {
		errs = append(errs, explained(do(name)))
	}
	return errors.Join(errs...)
}

func newUpdate(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "update [package...]", Short: "Fetch what the sources mean now, of all packages or of some", Args: cobra.ArbitraryArgs,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			return each(a, args, func(name string) error {
				was, now, err := resources.Packages(a).Update(ctx, name)
				switch {
				case err != nil:
					return err
				case was.Integrity == now.Integrity:
					fmt.Fprintf(a.Streams.Out, "%s stays %s\n", name, short(now))
				default:
					fmt.Fprintf(a.Streams.Out, "%s was %s, is %s\n", name, short(was), short(now))
				}
				return nil
			})
		}),
	}
}

func newSync(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "sync [package...]", Short: "Fetch what is missing or changed, exactly as it is pinned", Args: cobra.ArbitraryArgs,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			return each(a, args, func(name string) error {
				did, err := resources.Packages(a).Restore(ctx, name)
				if err == nil && did {
					fmt.Fprintf(a.Streams.Out, "%s is back\n", name)
				}
				return err
			})
		}),
	}
}
