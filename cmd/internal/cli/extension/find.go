// Package extension holds the commands about the agent's extensions, and how the
// agent finds them.
package extension

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"muntin/agent/extension"
	"muntin/agent/extension/sandbox"
	"muntin/agent/resource"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
)

// StateDir is where extensions keep files and where their logs are.
func StateDir(a *app.App) string { return filepath.Join(a.Layout.State, "extensions") }

// UserDir is the folder of the user's own extensions; "" when there is no home.
func UserDir(a *app.App) string {
	if a.Layout.Config == "" {
		return ""
	}
	return filepath.Join(a.Layout.Config, "extensions")
}

// ProjectDir is the folder of the extensions of the project that dir lies in.
func ProjectDir(dir string) string {
	return resource.OfProject(resource.Project(dir), resource.ExtensionsFolder)
}

// Find reads the manifests of the user's extensions, of the project's where it is
// trusted, and of the folders in extra, in this order. Nothing is started. Problems
// are for people; that the project's are left out is none of them.
func Find(a *app.App, dir string, trusted bool, extra []string) (all []extension.Extension, problems []string) {
	var places []extension.Place
	if user := UserDir(a); user != "" {
		places = append(places, extension.Place{Dir: user, Source: "user"})
	}
	if project := ProjectDir(dir); trusted && project != UserDir(a) {
		places = append(places, extension.Place{Dir: project, Source: "project"})
	}
	for _, path := range extra {
		places = append(places, extension.Place{Dir: path, Source: "command line", One: true})
	}
	return extension.Load(places...)
}

// found is Find for a command that is not the agent: the decision on trust is the one
// that the agent would follow, and what is left out is told.
func found(ctx context.Context, a *app.App, extra []string) (all []extension.Extension, problems []string, err error) {
	dir, err := app.Confirmed(a.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the working folder: %w", err)
	}
	trust, err := resources.Decide(ctx, resources.Options{App: a, Dir: dir})
	if err != nil {
		return nil, nil, err
	}
	all, problems = Find(a, dir, trust.Trusted, extra)
	if project := ProjectDir(dir); !trust.Trusted && project != UserDir(a) {
		if _, err := os.Stat(project); err == nil {
			problems = append(problems, fmt.Sprintf("the extensions in %s are left out: the folder is not trusted (muntin trust does that)", project))
		}
	}
	return all, problems, nil
}

// A Setup says how a host is made.
type Setup struct {
	Dir   string // the working folder
	Mode  string // tui, print, json, rpc or acp
	Flags []string
	Env   []string // of programs that name no permissions
}

// NewHost makes a host of extensions. No program is started.
func NewHost(ctx context.Context, a *app.App, all []extension.Extension, s Setup) (*extension.Host, error) {
	h, err := extension.New(ctx, extension.Options{
		Extensions: all, Dir: s.Dir, State: StateDir(a), Mode: s.Mode, Version: a.Version, Flags: s.Flags,
		Env: s.Env, AllEnv: a.Environ, Confine: Confiner(a),
	})
	if err != nil {
		return nil, &app.ExitError{Code: app.ExitUsage, Err: err}
	}
	return h, nil
}

// Confiner gives programs only what their permissions allow, as far as this machine
// can enforce that.
func Confiner(a *app.App) func(context.Context, extension.Confinement) ([]string, error) {
	box := sandbox.New(sandbox.Options{Self: a.Self, Getenv: a.Getenv})
	return func(ctx context.Context, c extension.Confinement) ([]string, error) {
		return box.Argv(ctx, Policy(c))
	}
}

// Policy is what a confinement means for the sandbox.
func Policy(c extension.Confinement) sandbox.Policy {
	return sandbox.Policy{
		Argv: c.Argv, Dir: c.Dir, Home: c.Home, Read: c.Permission.Read, Write: c.Permission.Write,
		Writable: c.Writable, Network: c.Permission.Network, Env: c.Env,
	}
}
