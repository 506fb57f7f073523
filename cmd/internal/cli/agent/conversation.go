package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"muntin/agent/session"
	"muntin/cmd/internal/cli/app"
	sessions "muntin/cmd/internal/cli/session"
	"muntin/internal/id"
)

// A Conversation says which session the agent works in; at most one of its fields
// but Dir is set, and without any it is a new one.
type Conversation struct {
	File     string // gone on with if it is there, else made
	Continue bool   // the newest of this folder
	Resume   string // an id, the beginning of one, or a path
	Fork     string // as Resume; a copy of it
	None     bool   // in memory only
	Dir      string // the folder of sessions
}

func (c *Conversation) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.File, "session", "", "the conversation's file; it is continued if it exists")
	f.BoolVarP(&c.Continue, "continue", "c", false, "go on with this folder's newest conversation")
	f.StringVarP(&c.Resume, "resume", "r", "", "go on with the conversation of this id or file")
	f.StringVar(&c.Fork, "fork", "", "go on with a copy of the conversation of this id or file")
	f.BoolVar(&c.None, "no-session", false, "keep the conversation in memory only")
	f.StringVar(&c.Dir, "session-dir", "", "the folder of conversations (default: $MUNTIN_SESSION_DIR, else muntin's own)")
	cmd.MarkFlagsMutuallyExclusive("session", "continue", "resume", "fork", "no-session")
}

// path is the file of the conversation; "" for one in memory. dir is the working
// folder.
func (c Conversation) path(a *app.App, dir string) (string, error) {
	if c.None {
		return "", nil
	}
	if c.File != "" {
		return filepath.Abs(c.File)
	}
	folder := sessions.Dir(a, c.Dir)
	switch {
	case c.Continue:
		info, err := session.Newest(folder, dir)
		if errors.Is(err, session.ErrNoSession) {
			err = app.Hint(err, "leave --continue out for a new one, or see `muntin session ls --all`")
		}
		return info.Path, err
	case c.Resume != "":
		return resume(folder, c.Resume, dir)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of conversations: %w", err)
	}
	path := filepath.Join(folder, id.New(a.Now())+".jsonl")
	if c.Fork != "" {
		return path, fork(a, c.Fork, folder, session.ForkOptions{Path: path, Dir: dir, Now: a.Now})
	}
	return path, nil
}

// resume finds a conversation to go on with. One that was held in another folder
// is full of paths that mean something else here.
func resume(folder, ref, dir string) (string, error) {
	path, err := sessions.Resolve(folder, ref)
	if err != nil {
		return "", err
	}
	h, err := session.ReadHeader(path)
	if err != nil {
		return "", err
	}
	if h.Cwd != "" && h.Cwd != dir {
		return "", app.Hint(app.Usage("session %s was held in %s, and this is %s", h.ID, h.Cwd, dir),
			"go on there with --repo %s, or here with a copy of it: --fork %s", h.Cwd, ref)
	}
	return path, nil
}

func fork(a *app.App, ref, folder string, o session.ForkOptions) error {
	from, err := sessions.Resolve(folder, ref)
	if err != nil {
		return err
	}
	s, err := session.Open(from, session.Options{ReadOnly: true, Now: a.Now})
	if err != nil {
		return err
	}
	return errors.Join(s.Fork(o), s.Close())
}
