// Package mcp holds the commands about the Model Context Protocol: the servers whose
// tools the agent has, and muntin as a server.
package mcp

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/llm/catalog"
	"muntin/agent/mcp"
	"muntin/agent/resource"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
	"muntin/internal/term"
)

// NewCmd makes `muntin mcp`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Servers of the Model Context Protocol, and muntin as one", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
		Long: "The agent has the tools of the servers in " + shown(a) + " and, once you\n" +
			"trust the project, in its .muntin/mcp.json: {\"mcpServers\": {\"name\": {\"command\": …,\n" +
			"\"args\": […]}, \"other\": {\"url\": …}}}. They are started when they are needed.",
		Example: "  muntin mcp ls\n  muntin mcp serve",
	}
	cmd.AddCommand(newLs(a), newServe(a))
	return cmd
}

func shown(a *app.App) string {
	if a.Layout.Config == "" {
		return "$XDG_CONFIG_HOME/muntin/mcp.json"
	}
	return filepath.Join(a.Layout.Config, "mcp.json")
}

// Config reads the servers of Files.
func Config(a *app.App, dir string, trusted bool) (mcp.Config, error) {
	return mcp.Load(a.Getenv, Files(a, dir, trusted)...)
}

// Files are where servers stand, whether they exist or not: the user's, and over it
// that of the project that dir lies in, where it is trusted.
func Files(a *app.App, dir string, trusted bool) []string {
	var files []string
	if a.Layout.Config != "" {
		files = append(files, filepath.Join(a.Layout.Config, resource.ServersFile))
	}
	if trusted {
		files = append(files, projectFile(dir))
	}
	return files
}

func projectFile(dir string) string {
	return resource.OfProject(resource.Project(dir), resource.ServersFile)
}

// found is Config for a command that is not the agent; problems are for people.
func found(ctx context.Context, a *app.App, dir string) (c mcp.Config, problems []string, err error) {
	trust, err := resources.Decide(ctx, resources.Options{App: a, Dir: dir})
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(projectFile(dir)); err == nil && !trust.Trusted {
		problems = append(problems, fmt.Sprintf("%s is left out: the folder is not trusted (muntin trust does that)", projectFile(dir)))
	}
	c, err = Config(a, dir, trust.Trusted)
	return c, problems, err
}

// Options are those of a source with a configuration. Servers get our environment
// without the keys of model providers.
func Options(a *app.App, c mcp.Config, dir string) mcp.Options {
	keys := catalog.KeyVariables()
	env := slices.DeleteFunc(slices.Clone(a.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "MUNTIN_SOCKET" || slices.Contains(keys, name)
	})
	return mcp.Options{Config: c, Dir: dir, Env: env, State: filepath.Join(a.Layout.State, "mcp"), Version: a.Version}
}

// listed is a server as `mcp ls` shows it.
type listed struct {
	Name  string   `json:"name"`
	At    string   `json:"at"` // its command or url
	Tools []string `json:"tools"`
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the servers and their tools", Args: app.Args(0, 0, ""),
		Long: "Servers whose tools are not known yet are started and asked.",
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			dir, err := app.Confirmed(a.Dir)
			if err != nil {
				return err
			}
			c, problems, err := found(ctx, a, dir)
			if err != nil {
				return err
			}
			list := []listed{}
			for _, name := range slices.Sorted(maps.Keys(c)) {
				s, failed := mcp.Open(ctx, Options(a, mcp.Config{name: c[name]}, dir))
				problems = append(problems, failed...)
				l := listed{Name: name, At: c[name].URL, Tools: []string{}}
				if l.At == "" {
					l.At = strings.Join(append([]string{c[name].Command}, c[name].Args...), " ")
				}
				for _, t := range s.Tools() {
					l.Tools = append(l.Tools, t.Spec().Name)
				}
				list = append(list, l)
				if err := s.Close(); err != nil {
					return err
				}
			}
			for _, p := range problems {
				fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Warn.Render("mcp:"), term.CleanLine(p))
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			t := term.NewTable("SERVER", "AT", "TOOLS")
			for _, l := range list {
				t.Row(term.CleanLine(l.Name), term.CleanLine(l.At), term.CleanLine(strings.Join(l.Tools, " ")))
			}
			return t.Write(a.Streams.Out, a.Theme, 0)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
