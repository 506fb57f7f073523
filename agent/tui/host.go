package tui

import (
	"context"
	"time"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/internal/term"
)

// A Host is the program around the front end: what its slash commands reach. A
// field that is nil leaves out the commands that need it. The functions may take
// long, but for Branch and Task.
type Host struct {
	// Open opens the conversation at a place; attach is to be called with what it is
	// opened with.
	Open func(ctx context.Context, at Place, attach func(*harness.Options)) (*harness.Harness, error)
	// NewFile is the file of a new conversation; "" for one in memory.
	NewFile func() (string, error)
	// Sessions are the conversations that can be resumed, newest first.
	Sessions func() ([]session.Info, error)
	// Models are those that can be asked.
	Models func() []llm.Model
	// OpenModel makes one of them, or one by its full name, ready.
	OpenModel func(ctx context.Context, name string) (harness.Model, llm.Level, error)
	// Export writes the conversation as a page to path, "" for a place of its
	// choice, and returns where it is.
	Export func(path string, s *session.Session) (string, error)
	// Picture reads a picture; ok is false when the file is none.
	Picture func(path string) (picture llm.Block, ok bool, err error)
	// Checkpoints are those of the working folder.
	Checkpoints Checkpoints
	// Settings are what /settings shows and changes.
	Settings Settings
	// Trust is what /trust shows and changes.
	Trust Trust
	// Theme is that of the settings as they were loaded last.
	Theme func() term.Theme
	// Commands are more slash commands, by name in any order.
	Commands []Command
	// Branch is the branch that is checked out, "" for none. It must be quick.
	Branch func() string
	// Task is what the agent works on, for the status line; "" for nothing.
	Task func() string
	// Editor is the argv of the editor for long prompts; the file comes last.
	Editor []string
}

// A Place says which conversation to open. What it does not name is as the program
// was started.
type Place struct {
	File     string
	Parent   string // of a new conversation: the file that it comes from
	Model    string
	Thinking llm.Level
}

// A Checkpoint is a saved state of the working folder's files.
type Checkpoint struct {
	ID    string // names it to Checkpoints
	Title string // one line for a person
	Entry string // the session entry that it was saved at; "" if that is not known
	Time  time.Time
	Files int // that changed since the one before
}

// Checkpoints save the files of the working folder and bring them back.
type Checkpoints interface {
	// Save saves the files before the turn that a message begins; entry is the
	// session's leaf at that moment.
	Save(ctx context.Context, entry, message string) error
	// List gives the checkpoints, newest first.
	List(ctx context.Context) ([]Checkpoint, error)
	// Restore brings the files to a checkpoint and tells in a line what it did.
	Restore(ctx context.Context, id string) (report string, err error)
	// Undo takes the last Restore back.
	Undo(ctx context.Context) (report string, err error)
	// Patch is the difference between a checkpoint, "" for the newest, and the
	// files as they are, as a unified diff.
	Patch(ctx context.Context, id string) (string, error)
}

// A Command is a slash command.
type Command struct {
	Name string // without the slash
	Args string // as help shows them; "" for none
	Help string // one line
	Idle bool   // it needs that no turn runs
	// Run does it and returns a text to show, in Markdown. Its error is shown.
	// It is nil for what the agent makes of a prompt itself: commands of extensions,
	// prompt templates and skills.
	Run func(ctx context.Context, ask Asker, arg string) (page string, err error)
}

// An Asker asks the person. Its errors are those of the context, or ErrNoAnswer.
type Asker interface {
	// Choose returns the index of the item that was chosen.
	Choose(ctx context.Context, title string, items []string) (int, error)
	// Text returns a text of one line.
	Text(ctx context.Context, title, start string) (string, error)
}
