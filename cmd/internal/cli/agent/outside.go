package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muntin/agent/adapter"
	"muntin/agent/adapter/custom"
	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/durable"
)

// prepare finds the adapter of an agent's command, and makes of the command
// what is started: with the CLI's hooks, and with the conversation that the
// agent had before.
func prepare(a *app.App, opt *pty.Options) error {
	var err error
	if opt.Adapter, err = custom.For(custom.Dir(a.Getenv), opt.Argv); err != nil {
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
	start := opt.Adapter.Prepare(adapter.Launch{
		Argv: opt.Argv, Env: opt.Env, WorkDir: opt.WorkDir, FilesDir: filepath.Join(opt.Dir.Path, "cli"), Self: a.Self,
		Conversation: talk.ID,
	})
	if err := writeFiles(start.Files); err != nil {
		return err
	}
	opt.Argv, opt.Env, opt.Conversation = start.Argv, start.Env, pty.Conversation{ID: start.Conversation}
	if start.Conversation == "" {
		return nil
	}
	if start.Conversation == talk.ID {
		opt.Conversation = talk
		return nil
	}
	return pty.WriteConversation(opt.Dir, opt.Conversation) // before the start: it must survive us
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
