package checkpoint

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
)

// completeIDs completes checkpoints for the first n arguments, and files after them.
func (s *scope) completeIDs(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return s.ids(cmd.Context()), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// ids are the names of the checkpoints with what they are; none where they cannot be read.
func (s *scope) ids(ctx context.Context) []cobra.Completion {
	c, done, err := s.open(ctx)
	if err != nil {
		return nil
	}
	defer done()
	var all []cobra.Completion
	labels, _ := c.Labels(ctx)
	for _, l := range labels {
		all = append(all, cobra.CompletionWithDesc(l.Name, fmt.Sprintf("#%d %s", l.Checkpoint.ID, whyOf(s.app, l.Checkpoint))))
	}
	list, _ := c.List(ctx)
	for _, p := range list {
		all = append(all, cobra.CompletionWithDesc(fmt.Sprint(p.ID), when(s.app.Now(), p.Time)+" "+whyOf(s.app, p)))
	}
	return all
}

func (s *scope) completeAgent(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return agentNames(s.app, s.run), cobra.ShellCompDirectiveNoFileComp
}

func agentNames(a *app.App, run string) []cobra.Completion {
	r, err := a.Run(run)
	if err != nil {
		return nil
	}
	names, err := r.AgentNames()
	if err != nil {
		return nil
	}
	return names
}
