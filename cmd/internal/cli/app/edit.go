package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"muntin/internal/proc"
)

// Edit opens a file in the person's editor, on the person's terminal, and waits:
// in the command that editor names (the setting), else $VISUAL, $EDITOR or vi. An
// editor may have arguments, split at spaces.
func (a *App) Edit(ctx context.Context, editor, path string) error {
	argv := strings.Fields(cmp.Or(strings.TrimSpace(editor), strings.TrimSpace(a.Getenv("VISUAL")), strings.TrimSpace(a.Getenv("EDITOR")), "vi"))
	_, err := proc.Run(ctx, proc.Spec{
		Argv: append(argv, path), Env: a.Environ, Terminal: true,
		Stdin: a.Streams.In, Stdout: a.Streams.Out, Stderr: a.Streams.Err,
	})
	if err != nil {
		return Hint(fmt.Errorf("editing %s with %s: %w", path, argv[0], err), "name the editor you like: muntin settings set editor vi, or $EDITOR")
	}
	return nil
}
