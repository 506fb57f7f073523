package proc

import "context"

// Shell runs a command line that a person wrote (a check, a setup) with sh, as
// the line that it is: nothing may be put into it. Both of its streams are in
// Result.Stdout, and nothing that it left running survives it. Argv, Merge
// and Reap of spec are set here. The errors are those of Run.
func Shell(ctx context.Context, line string, spec Spec) (Result, error) {
	spec.Argv, spec.Merge, spec.Reap = []string{"sh", "-c", line}, true, true
	return Run(ctx, spec)
}
