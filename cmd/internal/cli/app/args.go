package app

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

// Args makes sure that there are low to high arguments; what names them in the
// error.
func Args(low, high int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) >= low && len(args) <= high:
			return nil
		case high == 0:
			return Usage("want no arguments, got %d", len(args))
		}
		return Usage("want %s, got %d arguments", what, len(args))
	}
}

// PrintJSON prints a value for programs to read.
func (a *App) PrintJSON(v any) error {
	enc := json.NewEncoder(a.Streams.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Subcommand is the RunE of a command that only holds others: its help, or an
// error for one that it does not have.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return cmd.Help()
}
