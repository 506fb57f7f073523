package know

import (
	"context"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
	"muntin/orchestrator/worktree"
)

// A taskStory is what was done about one task.
type taskStory struct {
	ID          string                 `json:"id"`
	Text        string                 `json:"text"`
	State       orchestrator.TaskState `json:"state"`
	Agents      []string               `json:"agents"` // that had it, in order
	Turns       int                    `json:"turns"`
	Used        history.Usage          `json:"used"`
	Checks      []checkStory           `json:"checks"`
	Commits     []string               `json:"commits"` // merged
	Files       []worktree.FileStat    `json:"files,omitempty"`
	Checkpoints []string               `json:"checkpoints"` // of its turns, "ada #3 1a2b3c4d"
	Prompts     []string               `json:"-"`
	Reason      string                 `json:"reason,omitempty"`
}

// A checkStory is one run of a check.
type checkStory struct {
	Time   time.Time `json:"time"`
	Passed bool      `json:"passed"`
	Check  string    `json:"check"`
	Output string    `json:"output,omitempty"` // its end
	Error  string    `json:"error,omitempty"`
}

// A story is what `report --json` prints: a run as it went.
type story struct {
	Run      string              `json:"run"`
	Recipe   string              `json:"recipe"`
	Repo     string              `json:"repo"`
	Branch   string              `json:"branch"`
	Base     string              `json:"base"`
	From     time.Time           `json:"from"`
	To       time.Time           `json:"to"`
	Phase    orchestrator.Phase  `json:"phase"`
	Tasks    []taskStory         `json:"tasks"`
	Check    *checkStory         `json:"check,omitempty"` // the run's
	Files    []worktree.FileStat `json:"files"`           // that the run changed, merged
	Untold   string              `json:"untold,omitempty"`
	Cost     costs               `json:"cost"`
	People   []history.Event     `json:"people"` // what they did
	Troubles []history.Event     `json:"troubles"`
	timeline history.Timeline
}

// NewReport makes `muntin report`.
func NewReport(a *app.App) *cobra.Command {
	var name string
	var asJSON, asHTML bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "What a run did: tasks, by whom, diffs, checks, cost, time",
		Long: "Write what a run did, as Markdown; with --html as one page with the timeline drawn, which\n" +
			"asks nothing of any other place.",
		Example: "  muntin report > report.md\n  muntin report --html > report.html",
		Args:    app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			run, err := a.Run(name)
			if err != nil {
				return err
			}
			s, err := storyOf(ctx, a, run)
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.PrintJSON(s)
			case asHTML:
				_, err = fmt.Fprint(a.Streams.Out, s.html())
				return err
			}
			return a.Paged(ctx, func() error {
				_, err := fmt.Fprint(a.Streams.Out, s.markdown())
				return err
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&name, "run", "", "the run (default: the living one)")
	f.BoolVar(&asHTML, "html", false, "an HTML page")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("html", "json")
	return cmd
}

func storyOf(ctx context.Context, a *app.App, run orchestrator.Run) (story, error) {
	events, err := history.Load(ctx, run, nil)
	if err != nil {
		return story{}, err
	}
	st, err := orchestrator.Now(run)
	if err != nil {
		return story{}, err
	}
	names, err := run.AgentNames()
	if err != nil {
		return story{}, err
	}
	s := story{Run: run.Name, Recipe: run.From, Repo: run.Repo, Branch: run.Branch, Base: run.Base, Phase: st.Phase, Files: []worktree.FileStat{},
		Tasks: []taskStory{}, People: []history.Event{}, Troubles: []history.Event{}}
	if s.Cost, err = costsOf(run, events); err != nil {
		return s, err
	}
	now := a.Now()
	if n := len(events); n > 0 && !run.Alive() {
		now = events[n-1].Time
	}
	s.timeline = history.TimelineOf(run.Name, names, events, now)
	s.From, s.To = s.timeline.From, s.timeline.To
	for _, t := range st.Tasks {
		if !t.Group {
			s.Tasks = append(s.Tasks, taskStoryOf(t, events))
		}
	}
	for _, e := range events {
		switch {
		case e.Who == history.Person && e.Kind != history.KindRun:
			s.People = append(s.People, e)
		case e.Bad() || e.Kind == history.KindRestart && e.What == "started":
			s.Troubles = append(s.Troubles, e)
		case e.Kind == history.KindCheck && e.Task == "" && e.Result != nil:
			c := checkOf(e)
			s.Check = &c
		}
	}
	s.addDiffs(ctx, a, run)
	return s, nil
}

// addDiffs adds the sizes of changes, or why they cannot be told: the
// repository may have moved on.
func (s *story) addDiffs(ctx context.Context, a *app.App, run orchestrator.Run) {
	git, err := openGit(ctx, a, run)
	if err == nil {
		var files []worktree.FileStat
		if files, err = git.DiffStat(ctx, run.Base, run.Branch); err == nil {
			s.Files = append(s.Files, files...)
		}
	}
	for i, t := range s.Tasks {
		for _, commit := range t.Commits {
			if err != nil {
				break
			}
			var files []worktree.FileStat
			if files, err = git.DiffStat(ctx, commit+"^1", commit); err == nil {
				s.Tasks[i].Files = append(s.Tasks[i].Files, files...)
			}
		}
	}
	if err != nil {
		s.Untold = err.Error()
	}
}

func taskStoryOf(t orchestrator.Task, events []history.Event) taskStory {
	s := taskStory{ID: t.ID, Text: t.Text, State: t.State, Reason: t.Reason, Agents: []string{}, Checks: []checkStory{}, Commits: []string{}, Checkpoints: []string{}}
	s.Used = history.UsageBy(events, func(e history.Event) string {
		if e.Task == t.ID {
			return "x"
		}
		return ""
	})["x"]
	for _, e := range events {
		if e.Task != t.ID {
			continue
		}
		if e.Agent != "" && e.Kind == history.KindTurn && !slices.Contains(s.Agents, e.Agent) {
			s.Agents = append(s.Agents, e.Agent)
		}
		switch {
		case e.Log != nil && e.Log.TurnEnd != nil:
			s.Turns++
			if c := e.Log.TurnEnd.Checkpoint; c != nil {
				s.Checkpoints = append(s.Checkpoints, fmt.Sprintf("%s #%d %.8s", e.Agent, c.ID, c.Commit))
			}
		case e.Kind == history.KindPrompt:
			s.Prompts = append(s.Prompts, e.Text)
		case e.Kind == history.KindCheck && e.Result != nil:
			s.Checks = append(s.Checks, checkOf(e))
		case e.Kind == history.KindMerge && e.Result != nil && e.Result.Commit != "":
			s.Commits = append(s.Commits, e.Result.Commit)
		}
	}
	return s
}

func checkOf(e history.Event) checkStory {
	c := checkStory{Time: e.Time, Passed: e.What == "passed", Output: lastOf(e.Result.Output, 20), Error: e.Result.Error}
	if e.Effect != nil {
		c.Check = e.Effect.Text
	}
	return c
}

func (s story) done() (done, all int) {
	for _, t := range s.Tasks {
		if t.State == orchestrator.TaskDone {
			done++
		}
	}
	return done, len(s.Tasks)
}

func sum(files []worktree.FileStat) (added, deleted int) {
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	return added, deleted
}

func (s story) summary() string {
	done, all := s.done()
	text := fmt.Sprintf("%d of %s done in %s.", done, count(all, "task"), s.To.Sub(s.From).Round(time.Second))
	if n := len(s.Files); n > 0 {
		added, deleted := sum(s.Files)
		text += fmt.Sprintf(" %s changed, +%d -%d, merged to %s.", count(n, "file"), added, deleted, s.Branch)
	}
	if s.Check != nil {
		text += " The run's check " + passed(*s.Check) + "."
	}
	return text
}

func passed(c checkStory) string {
	if c.Passed {
		return "passed"
	}
	return "failed"
}

func costText(u history.Usage) string { return money(term.Theme{}, u) }

// taskRows are the report's table, the same in Markdown and HTML.
func (s story) taskRows() (head []string, rows [][]string) {
	head = []string{"task", "state", "by", "turns", "checks", "files", "lines", "tokens", "cost"}
	for _, t := range s.Tasks {
		failed := 0
		for _, c := range t.Checks {
			if !c.Passed {
				failed++
			}
		}
		checks := fmt.Sprint(len(t.Checks))
		if failed > 0 {
			checks += fmt.Sprintf(" (%d failed)", failed)
		}
		added, deleted := sum(t.Files)
		rows = append(rows, []string{
			"^" + t.ID + " " + t.Text, string(t.State), strings.Join(t.Agents, ", "), fmt.Sprint(t.Turns), checks, fmt.Sprint(len(t.Files)),
			fmt.Sprintf("+%d -%d", added, deleted), fmt.Sprint(t.Used.Tokens()), costText(t.Used),
		})
	}
	return head, rows
}

func (s story) agentRows() (head []string, rows [][]string) {
	head = []string{"agent", "turns", "time", "tokens", "cost"}
	for _, r := range append(slices.Clone(s.Cost.Agents), costRow{"all", s.Cost.Total}) {
		rows = append(rows, []string{r.Name, fmt.Sprint(r.Turns), r.Time.Round(100 * time.Millisecond).String(), fmt.Sprint(r.Tokens()), costText(r.Usage)})
	}
	return head, rows
}

func (s story) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Run %s\n\n%s\n\nRecipe %s, from %.8s, %s to %s.\n", md(s.Run), s.summary(), md(s.Recipe), s.Base,
		s.From.UTC().Format("2006-01-02 15:04:05"), s.To.UTC().Format("2006-01-02 15:04:05 MST"))
	mdTable(&b, "Tasks", s.taskRows)
	mdTable(&b, "Agents", s.agentRows)
	if len(s.Files) > 0 {
		b.WriteString("\n## Files\n\n")
		for _, f := range s.Files {
			fmt.Fprintf(&b, "- %s\n", md(statLine(f)))
		}
	}
	if s.Untold != "" {
		fmt.Fprintf(&b, "\nThe changes cannot be told: %s\n", md(s.Untold))
	}
	mdEvents(&b, "What people did", s.People)
	mdEvents(&b, "Troubles", s.Troubles)
	c := chart{width: 100, glyphs: glyphsFor(true)}
	fmt.Fprintf(&b, "\n## Timeline\n\n```\n%s```\n", term.Clean(c.draw(s.timeline)))
	return b.String()
}

func mdTable(b *strings.Builder, title string, make func() ([]string, [][]string)) {
	head, rows := make()
	fmt.Fprintf(b, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		for i := range r {
			r[i] = md(r[i])
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(r, " | "))
	}
}

func mdEvents(b *strings.Builder, title string, events []history.Event) {
	if len(events) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, e := range events {
		fmt.Fprintf(b, "- %s %s %s\n", e.Time.UTC().Format("15:04:05"), md(e.Agent), md(strings.TrimSpace(eventText(e))))
	}
}

func eventText(e history.Event) string {
	text := string(e.Kind) + " " + e.What
	if e.Task != "" {
		text += " ^" + e.Task
	}
	return text + " " + firstLine(e.Text)
}

// md is foreign text within a line of Markdown: what has a meaning there is
// escaped.
func md(text string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "#", "\\#").Replace(cell(text))
}

func (s story) html() string {
	var b strings.Builder
	title := "Run " + s.Run
	b.WriteString(history.PageTop + safe(title) + history.PageTitled)
	fmt.Fprintf(&b, "<h1>%s</h1>\n<p>%s</p>\n<p class=\"dim\">recipe %s, from %.8s, %s to %s</p>\n<h2>Timeline</h2>\n%s", safe(title), safe(s.summary()), safe(s.Recipe), s.Base,
		s.From.UTC().Format("2006-01-02 15:04:05"), s.To.UTC().Format("2006-01-02 15:04:05 MST"), s.timeline.SVG())
	htmlTable(&b, "Tasks", s.taskRows)
	htmlTable(&b, "Agents", s.agentRows)
	if len(s.Files) > 0 {
		b.WriteString("<h2>Files</h2>\n<ul>\n")
		for _, f := range s.Files {
			fmt.Fprintf(&b, "<li>%s</li>\n", safe(statLine(f)))
		}
		b.WriteString("</ul>\n")
	}
	if s.Untold != "" {
		fmt.Fprintf(&b, "<p class=\"bad\">The changes cannot be told: %s</p>\n", safe(s.Untold))
	}
	for _, t := range s.Tasks {
		htmlTask(&b, t)
	}
	for _, part := range []struct {
		title  string
		events []history.Event
	}{{"What people did", s.People}, {"Troubles", s.Troubles}} {
		if len(part.events) == 0 {
			continue
		}
		fmt.Fprintf(&b, "<h2>%s</h2>\n<ul>\n", part.title)
		for _, e := range part.events {
			fmt.Fprintf(&b, "<li><span class=\"dim\">%s</span> %s %s</li>\n", e.Time.UTC().Format("15:04:05"), safe(e.Agent), safe(eventText(e)))
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString(history.PageEnd)
	return b.String()
}

func htmlTask(b *strings.Builder, t taskStory) {
	fmt.Fprintf(b, "<details><summary>^%s %s</summary>\n", safe(t.ID), safe(t.Text))
	for _, c := range t.Checks {
		class := "good"
		if !c.Passed {
			class = "bad"
		}
		fmt.Fprintf(b, "<p><span class=\"%s\">%s</span> %s</p><pre>%s</pre>\n", class, passed(c), safe(c.Check), html.EscapeString(term.Clean(c.Output+"\n"+c.Error)))
	}
	for _, f := range t.Files {
		fmt.Fprintf(b, "<p>%s</p>\n", safe(statLine(f)))
	}
	b.WriteString("</details>\n")
}

func htmlTable(b *strings.Builder, title string, make func() ([]string, [][]string)) {
	head, rows := make()
	fmt.Fprintf(b, "<h2>%s</h2>\n<table>\n<tr>", title)
	for _, h := range head {
		fmt.Fprintf(b, "<th>%s</th>", safe(h))
	}
	b.WriteString("</tr>\n")
	for _, r := range rows {
		b.WriteString("<tr>")
		for _, c := range r {
			fmt.Fprintf(b, "<td>%s</td>", safe(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
}

func safe(text string) string { return html.EscapeString(cell(text)) }
