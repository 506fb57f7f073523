// Package settings holds the commands about settings, the user's and a project's.
package settings

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/resource"
	"muntin/agent/resource/settings"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
	"muntin/internal/term"
)

// Options are the arguments of the commands.
type Options struct {
	App     *app.App
	Project bool // the project's file, not the user's
	JSON    bool
}

// NewCmd makes `muntin settings`.
func NewCmd(a *app.App) *cobra.Command {
	var keys strings.Builder
	for _, k := range settings.Keys() {
		fmt.Fprintf(&keys, "  %-20s %s\n", k.Name, k.Doc)
	}
	cmd := &cobra.Command{
		Use: "settings", Short: "Show and change what holds for every agent", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
		Long: "Settings are YAML: settings.yaml in your folder of settings, and .muntin/settings.yaml\n" +
			"in a project, which counts where the folder is trusted (muntin trust) and then has\n" +
			"the last word, key by key. A change touches the lines of its key and keeps comments.\n" +
			"The command line has the last word over both.\n\n" + keys.String(),
		Example: "  muntin settings ls\n" +
			"  muntin settings set model anthropic/claude-opus-5:high\n" +
			"  muntin settings set tools +grep,+find --project\n" +
			"  muntin settings unset compaction.keep",
	}
	cmd.AddCommand(newLs(a), newGet(a), newSet(a), newUnset(a), newEdit(a))
	return cmd
}

// A Row is a setting as it holds.
type Row struct {
	Name    string            `json:"name"`
	Value   any               `json:"value"`
	Type    string            `json:"type"`
	Default bool              `json:"default"` // nothing says otherwise
	From    []settings.Origin `json:"from,omitempty"`
	Doc     string            `json:"doc"`
}

// Rows are all settings of a folder.
func Rows(p *resources.Place) []Row {
	var all []Row
	for _, k := range settings.Keys() {
		value, _ := p.Settings.Get(k.Name)
		if list, ok := value.([]string); ok && list == nil {
			value = []string{}
		}
		from := p.Settings.From[k.Name]
		all = append(all, Row{Name: k.Name, Value: value, Type: k.Type, Default: len(from) == 0, From: from, Doc: k.Doc})
	}
	return all
}

// rows are all settings; what is wrong in the files is told on standard error.
func rows(ctx context.Context, a *app.App) ([]Row, error) {
	dir, err := app.Confirmed(a.Dir)
	if err != nil {
		return nil, err
	}
	p, err := resources.Open(ctx, resources.Options{App: a, Dir: dir})
	if err != nil {
		return nil, err
	}
	for _, note := range p.Notes {
		fmt.Fprintf(a.Streams.Err, "muntin: %s\n", term.CleanLine(note))
	}
	return Rows(p), nil
}

// Text is the value as a person writes it on a command line.
func (r Row) Text() string {
	if list, ok := r.Value.([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(r.Value)
}

func newLs(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use: "ls", Short: "List all settings and where they come from", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			all, err := rows(ctx, a)
			if err != nil {
				return err
			}
			if o.JSON {
				return a.PrintJSON(all)
			}
			table := term.NewTable("SETTING", "VALUE", "FROM")
			for _, r := range all {
				from := a.Theme.Dim.Render("default")
				for i, at := range r.From {
					if i == 0 {
						from = ""
					}
					from += term.CleanLine(fmt.Sprintf("%s:%d ", at.Path, at.Line))
				}
				table.Row(r.Name, term.CleanLine(r.Text()), from)
			}
			return table.Write(a.Streams.Out, a.Theme, 0)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func newGet(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use: "get <setting>", Short: "Print one setting", Args: app.Args(1, 1, "the name of a setting"), ValidArgsFunction: names,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			all, err := rows(ctx, a)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(r Row) bool { return r.Name == args[0] })
			if i < 0 {
				return app.Usage("%w", settings.Unknown(args[0]))
			}
			if o.JSON {
				return a.PrintJSON(all[i])
			}
			fmt.Fprintln(a.Streams.Out, term.CleanLine(all[i].Text()))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func names(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, k := range settings.Keys() {
		all = append(all, k.Name+"\t"+k.Doc)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

func newSet(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use: "set <setting> <value>", Short: "Change one setting", Args: app.Args(2, 2, "a setting and its value"), ValidArgsFunction: names,
		Long:    "The value of a list is separated by commas.",
		Example: "  muntin settings set compaction.keep 30000\n  muntin settings set tools -- -bash",
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			return o.Set(ctx, args[0], args[1])
		}),
	}
	o.flag(cmd)
	return cmd
}

func newUnset(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use: "unset <setting>", Short: "Take one setting out of the file", Args: app.Args(1, 1, "the name of a setting"), ValidArgsFunction: names,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			return o.Unset(ctx, args[0])
		}),
	}
	o.flag(cmd)
	return cmd
}

func newEdit(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use: "edit", Short: "Open the file in your editor, and check it", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			at, err := o.location()
			if err != nil {
				return err
			}
			editor, err := resources.Editor(a)
			if err != nil {
				return err
			}
			if err := o.change(ctx, begin); err != nil {
				return err
			}
			if err := a.Edit(ctx, editor, at.Path); err != nil {
				return err
			}
			return o.check(at.Path)
		}),
	}
	o.flag(cmd)
	return cmd
}

// begin gives an empty file something to see.
func begin(data []byte) ([]byte, error) {
	if len(data) > 0 {
		return data, nil
	}
	return []byte("# muntin settings --help lists the keys\n"), nil
}

// check tells what is wrong in a file.
func (o *Options) check(path string) error {
	scope := settings.User
	if o.Project {
		scope = settings.Project
	}
	layer, err := settings.Read(scope, path)
	if err != nil {
		return err
	}
	_, problems := settings.Resolve(layer)
	var errs []error
	for _, p := range problems {
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(errs...)
}

func (o *Options) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.Project, "project", false, "in the project's .muntin/settings.yaml, not your own")
}

// allowed refuses what would not count in a project's file.
func (o *Options) allowed(name string) error {
	i := slices.IndexFunc(settings.Keys(), func(k settings.Key) bool { return k.Name == name })
	if o.Project && i >= 0 && settings.Keys()[i].User {
		return app.Usage("%s is each user's own: leave out --project", name)
	}
	return nil
}

func (o *Options) location() (settings.Location, error) {
	a := o.App
	if !o.Project {
		path := resource.UserSettings(a.Layout.Config)
		if path == "" {
			return settings.Location{}, app.Hint(errors.New("there is no folder for settings"), "set $HOME or $XDG_CONFIG_HOME to an absolute path")
		}
		return settings.Location{Path: path, Lock: filepath.Join(a.Layout.State, "settings.lock"), Perm: 0o600}, nil
	}
	dir, err := app.Confirmed(a.Dir)
	if err != nil {
		return settings.Location{}, err
	}
	path := resource.SettingsFile(resource.Project(dir))
	return settings.Location{Path: path, Lock: filepath.Join(a.Layout.State, "settings.lock"), Perm: 0o644}, nil
}

// Set changes a setting in the file that is meant.
func (o *Options) Set(ctx context.Context, name, value string) error {
	return o.change(ctx, func(data []byte) ([]byte, error) {
		if err := o.allowed(name); err != nil {
			return nil, err
		}
		return settings.Set(data, name, value)
	})
}

// Unset takes a setting out of it; that it was not there is an error.
func (o *Options) Unset(ctx context.Context, name string) error {
	return o.change(ctx, func(data []byte) ([]byte, error) {
		out, was, err := settings.Unset(data, name)
		if err == nil && !was {
			err = fmt.Errorf("%s is not set there", name)
		}
		return out, err
	})
}

// change edits the file that is meant.
func (o *Options) change(ctx context.Context, edit func([]byte) ([]byte, error)) error {
	at, err := o.location()
	if err != nil {
		return err
	}
	err = settings.Change(ctx, at, edit)
	if errors.Is(err, settings.ErrByHand) {
		return app.Hint(err, "muntin settings edit opens it")
	}
	return err
}
