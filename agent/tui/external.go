package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/proc"
)

// An externalEditor lets the person write the prompt in a program of its own. It is
// Bubble Tea's ExecCommand: the terminal is released while it runs.
type externalEditor struct {
	*full
	text string
}

// SetStdin does nothing: the program gets the terminal itself.
func (e *externalEditor) SetStdin(io.Reader) {}

// SetStdout does nothing, as SetStdin.
func (e *externalEditor) SetStdout(io.Writer) {}

// SetStderr does nothing, as SetStdin.
func (e *externalEditor) SetStderr(io.Writer) {}

// Run runs the editor and takes what it wrote. When it fails the text stays.
func (e *externalEditor) Run() error {
	if len(e.opts.Host.Editor) == 0 {
		return errors.New("no editor is named: set $VISUAL or $EDITOR")
	}
	dir, err := os.MkdirTemp("", "muntin-editor-")
	if err != nil {
		return fmt.Errorf("writing the prompt for the editor: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "prompt.md")
	if err := os.WriteFile(file, []byte(e.text), 0o600); err != nil {
		return fmt.Errorf("writing the prompt for the editor: %w", err)
	}
	e.fail(e.screen.Stop())
	argv := append(append([]string{}, e.opts.Host.Editor...), file)
	in, _ := e.opts.In.(*os.File)
	_, err = proc.Run(e.ctx, proc.Spec{
		Argv: argv, Dir: e.opts.Dir, Env: e.opts.Env, Stdin: in, Stdout: e.opts.Tty, Stderr: e.opts.Tty, Terminal: true,
	})
	if err != nil {
		return fmt.Errorf("editing the prompt: %w", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the prompt that was edited: %w", err)
	}
	e.text = strings.TrimRight(string(text), "\n")
	return nil
}
