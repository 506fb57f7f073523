package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muntin/agent/adapter"
	"muntin/agent/adapter/custom"
	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/durable"
	"muntin/internal/proc"
	"muntin/recipes"
)

// An outside is how an outside CLI is started: what its agent's recipe says.
type outside struct {
	adapter string // its name; empty: by the command
	wants   adapter.Wants
	fork    string // the conversation that a new one begins with a copy of; empty: none
}

// take takes from the recipe what the command line leaves open.
func (o *outside) take(agent recipes.Agent) {
	o.adapter = cmp.Or(o.adapter, agent.Adapter)
	o.wants.Approval = cmp.Or(o.wants.Approval, agent.Approval)
	o.wants.Thinking = cmp.Or(o.wants.Thinking, agent.Thinking)
	if o.wants.Tools == nil {
		o.wants.Tools = agent.Tools
	}
}

// readiness is what the recipe wants of an agent to be ready. Its check is a
// command line for a shell, as the checks of tasks are.
func readiness(r *recipes.Ready, opt pty.Options) pty.Readiness {
	if r == nil {
		return pty.Readiness{}
	}
	want := pty.Readiness{Text: r.Text, Timeout: r.Timeout}
	if r.Check != "" {
		dir, env, limit := opt.WorkDir, opt.Env, r.Timeout
		want.Check = func(ctx context.Context) error {
			_, err := proc.Run(ctx, proc.Spec{Argv: []string{"sh", "-c", r.Check}, Dir: dir, Env: env, Timeout: limit, Merge: true, Keep: 4 << 10, Reap: true})
			return err
		}
	}
	return want
}

// prepare finds the adapter of an agent's command, and makes of the command
// what is started: with the CLI's hooks, with what the recipe wants of it, and
// with the conversation that the agent had before.
func prepare(a *app.App, opt *pty.Options, o outside) error {
	var err error
	if opt.Adapter, err = adapterOf(a, opt.Argv, o.adapter); err != nil {
		return err
	}
	if opt.Adapter.Link {
		return nil
	}
	talk, err := pty.ReadConversation(opt.Dir)
	if err != nil {
		return err // it is not written over
	}
	if talk.ID != "" && !kept(opt.Adapter, opt.Env, talk.ID) {
		talk = pty.Conversation{} // nothing was said in it
	}
	if opt.Adapter.Versions != "" {
		program, ad, env := opt.Argv, opt.Adapter, opt.Env
		opt.Advise = func(ctx context.Context) string {
			says, err := app.Versions(a).Of(ctx, adapter.Command(program), env)
			if err != nil {
				opt.Log.Debug("the version of the CLI is not known", "error", err)
			}
			return ad.Untried(says)
		}
	}
	launch := adapter.Launch{
		Argv: opt.Argv, Env: opt.Env, WorkDir: opt.WorkDir, FilesDir: filepath.Join(opt.Dir.Path, "cli"), Self: a.Self,
		Conversation: talk.ID, Wants: o.wants,
	}
	if talk.ID == "" && o.fork != "" {
		launch.Conversation, launch.Fork = o.fork, true
	}
	start, err := opt.Adapter.Prepare(launch)
	if err != nil {
		return err
	}
	if err := writeFiles(start.Files); err != nil {
		return err
	}
	opt.Hooked = start.Hooked
	opt.Argv, opt.Env, opt.Conversation = start.Argv, start.Env, pty.Conversation{ID: start.Conversation}
	if talk.ID == "" && !launch.Fork {
		opt.First = func(text string) ([]string, bool) { return opt.Adapter.Prompted(start, launch.Argv, text) }
	}
	if start.Conversation == "" {
		return nil
	}
	if start.Conversation == talk.ID {
		opt.Conversation = talk
		return nil
	}
	return pty.WriteConversation(opt.Dir, opt.Conversation) // before the start: it must survive us
}

// adapterOf is the adapter that is named, or else that of the command.
func adapterOf(a *app.App, argv []string, name string) (adapter.Adapter, error) {
	dir := custom.Dir(a.Getenv)
	if name == "" {
		return custom.For(dir, argv)
	}
	return custom.Find(dir, name)
}

// kept reports whether the CLI can go on with that conversation.
func kept(ad adapter.Adapter, env []string, id string) bool {
	pattern := ad.Transcripts(env, id)
	if pattern == "" {
		return true // it cannot be told
	}
	found, err := filepath.Glob(pattern)
	return err == nil && len(found) > 0
}

func writeFiles(files []adapter.File) error {
	var errs []error
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o700); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, durable.WriteFile(f.Name, []byte(f.Text), 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("writing the settings of an agent's hooks: %w", err)
	}
	return nil
}
