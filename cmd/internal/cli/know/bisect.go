package know

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/proc"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
	"muntin/orchestrator/worktree"
)

// BisectOptions are bisect's arguments.
type BisectOptions struct {
	App     *app.App
	Run     string
	Agent   string
	Check   string
	Timeout time.Duration
	JSON    bool
	Stat    bool
}

// A culprit is what bisect found on one agent's chain of checkpoints.
type culprit struct {
	Agent   string                 `json:"agent"`
	Verdict string                 `json:"verdict"`         // "turned", "always", "never", "empty"
	First   *checkpoint.Checkpoint `json:"first,omitempty"` // the first at which the check fails
	Good    *checkpoint.Checkpoint `json:"good,omitempty"`  // the last before it at which it passes
	Task    string                 `json:"task,omitempty"`
	Prompt  string                 `json:"prompt,omitempty"` // of the turn
	Output  string                 `json:"output,omitempty"` // of the check that failed
	Files   []worktree.FileStat    `json:"files,omitempty"`
	Runs    int                    `json:"runs"` // of the check
	patch   string
}

// NewBisect makes `muntin bisect`.
func NewBisect(a *app.App) *cobra.Command {
	o := BisectOptions{App: a}
	cmd := &cobra.Command{
		Use:   "bisect <check>",
		Short: "The first checkpoint of all agents at which a check fails",
		Long: "Find the turn that broke something: a check is run on checkpoints of each agent, in a\n" +
			"fresh copy that is removed again, never in your folder or an agent's. On each chain it\n" +
			"is a binary search between the first checkpoint, where the check must pass, and the\n" +
			"last; so it finds one place where it turns, and with several the answer is one of them.\n\n" +
			"The check is a shell line; or ^task for the task's own check, or run for the run's. It\n" +
			"is run with the environment of the run, MUNTIN_RUN and MUNTIN_AGENT. Exit code 0 says\n" +
			"that something was found, 1 that nothing was.",
		Example: "  muntin bisect 'go test ./...'\n  muntin bisect ^sum --agent linus\n  muntin bisect run --json",
		Args:    app.Args(1, 1, "a check, as one argument"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Check = args[0]
			return bisect(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.StringVarP(&o.Agent, "agent", "a", "", "only this agent's checkpoints")
	f.DurationVar(&o.Timeout, "timeout", 0, "of one check (default: the run's)")
	f.BoolVar(&o.Stat, "stat", false, "only the files and how much they changed")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func bisect(ctx context.Context, o BisectOptions) error {
	b, names, err := newBisector(ctx, o)
	if err != nil {
		return err
	}
	found := []culprit{}
	for _, name := range names {
		c, err := b.chain(ctx, name)
		if err != nil {
			b.bar.Done()
			return fmt.Errorf("bisecting the checkpoints of agent %s: %w", name, err)
		}
		found = append(found, c)
	}
	b.bar.Done()
	slices.SortStableFunc(found, func(x, y culprit) int {
		if (x.Verdict == "turned") != (y.Verdict == "turned") {
			if x.Verdict == "turned" {
				return -1
			}
			return 1
		}
		if x.Verdict == "turned" {
			return x.First.Time.Compare(y.First.Time)
		}
		return 0
	})
	turned := len(found) > 0 && found[0].Verdict == "turned"
	if o.JSON {
		err = o.App.PrintJSON(found)
	} else {
		err = b.print(ctx, found)
	}
	if err == nil && !turned {
		return app.Exit(app.ExitFailed)
	}
	return err
}

// A bisector runs a check on checkpoints.
type bisector struct {
	o       BisectOptions
	run     orchestrator.Run
	git     *worktree.Manager
	env     []string
	timeout time.Duration
	check   string
	place   string // a folder of the repository
	events  []history.Event
	bar     *term.Progress
	known   map[string]outcome // by the tree: the same files are checked once
	agent   string
	total   int
	runs    int
}

type outcome struct {
	passed bool
	output string
}

func newBisector(ctx context.Context, o BisectOptions) (*bisector, []string, error) {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return nil, nil, err
	}
	names, err := run.AgentNames()
	if err != nil {
		return nil, nil, err
	}
	if o.Agent != "" {
		if _, err := app.Agent(run, o.Agent); err != nil {
			return nil, nil, err
		}
		names = []string{o.Agent}
	}
	recipe, err := run.Recipe()
	if err != nil {
		return nil, nil, err
	}
	b := &bisector{o: o, run: run, timeout: o.Timeout, known: map[string]outcome{}, place: run.Root}
	if b.timeout == 0 {
		b.timeout = recipe.CheckTimeout
	}
	if b.check, err = checkText(run, o.Check); err != nil {
		return nil, nil, err
	}
	if b.env, err = orchestrator.ReadEnv(run.Dir, o.App.Environ); err != nil {
		return nil, nil, err
	}
	if b.git, err = openGit(ctx, o.App, run); err != nil {
		return nil, nil, err
	}
	if b.events, err = history.Load(ctx, run, nil); err != nil {
		return nil, nil, err
	}
	b.bar = term.NewProgress(o.App.Streams, o.App.Theme, o.App.Now)
	return b, names, nil
}

// checkText is the shell line that is meant.
func checkText(run orchestrator.Run, check string) (string, error) {
	if check != "run" && !strings.HasPrefix(check, "^") {
		if strings.TrimSpace(check) == "" {
			return "", app.Usage("the check is empty")
		}
		return check, nil
	}
	st, err := orchestrator.Now(run)
	if err != nil {
		return "", err
	}
	text := st.Settings.RunCheck
	if id, ok := strings.CutPrefix(check, "^"); ok {
		task, known := st.Task(id)
		if !known {
			return "", app.Usage("the board has no task %s", check)
		}
		if text = task.Check; text == "" {
			text = st.Settings.Check
		}
	}
	if text == "" {
		return "", app.Usage("%s has no check", check)
	}
	return text, nil
}

// chain searches one agent's checkpoints.
func (b *bisector) chain(ctx context.Context, agent string) (culprit, error) {
	list, err := checkpoint.ReadChain(ctx, b.place, orchestrator.CheckpointRef(b.run.Name, agent))
	if err != nil {
		return culprit{}, err
	}
	slices.Reverse(list)
	c := culprit{Agent: agent, Verdict: "empty"}
	if len(list) == 0 {
		return c, nil
	}
	b.agent, b.runs, b.total = agent, 0, 2
	for n := len(list); n > 2; n = (n + 1) / 2 {
		b.total++
	}
	last := len(list) - 1
	if out, err := b.passes(ctx, list[last]); err != nil || out.passed {
		c.Verdict, c.Runs = "never", b.runs
		return c, err
	}
	if out, err := b.passes(ctx, list[0]); err != nil || !out.passed {
		c.Verdict, c.Runs, c.First, c.Output = "always", b.runs, &list[0], out.output
		return c, err
	}
	good, bad := 0, last
	for bad-good > 1 {
		mid := (good + bad) / 2
		out, err := b.passes(ctx, list[mid])
		if err != nil {
			return c, err
		}
		if out.passed {
			good = mid
		} else {
			bad = mid
		}
	}
	c.Verdict, c.First, c.Good, c.Runs, c.Output = "turned", &list[bad], &list[good], b.runs, b.known[list[bad].Tree].output
	b.explain(&c)
	if c.Files, err = b.git.DiffStat(ctx, c.Good.Commit, c.First.Commit); err != nil {
		return c, err
	}
	if !b.o.JSON && !b.o.Stat {
		c.patch, err = b.git.Patch(ctx, c.Good.Commit, c.First.Commit)
	}
	return c, err
}

// explain finds the prompt of the turn.
func (b *bisector) explain(c *culprit) {
	prompts := map[string]history.Event{}
	for _, e := range b.events {
		if e.Agent != c.Agent || e.Log == nil {
			continue
		}
		if e.Kind == history.KindPrompt {
			prompts[e.ID] = e
		}
		if e.Log.TurnStart != nil && e.Turn == c.First.Turn && c.First.Turn > 0 {
			c.Task, c.Prompt = e.Task, prompts[e.ID].Text
		}
	}
}

// passes runs the check on a fresh copy of a checkpoint.
func (b *bisector) passes(ctx context.Context, c checkpoint.Checkpoint) (out outcome, err error) {
	if out, ok := b.known[c.Tree]; ok {
		return out, nil
	}
	b.runs++
	b.bar.Show("checking "+b.agent, b.runs-1, max(b.total, b.runs))
	wt, err := b.git.Checkout(ctx, c.Commit)
	if err != nil {
		return out, err
	}
	defer func() {
		_, removeErr := b.git.Remove(context.WithoutCancel(ctx), worktree.RemoveRequest{Path: wt.Path})
		err = errors.Join(err, removeErr)
	}()
	ports, err := orchestrator.PortsEnv(b.run.Dir, b.agent)
	if err != nil {
		return out, err
	}
	env := append(append(append([]string{}, b.env...), ports...), "MUNTIN_RUN="+b.run.Name, "MUNTIN_AGENT="+b.agent)
	res, err := proc.Shell(ctx, b.check, proc.Spec{Dir: wt.Path, Env: env, Keep: 4 << 10, Timeout: b.timeout})
	var exit *proc.ExitError
	if err != nil && !errors.As(err, &exit) {
		return out, fmt.Errorf("running the check on checkpoint #%d: %w", c.ID, err)
	}
	out = outcome{passed: err == nil, output: string(res.Stdout)}
	if err != nil {
		out.output = strings.TrimRight(out.output, "\n") + "\n(" + res.Ending() + ")"
	}
	b.known[c.Tree] = out
	return out, nil
}

func (b *bisector) print(ctx context.Context, found []culprit) error {
	return b.o.App.Paged(ctx, func() error {
		for i, c := range found {
			b.culprit(c, i == 0)
		}
		return nil
	})
}

// culprit prints what was found on a chain; the first one that turned in full.
func (b *bisector) culprit(c culprit, whole bool) {
	t, out := b.o.App.Theme, b.o.App.Streams.Out
	runs := t.Dim.Render(fmt.Sprintf("  (%s)", count(c.Runs, "check")))
	switch c.Verdict {
	case "empty":
		fmt.Fprintf(out, "%s has no checkpoints\n", t.Strong.Render(c.Agent))
	case "never":
		fmt.Fprintf(out, "%s %s at its latest checkpoint%s\n", t.Strong.Render(c.Agent), t.Good.Render("passes"), runs)
	case "always":
		fmt.Fprintf(out, "%s %s from its first checkpoint on%s\n", t.Strong.Render(c.Agent), t.Bad.Render("fails"), runs)
	case "turned":
		fmt.Fprintf(out, "%s %s first at checkpoint #%d %.8s, %s%s\n", t.Strong.Render(c.Agent), t.Bad.Render("fails"), c.First.ID, c.First.Commit,
			causeText(*c.First), runs)
	}
	if c.Verdict != "turned" || !whole {
		return
	}
	if c.Task != "" {
		fmt.Fprintf(out, "\n%s %s\n", t.Dim.Render("task"), t.Accent.Render("^"+cell(c.Task)))
	}
	if c.Prompt != "" {
		fmt.Fprintf(out, "\n%s\n%s\n", t.Dim.Render("its prompt"), indent(c.Prompt))
	}
	fmt.Fprintf(out, "\n%s\n%s\n", t.Dim.Render("the check: "+cell(b.check)), indent(lastOf(c.Output, 20)))
	fmt.Fprintf(out, "\n%s\n", t.Dim.Render(fmt.Sprintf("what changed since #%d", c.Good.ID)))
	for _, f := range c.Files {
		fmt.Fprintf(out, "  %s\n", statLine(f))
	}
	if c.patch != "" {
		fmt.Fprintf(out, "\n%s", term.Clean(c.patch))
	}
}

func causeText(c checkpoint.Checkpoint) string {
	when := c.Time.Local().Format("15:04:05")
	switch c.Cause {
	case checkpoint.CauseTurn:
		return fmt.Sprintf("the end of turn %d at %s", c.Turn, when)
	case checkpoint.CauseBetween:
		return "what changed between turns, by a merge or a person, at " + when
	case checkpoint.CauseStart, checkpoint.CauseManual, checkpoint.CauseUndo, checkpoint.CauseRestored:
	}
	return string(c.Cause) + " at " + when
}

func statLine(f worktree.FileStat) string {
	if f.Binary {
		return cell(f.Path) + "  binary"
	}
	return fmt.Sprintf("%s  +%d -%d", cell(f.Path), f.Added, f.Deleted)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(term.Clean(text), "\n"), "\n", "\n  ")
}

// lastOf is the last n lines of a text.
func lastOf(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
