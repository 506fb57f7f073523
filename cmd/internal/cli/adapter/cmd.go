// Package adapter holds the commands about adapters: ls, show and test.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/adapter"
	"muntin/agent/adapter/custom"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

// NewCmd makes `muntin adapter`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "adapter", Short: "How other agents' command lines are started and watched", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
	}
	cmd.AddCommand(newLs(a), newShow(a), newTest(a))
	return cmd
}

// A view is an adapter as it is printed.
type view struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Source      string              `json:"source"` // "built in", or the file
	Versions    adapter.Range       `json:"versions,omitempty"`
	Here        string              `json:"here,omitempty"`    // the version that is installed
	Warning     string              `json:"warning,omitempty"` // it is one that was not tried
	Evidence    []adapter.Evidence  `json:"evidence"`          // of its turns, the best first
	Args        []string            `json:"args,omitempty"`
	New         []string            `json:"new,omitempty"`
	Resume      []string            `json:"resume,omitempty"`
	Fork        []string            `json:"fork,omitempty"`
	Hooks       []string            `json:"hooks,omitempty"`
	Env         []string            `json:"env,omitempty"`
	StripEnv    []string            `json:"strip_env,omitempty"`
	Approval    map[string][]string `json:"approval,omitempty"`
	Transcript  string              `json:"transcript,omitempty"`
	Submit      string              `json:"submit,omitempty"`
	SubmitDelay string              `json:"submit_delay,omitempty"`
	Quiet       string              `json:"quiet,omitempty"`
	Steer       bool                `json:"steer"`
	Screen      []sight             `json:"screen,omitempty"`
}

type sight struct {
	Pattern string          `json:"pattern"`
	Means   adapter.Meaning `json:"means"`
}

func viewOf(a *app.App, ad adapter.Adapter, source string) view {
	v := view{
		Name: ad.Name, Description: ad.Description, Source: source, Versions: ad.Versions, Evidence: evidence(ad),
		Resume: ad.Setup.Resume, Fork: ad.Setup.Fork, Env: ad.Setup.Env, StripEnv: ad.StripEnv, Approval: ad.Approval,
		Transcript: ad.Transcripts(a.Environ, "{id}"), Steer: !ad.NoSteer,
	}
	if !ad.Link {
		v.Submit, v.SubmitDelay, v.Quiet = fmt.Sprintf("%q", ad.Submit), ad.SubmitDelay.String(), ad.Quiet.String()
	}
	for _, arg := range ad.Setup.Args {
		v.Args = append(v.Args, arg.Words...)
	}
	for _, arg := range ad.Setup.New {
		v.New = append(v.New, arg.Words...)
	}
	for _, h := range ad.Hooks {
		v.Hooks = append(v.Hooks, h.Event)
	}
	for _, s := range ad.Sights {
		v.Screen = append(v.Screen, sight{s.Pattern, s.Means})
	}
	return v
}

// evidence is what the turns of an agent can be known by.
func evidence(ad adapter.Adapter) []adapter.Evidence {
	if ad.Link {
		return []adapter.Evidence{adapter.ByProtocol}
	}
	var list []adapter.Evidence
	if len(ad.Hooks) > 0 {
		list = append(list, adapter.ByHook)
	}
	if ad.Format != "" {
		list = append(list, adapter.ByTranscript)
	}
	speaks := func(r adapter.Rule) bool { return r.Signal != adapter.SignalHook }
	if slices.ContainsFunc(ad.Rules, speaks) || ad.Foreground || ad.Status {
		list = append(list, adapter.ByTerminal)
	}
	return append(list, adapter.ByScreen)
}

const builtIn = "built in"

// A listing is what `muntin adapter ls` prints.
type listing struct {
	Adapters []view   `json:"adapters"`
	Bad      []string `json:"bad,omitempty"` // what is wrong with the user's own
}

func list(ctx context.Context, a *app.App) listing {
	out := listing{Adapters: []view{}}
	for _, name := range adapter.Names() {
		ad, _ := adapter.Lookup(name)
		out.Adapters = append(out.Adapters, viewOf(a, ad, builtIn))
	}
	dir := custom.Dir(a.Getenv)
	for _, name := range custom.Names(dir) {
		if _, known := adapter.Lookup(name); known {
			out.Bad = append(out.Bad, fmt.Sprintf("%s/%s.yaml is not used: the adapter %s is built in", dir, name, name))
			continue
		}
		ad, err := custom.Load(dir, name)
		if err != nil {
			out.Bad = append(out.Bad, err.Error())
			continue
		}
		out.Adapters = append(out.Adapters, viewOf(a, ad, dir+"/"+name+".yaml"))
	}
	var asked sync.WaitGroup
	for i := range out.Adapters {
		asked.Go(func() { out.Adapters[i].ask(ctx, a) })
	}
	asked.Wait()
	return out
}

// ask has the program of an adapter say its version, if it is installed.
func (v *view) ask(ctx context.Context, a *app.App) {
	if v.Versions == "" {
		return
	}
	says, err := app.Versions(a).Of(ctx, v.Name, a.Environ)
	if err != nil && says == "" {
		return // it is not here
	}
	v.Here = adapter.VersionIn(says)
	v.Warning = adapter.Adapter{Name: v.Name, Versions: v.Versions}.Untried(says)
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the adapters, built in and your own", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			all := list(ctx, a)
			if asJSON {
				return a.PrintJSON(all)
			}
			t := term.NewTable("NAME", "TURNS KNOWN BY", "RESUMES", "TRIED WITH", "HERE", "FROM")
			for _, v := range all.Adapters {
				grades := make([]string, len(v.Evidence))
				for i, e := range v.Evidence {
					grades[i] = string(e)
				}
				resumes := ""
				here := term.CleanLine(v.Here)
				if v.Warning != "" {
					here = a.Theme.Warn.Render(here + " (not tried)")
				}
				if v.Resume != nil {
					resumes = "yes"
				}
				t.Row(a.Theme.Strong.Render(v.Name), strings.Join(grades, ", "), resumes, term.CleanLine(string(v.Versions)), here, term.CleanLine(v.Source))
			}
			err := t.Write(a.Streams.Out, a.Theme, 0)
			for _, bad := range all.Bad {
				fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Bad.Render("bad:"), term.Clean(bad))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// find reads an adapter, and says where it comes from.
func find(a *app.App, name string) (adapter.Adapter, string, error) {
	if ad, ok := adapter.Lookup(name); ok {
		return ad, builtIn, nil
	}
	dir := custom.Dir(a.Getenv)
	ad, err := custom.Load(dir, name)
	var bad *custom.Error
	if errors.Is(err, custom.ErrNotFound) || errors.As(err, &bad) {
		err = app.Hint(&app.ExitError{Code: app.ExitUsage, Err: err}, "muntin adapter ls lists all")
	}
	return ad, dir + "/" + name + ".yaml", err
}

func newShow(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show <adapter>", Short: "Print what an adapter does to a command and how it knows its turns", Args: app.Args(1, 1, "an adapter"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			ad, source, err := find(a, args[0])
			if err != nil {
				return err
			}
			v := viewOf(a, ad, source)
			v.ask(ctx, a)
			if asJSON {
				return a.PrintJSON(v)
			}
			return show(a, v)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func show(a *app.App, v view) error {
	t := term.NewTable("", "")
	row := func(name string, words ...string) {
		if text := strings.Join(words, " "); text != "" {
			t.Row(name, term.CleanLine(text))
		}
	}
	row("name", v.Name)
	row("what it is", v.Description)
	row("from", v.Source)
	row("tried with", string(v.Versions))
	row("here", v.Here)
	row("warning", v.Warning)
	for _, e := range v.Evidence {
		row("turns known by", string(e))
	}
	row("added words", v.Args...)
	row("new conversation", v.New...)
	row("resume", v.Resume...)
	row("fork", v.Fork...)
	row("hooks", v.Hooks...)
	row("variables set", v.Env...)
	row("variables removed", v.StripEnv...)
	for _, name := range slices.Sorted(maps.Keys(v.Approval)) {
		row("approval "+name, v.Approval[name]...)
	}
	row("transcript", v.Transcript)
	row("submit", v.Submit)
	row("still at turn's end", v.Quiet)
	for _, s := range v.Screen {
		row("screen: "+string(s.Means), s.Pattern)
	}
	return t.Write(a.Streams.Out, a.Theme, 0)
}

func newTest(a *app.App) *cobra.Command {
	o := testOptions{app: a}
	cmd := &cobra.Command{
		Use: "test <adapter> [-- command…]", Short: "Start its program in a throw-away folder and say what is seen of it",
		Long: "Starts the program of an adapter under a supervisor of its own, in an empty folder,\n" +
			"waits until it takes prompts, tells by what that was known and which signals it\n" +
			"gave, and ends it. Nothing is typed: no request goes to a model.",
		Args: app.Args(1, 100, "an adapter"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.name, o.argv = args[0], args[1:]
			return runTest(ctx, o)
		}),
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "how long it may take to be ready")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}
