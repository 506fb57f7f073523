package recipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/recipes"
	"muntin/recipes/foreign"
)

// Save writes a recipe into the user's folder. An existing one stays as it is.
func Save(a *app.App, name string, text []byte) (path string, err error) {
	dir := UserDir(a)
	if dir == "" {
		return "", errors.New("finding your folder of recipes: neither XDG_CONFIG_HOME nor HOME is an absolute path")
	}
	return save(dir, name, text)
}

func save(dir, name string, text []byte) (path string, err error) {
	if err := id.CheckName("recipe", name); err != nil {
		return "", &app.ExitError{Code: app.ExitUsage, Err: err}
	}
	path = filepath.Join(dir, name+".yaml")
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", app.Hint(app.Usage("the recipe %s exists: %s", name, path), "change it with `muntin recipe edit %s`, or choose another name", name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of recipes: %w", err)
	}
	if err := durable.WriteFile(path, text, 0o644); err != nil {
		return "", fmt.Errorf("writing the recipe: %w", err)
	}
	return path, nil
}

// blank is a recipe to begin with.
const blank = `muntin: 1
name: %s
description: what it is for
# model: provider/id           # else --model or $MUNTIN_MODEL
check: "true"                  # a command that tells whether a task is done
agents:
  - name: worker
    count: 3
`

// changed is a recipe that changes another.
const changed = `muntin: 1
name: %s
extends: %s
# Write only what changes. Agents are matched by their names; see docs/recipes.md.
`

func newNew(a *app.App) *cobra.Command {
	s := Source{App: a}
	var from string
	var here bool
	cmd := &cobra.Command{
		Use: "new <name>", Short: "Write a new recipe to begin with", Args: app.Args(1, 1, "a name"),
		Example: "  muntin recipe new mine\n  muntin recipe new mine --from workers\n  muntin recipe new ours --here",
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			text := fmt.Sprintf(blank, args[0])
			if from != "" {
				if strings.Contains(from, "/") {
					return app.Usage("--from %s: want the name of a recipe; a path in extends is relative to the file", from)
				}
				o, err := s.options()
				if err != nil {
					return err
				}
				if _, err := recipes.Params(from, o); err != nil {
					return s.explain(from, err)
				}
				text = fmt.Sprintf(changed, args[0], from)
			}
			dir := UserDir(a)
			if here {
				repo, err := a.Repo()
				if err != nil {
					return err
				}
				dir = recipes.RepoDir(repo.Root)
			}
			path, err := save(dir, args[0], []byte(text))
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Streams.Out, path)
			return nil
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "extend this recipe")
	cmd.Flags().BoolVar(&here, "here", false, "in the repository's .muntin/recipes, not your own folder")
	_ = cmd.RegisterFlagCompletionFunc("from", s.Complete) // it is a flag of this very command
	return cmd
}

func newEdit(a *app.App) *cobra.Command {
	s := Source{App: a}
	return &cobra.Command{
		Use: "edit <recipe>", Short: "Open a recipe in $VISUAL or $EDITOR, and check it", Args: app.Args(1, 1, "a recipe"),
		Example:           "  muntin recipe edit mine",
		ValidArgsFunction: s.Complete,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o, err := s.options()
			if err != nil {
				return err
			}
			o.Trust = func(string) (bool, error) { return true, nil } // reading runs nothing
			origin, err := recipes.Locate(args[0], o)
			if err != nil {
				return s.explain(args[0], err)
			}
			if origin.Path == "" {
				return app.Hint(app.Usage("the recipe %s is built in", args[0]), "make one that changes it: `muntin recipe new %s --from %s`", args[0], args[0])
			}
			editor, err := resources.Editor(a)
			if err != nil {
				return err
			}
			if err := a.Edit(ctx, editor, origin.Path); err != nil {
				return err
			}
			return recipes.Check(origin.Path, o)
		}),
	}
}

func newImport(a *app.App) *cobra.Command {
	var format, saved string
	cmd := &cobra.Command{
		Use: "import <file>...", Short: "Make a recipe of another program's file", Args: cobra.ArbitraryArgs,
		Long: "Make a recipe of a project of tmuxinator or tmuxp, of sub-agents of Claude Code (one\n" +
			"or more .md files, which become roles), or of a recipe of Goose. It is printed, or\n" +
			"written to your folder with --save. What was not carried over is listed on stderr.",
		Example: "  muntin recipe import ~/.config/tmuxinator/web.yml --save web\n" +
			"  muntin recipe import .claude/agents/*.md > team.yaml",
		RunE: a.Interruptible(func(_ context.Context, args []string) error {
			if len(args) == 0 {
				return app.Usage("want a file to import")
			}
			recipe, lost, err := importFiles(format, args)
			if err != nil {
				return err
			}
			if saved != "" {
				recipe.Name = saved
			}
			text, err := recipe.Marshal()
			if err != nil {
				return err
			}
			for _, line := range lost {
				fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Warn.Render("not carried over:"), line)
			}
			if saved == "" {
				_, err := a.Streams.Out.Write(text)
				return err
			}
			path, err := Save(a, saved, text)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Streams.Out, path)
			return nil
		}),
	}
	cmd.Flags().StringVar(&format, "format", "", "tmuxinator, tmuxp, subagent or goose (default: as the file looks)")
	cmd.Flags().StringVar(&saved, "save", "", "write it to your folder under this name")
	return cmd
}

func importFiles(format string, paths []string) (*recipes.Recipe, []string, error) {
	var files []foreign.File
	for _, path := range paths {
		text, err := recipes.ReadFile(path)
		if err != nil {
			return nil, nil, &app.ExitError{Code: app.ExitUsage, Err: err}
		}
		files = append(files, foreign.File{Name: path, Text: text})
	}
	kind := foreign.Format(format)
	if format == "" {
		if kind = foreign.Detect(files[0]); kind == "" {
			return nil, nil, app.Usage("%s looks like no file that can be imported: name its kind with --format", paths[0])
		}
	}
	return foreign.Import(kind, files)
}
