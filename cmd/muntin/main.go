// Command muntin runs coding agents in tmux panes, coordinates them through
// PLAN.md and TODO.md, and takes a git checkpoint after every turn.
package main

import (
	"os"

	"muntin/cmd/internal/cli"
)

func main() { os.Exit(cli.Main()) }
