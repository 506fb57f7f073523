package recipe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/internal/trust"
	"muntin/recipes"
)

// A Source finds recipes for a command: with the values of its --set, and with
// the questions that a person at a terminal can answer.
type Source struct {
	App   *app.App
	set   []string
	trust bool
	in    *bufio.Reader
}

// Flags adds --set and --trust to a command whose first argument is a recipe.
func (s *Source) Flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.set, "set", nil, "value of a parameter, as name=value; may be repeated")
	cmd.Flags().BoolVar(&s.trust, "trust", false, "use the repository's own recipe this time without being asked")
	_ = cmd.RegisterFlagCompletionFunc("set", s.completeSet) // it is a flag of this very command
}

// Load reads a recipe with the values of its parameters. A repository's own one
// is shown and asked about first, on a terminal, unless the repository is trusted.
// Errors of the command line and of recipes have exit code 2.
func (s *Source) Load(ctx context.Context, name string) (*recipes.Recipe, error) {
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	if s.App.Streams.InTTY && s.App.Streams.ErrTTY {
		o.Ask = func(p recipes.Param) (string, error) { return s.askParam(ctx, p) }
	}
	recipe, err := recipes.Find(name, o)
	var untrusted *recipes.UntrustedError
	if errors.As(err, &untrusted) {
		return s.untrusted(ctx, name, o, untrusted)
	}
	return recipe, s.explain(name, err)
}

// Before gives the values that a recipe got before; those of --set go first.
func (s *Source) Before(values []string) { s.set = append(slices.Clone(values), s.set...) }

// Values are the parameters' values as name=value, the last of a name once.
func (s *Source) Values() []string {
	var out []string
	for _, kv := range s.set {
		name, _, _ := strings.Cut(kv, "=")
		out = append(slices.DeleteFunc(out, func(o string) bool { return strings.HasPrefix(o, name+"=") }), kv)
	}
	return out
}

// explain adds what the user can do.
func (s *Source) explain(name string, err error) error {
	if !errors.Is(err, recipes.ErrNotFound) {
		return err
	}
	var names []string
	o, _ := s.options() // --set has been read before
	for _, info := range recipes.List(o) {
		if info.Source == recipes.SourceBuiltin {
			names = append(names, info.Name)
		}
	}
	return app.Hint(&app.ExitError{Code: app.ExitUsage, Err: err}, "the built-in recipes are %s; a file needs a path: ./%s.yaml",
		strings.Join(names, ", "), strings.TrimSuffix(filepath.Base(name), ".yaml"))
}

// options say where recipes are, without anybody being asked.
func (s *Source) options() (recipes.Options, error) {
	o := recipes.Options{Set: map[string]string{}, User: UserDir(s.App)}
	for _, kv := range s.set {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			return o, app.Usage("--set %s: want name=value", kv)
		}
		o.Set[name] = value
	}
	if repo, err := state.FindRepo(s.App.Dir); err == nil {
		o.Root = repo.Root
	}
	o.Trust = func(dir string) (bool, error) {
		if s.trust {
			return true, nil
		}
		verdict, err := s.store().Lookup(trust.PlaceOf(s.App.Layout, dir))
		return verdict.Trusted, err
	}
	return o, nil
}

// UserDir is the folder of the user's own recipes; empty if there is none.
func UserDir(a *app.App) string {
	if a.Layout.Config == "" {
		return ""
	}
	return filepath.Join(a.Layout.Config, "recipes")
}

func (s *Source) store() *trust.Store { return trust.NewStore(s.App.Layout.Trust(), s.App.Now) }

// untrusted shows what a recipe of the repository would run and asks about it.
func (s *Source) untrusted(ctx context.Context, name string, o recipes.Options, u *recipes.UntrustedError) (*recipes.Recipe, error) {
	const hint = "look at it with `muntin recipe show --source %s`, then name its file, or use --trust"
	if o.Ask == nil {
		return nil, app.Hint(&app.ExitError{Code: app.ExitUsage, Err: u}, hint, u.Path)
	}
	o.Trust = func(string) (bool, error) { return true, nil } // reading runs nothing
	recipe, err := recipes.Find(name, o)
	if err != nil {
		return nil, err
	}
	t, out := s.App.Theme, s.App.Streams.Err
	fmt.Fprintf(out, "%s is a recipe of this repository, %s\n", t.Strong.Render(name), term.Clean(u.Path))
	WriteCommands(s.App, recipe)
	answer, err := s.ask(ctx, fmt.Sprintf("Trust %s and all in it from now on? [y/N] ", term.Clean(u.Dir)))
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
		return nil, app.Hint(&app.ExitError{Code: app.ExitUsage, Err: u}, hint, u.Path)
	}
	if _, err := s.store().Decide(ctx, u.Dir, true); err != nil {
		return nil, err
	}
	return recipe, nil
}

// WriteCommands tells on stderr what a recipe would run.
func WriteCommands(a *app.App, r *recipes.Recipe) {
	out := a.Streams.Err
	for _, agent := range r.Resolve() {
		if agent.BuiltIn() {
			fmt.Fprintf(out, "  agent %s: built in, with %s; it runs what its model asks for\n", agent.Name, term.Clean(agent.Model))
		}
	}
	for _, c := range r.Commands() {
		text := c.Shell
		if c.Argv != nil {
			text = fmt.Sprintf("%q", c.Argv)
		}
		fmt.Fprintf(out, "  %s: %s\n", term.Clean(c.Where), term.Clean(strings.ReplaceAll(text, "\n", "\n    ")))
	}
}

// askParam asks until the answer is one that the parameter can have.
func (s *Source) askParam(ctx context.Context, p recipes.Param) (string, error) {
	for {
		text := p.Name
		if p.Description != "" {
			text += ", " + term.Clean(p.Description)
		}
		if len(p.Choices) > 0 {
			text += " (" + term.Clean(strings.Join(p.Choices, ", ")) + ")"
		}
		answer, err := s.ask(ctx, text+": ")
		if err != nil {
			return "", err
		}
		if answer == "" {
			continue
		}
		err = p.Check(answer)
		if err == nil {
			return answer, nil
		}
		fmt.Fprintf(s.App.Streams.Err, "  %v\n", err)
	}
}

// ask reads a line from the terminal.
func (s *Source) ask(ctx context.Context, question string) (string, error) {
	if s.in == nil {
		s.in = bufio.NewReader(s.App.Streams.In)
	}
	fmt.Fprint(s.App.Streams.Err, question)
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	// Nothing can end a read of a terminal. After Ctrl-C the program ends, and the
	// read with it.
	go func() {
		text, err := s.in.ReadString('\n')
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.App.Streams.Err)
		return "", context.Cause(ctx)
	case l := <-read:
		if l.err != nil && l.text == "" {
			return "", fmt.Errorf("reading the answer: %w", l.err)
		}
		return strings.TrimSpace(l.text), nil
	}
}

// Complete offers the names of recipes for the first argument, and files.
func (s *Source) Complete(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	o, err := s.options()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, info := range recipes.List(o) {
		if strings.HasPrefix(info.Name, word) {
			out = append(out, cobra.CompletionWithDesc(info.Name, info.Description))
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completeSet offers the parameters of the recipe that is named, then the values
// that one may have.
func (s *Source) completeSet(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	o, err := s.options()
	if err != nil {
		o.Set = nil // the word that is being typed is among them
	}
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	params, err := recipes.Params(args[0], o)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for i := range params {
		p := &params[i]
		values := p.Choices
		if p.Type == recipes.ParamBool {
			values = []string{"true", "false"}
		}
		for _, v := range values {
			out = append(out, p.Name+"="+v)
		}
		if len(values) == 0 {
			out = append(out, cobra.CompletionWithDesc(p.Name+"=", p.Description))
		}
	}
	out = slices.DeleteFunc(out, func(c cobra.Completion) bool { return !strings.HasPrefix(c, word) })
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
