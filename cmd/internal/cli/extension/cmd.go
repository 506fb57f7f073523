package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/extension"
	"muntin/agent/extension/examples"
	"muntin/agent/extension/sandbox"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/id"
	"muntin/internal/term"
)

// NewCmd makes `muntin agent ext`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ext", Short: "Make, list and test extensions of the agent", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
		Long: "An extension is a program in any language that speaks JSON lines on standard input\n" +
			"and output: see docs/extensions.md. It lies, with its extension.yaml, in a folder of\n" +
			"its own in " + shown(a) + " or in the project's\n.muntin/extensions, which is used once you trust the project.",
		Example: "  muntin agent ext new guard --from permission-gate\n  muntin agent ext test guard\n  muntin agent ext ls",
	}
	cmd.AddCommand(newNew(a), newLs(a), newTest(a), newLog(a))
	return cmd
}

func shown(a *app.App) string {
	if dir := UserDir(a); dir != "" {
		return dir
	}
	return "$XDG_CONFIG_HOME/muntin/extensions"
}

func newNew(a *app.App) *cobra.Command {
	var from string
	var project, list, asJSON bool
	cmd := &cobra.Command{
		Use: "new <name>", Short: "Make an extension from an example", Args: app.Args(0, 1, "the extension's name"),
		Example: "  muntin agent ext new --list\n  muntin agent ext new guard --from permission-gate\n  muntin agent ext new mine --from hello-python --project",
		RunE: func(_ *cobra.Command, args []string) error {
			if list {
				return listExamples(a, asJSON)
			}
			if len(args) == 0 {
				return app.Usage("want the extension's name, or --list")
			}
			dir := UserDir(a)
			if project {
				dir = ProjectDir(a.Dir)
			}
			return make1(a, args[0], from, dir)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "hello-python", "the example to begin with; see --list")
	f.BoolVar(&project, "project", false, "in the project's .muntin/extensions")
	f.BoolVar(&list, "list", false, "list the examples")
	f.BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

func listExamples(a *app.App, asJSON bool) error {
	all, err := examples.List()
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(all)
	}
	table := term.NewTable("EXAMPLE", "LANGUAGE", "WHAT IT DOES")
	for _, e := range all {
		table.Row(e.Name, e.Language, e.Description)
	}
	return table.Write(a.Streams.Out, a.Theme, 0)
}

func make1(a *app.App, name, from, parent string) error {
	if err := id.CheckName("an extension", name); err != nil {
		return &app.ExitError{Code: app.ExitUsage, Err: err}
	}
	if parent == "" {
		return errors.New("there is no folder for your extensions: neither $XDG_CONFIG_HOME nor $HOME is an absolute path")
	}
	dir := filepath.Join(parent, name)
	if _, err := os.Lstat(dir); err == nil {
		return app.Hint(fmt.Errorf("making the extension %s: %s is there already", name, dir), "choose another name, or remove it")
	}
	if err := examples.Write(dir, name, from); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = app.Hint(app.Usage("there is no example %q", from), "see muntin agent ext new --list")
		}
		return err
	}
	fmt.Fprintf(a.Streams.Out, "%s\ntest it with: muntin agent ext test %s\n", dir, name)
	return nil
}

// listedOne is an extension as `ext ls` shows it.
type listedOne struct {
	Name        string          `json:"name"`
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Source      string          `json:"source"`
	Dir         string          `json:"dir"`
	Gates       []string        `json:"gates,omitempty"`
	Events      []string        `json:"events,omitempty"`
	Tools       []string        `json:"tools,omitempty"`
	Commands    []string        `json:"commands,omitempty"`
	Providers   []string        `json:"providers,omitempty"`
	Permissions any             `json:"permissions"` // null: the user's rights
	Enforced    *sandbox.Report `json:"enforced,omitempty"`
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	var extra []string
	cmd := &cobra.Command{
		Use: "ls", Short: "List the extensions, and what each may do", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			all, problems, err := found(ctx, a, extra)
			if err != nil {
				return err
			}
			report := sandbox.New(sandbox.Options{Self: a.Self, Getenv: a.Getenv}).Report(ctx)
			list := []listedOne{}
			for _, e := range all {
				list = append(list, describe(e, report))
			}
			for _, p := range problems {
				fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Warn.Render("extensions:"), term.CleanLine(p))
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			return table(a, list)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringArrayVar(&extra, "extension", nil, "the folder of another one")
	return cmd
}

func describe(e extension.Extension, report sandbox.Report) listedOne {
	l := listedOne{
		Name: e.Name, Version: e.Version, Description: e.Description, Source: e.Source, Dir: e.Dir, Events: e.Events,
	}
	for _, g := range e.Gates {
		l.Gates = append(l.Gates, g.On)
	}
	for _, t := range e.Tools {
		l.Tools = append(l.Tools, t.Name)
	}
	for _, c := range e.Commands {
		l.Commands = append(l.Commands, "/"+c.Name)
	}
	for _, p := range e.Providers {
		l.Providers = append(l.Providers, p.ID)
	}
	if e.Permissions != nil {
		l.Permissions, l.Enforced = e.Permissions, &report
	}
	return l
}

func table(a *app.App, list []listedOne) error {
	width := 0
	if a.Streams.OutTTY {
		width, _ = a.Streams.Size()
	}
	t := term.NewTable("NAME", "FROM", "DOES", "MAY")
	for _, l := range list {
		var does []string
		for kind, names := range map[string][]string{"gates": l.Gates, "tools": l.Tools, "commands": l.Commands, "sees": l.Events, "models": l.Providers} {
			if len(names) > 0 {
				does = append(does, kind+" "+strings.Join(names, ","))
			}
		}
		slices.Sort(does)
		t.Row(term.CleanLine(l.Name), l.Source, term.CleanLine(strings.Join(does, "; ")), term.CleanLine(may(l)))
	}
	return t.Write(a.Streams.Out, a.Theme, width)
}

// may says in words what an extension may do, and what of its limits nothing enforces.
func may(l listedOne) string {
	p, ok := l.Permissions.(*extension.Permission)
	if !ok || p == nil {
		return "all that you may"
	}
	parts := []string{"network " + map[bool]string{true: "yes", false: "no"}[p.Network]}
	if len(p.Read) > 0 {
		parts = append(parts, "read "+strings.Join(p.Read, ","))
	}
	if len(p.Write) > 0 {
		parts = append(parts, "write "+strings.Join(p.Write, ","))
	}
	if len(p.Env) > 0 {
		parts = append(parts, "env "+strings.Join(p.Env, ","))
	}
	r := *l.Enforced
	if r.Files == sandbox.NotEnforced && r.Network == sandbox.NotEnforced {
		return strings.Join(parts, ", ") + " (not enforced)"
	}
	var lacks []string
	if r.Files != "enforced" {
		lacks = append(lacks, "files: "+r.Files)
	}
	if r.Network != "enforced" && !p.Network {
		lacks = append(lacks, "network: "+r.Network)
	}
	by := "by " + r.By
	if len(lacks) > 0 {
		by += "; " + strings.Join(lacks, "; ")
	}
	return strings.Join(parts, ", ") + " (" + by + ")"
}

func newTest(a *app.App) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "test <name or folder>", Short: "Check that an extension keeps to the protocol", Args: app.Args(1, 1, "an extension's name or folder"),
		Long: "Starts the extension, asks of its gates what the agent would, with made-up cases, and\n" +
			"looks whether it keeps to the protocol. Its tools and commands are called only with\n" +
			"--tools: they do then what they always do.",
		Example: "  muntin agent ext test guard\n  muntin agent ext test ./guard --tools",
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			e, err := one(ctx, a, args[0])
			if err != nil {
				return err
			}
			results, err := extension.Conformance(ctx, e, extension.CheckOptions{Tools: all, Options: extension.Options{
				Dir: a.Dir, State: StateDir(a), Mode: "print", Version: a.Version, Env: a.Environ, AllEnv: a.Environ, Confine: Confiner(a),
			}})
			if err != nil {
				return err
			}
			if asJSON {
				err = a.PrintJSON(results)
			} else {
				err = printResults(a, results)
			}
			if err == nil && slices.ContainsFunc(results, func(r extension.Check) bool { return !r.OK }) {
				return app.Exit(app.ExitFailed)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "tools", false, "call its tools and commands as well")
	return cmd
}

func printResults(a *app.App, results []extension.Check) error {
	for _, r := range results {
		word := a.Theme.Good.Render("ok  ")
		if !r.OK {
			word = a.Theme.Bad.Render("FAIL")
		}
		line := word + " " + r.Name
		if r.Note != "" {
			line += ": " + term.CleanLine(r.Note)
		}
		if _, err := fmt.Fprintln(a.Streams.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// one finds an extension by its name or folder.
func one(ctx context.Context, a *app.App, ref string) (extension.Extension, error) {
	if _, err := os.Stat(filepath.Join(ref, extension.ManifestName)); err == nil {
		all, problems := extension.Load(extension.Place{Dir: ref, Source: "command line", One: true})
		if len(all) == 0 {
			return extension.Extension{}, errors.New(strings.Join(problems, "\n"))
		}
		return all[0], nil
	}
	all, problems, err := found(ctx, a, nil)
	if err != nil {
		return extension.Extension{}, err
	}
	for _, e := range all {
		if e.Name == ref {
			return e, nil
		}
	}
	err = fmt.Errorf("there is no extension %q, and no folder with an %s", ref, extension.ManifestName)
	if len(problems) > 0 {
		return extension.Extension{}, app.Hint(err, "%s", strings.Join(problems, "; "))
	}
	return extension.Extension{}, app.Hint(err, "see muntin agent ext ls")
}

func newLog(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "log <name>", Short: "Show what an extension wrote to standard error", Args: app.Args(1, 1, "an extension's name"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := id.CheckName("an extension", args[0]); err != nil {
				return &app.ExitError{Code: app.ExitUsage, Err: err}
			}
			f, err := os.Open(extension.LogFile(StateDir(a), args[0]))
			if errors.Is(err, fs.ErrNotExist) {
				return app.Hint(fmt.Errorf("there is no log of an extension %s", args[0]), "it begins when the extension is first started")
			}
			if err != nil {
				return fmt.Errorf("reading the log: %w", err)
			}
			defer f.Close()
			if !a.Streams.OutTTY {
				_, err = io.Copy(a.Streams.Out, f)
				return err
			}
			b, err := io.ReadAll(f)
			if err != nil {
				return fmt.Errorf("reading the log: %w", err)
			}
			_, err = io.WriteString(a.Streams.Out, term.Clean(string(b)))
			return err
		},
	}
}

// NewConfine makes the hidden `muntin confine`, by which muntin confines itself and
// becomes another program: see sandbox.Become.
func NewConfine(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "confine <scope> -- <command...>", Hidden: true, Args: cobra.MinimumNArgs(2), DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := sandbox.ParseScope(args[0])
			if err != nil {
				return &app.ExitError{Code: app.ExitUsage, Err: err}
			}
			if args[1] == "--" {
				args = args[1:]
			}
			if len(args) < 2 {
				return app.Usage("want a command")
			}
			return sandbox.Become(s, args[1:], a.Environ)
		},
	}
}
