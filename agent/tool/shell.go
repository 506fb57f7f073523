package tool

import (
	"context"
	"errors"
	"fmt"

	"muntin/internal/proc"
)

// A Shell is what came of a command that the user ran.
type Shell struct {
	Output    string // its end, as a model would be shown it
	ExitCode  int    // -1 when Cancelled
	Cancelled bool   // ctx ended it
	Truncated bool
	Path      string // where all of a long output is; "" for one that is whole
}

// Shell runs a command of the user in the working folder, without a limit of time.
// onOutput, which may be nil, takes the output as it comes, in pieces. An error
// means that the command could not be run.
func (s *Set) Shell(ctx context.Context, command string, onOutput func(string)) (Shell, error) {
	if err := checkDir(s.dir); err != nil {
		return Shell{}, err
	}
	out := newOutput(s.spill)
	out.tee = onOutput
	res, err := proc.Run(ctx, proc.Spec{
		Argv: []string{s.shell, "-c", command}, Dir: s.dir, Env: bashTool{s}.commandEnv(),
		Stdout: out, Stderr: out, Grace: drain, Reap: true,
	})
	shown := out.close()
	sh := Shell{Output: shown.text, ExitCode: res.Code, Truncated: shown.cut.Truncated, Path: shown.path}
	var exit *proc.ExitError
	switch {
	case ctx.Err() != nil:
		sh.Cancelled, sh.ExitCode = true, -1
	case err != nil && !errors.As(err, &exit):
		return Shell{}, fmt.Errorf("running the command: %w", err)
	}
	return sh, nil
}
