package know

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// NewTimeline makes `muntin timeline`.
func NewTimeline(a *app.App) *cobra.Command {
	var name, since string
	var asJSON, ascii bool
	var wide int
	cmd := &cobra.Command{
		Use:   "timeline",
		Short: "A run on one axis: turns, checkpoints, checks, merges, board edits, people",
		Long: "Draw a run on one axis of time, as wide as the terminal: a lane of each agent with its\n" +
			"turns, and below each what happened; then the board, the run and what people did.",
		Example: "  muntin timeline\n  muntin timeline --since 30m --width 200\n  muntin timeline --json",
		Args:    app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			run, err := a.Run(name)
			if err != nil {
				return err
			}
			tl, err := loadTimeline(ctx, a, run)
			if err != nil {
				return err
			}
			if since != "" {
				if tl.From, err = ParseTime(since, a.Now()); err != nil {
					return err
				}
			}
			if asJSON {
				return a.PrintJSON(tl)
			}
			if wide <= 0 {
				wide, _ = a.Streams.Size()
			}
			c := chart{theme: a.Theme, width: wide, glyphs: glyphsFor(!ascii && utf8Locale(a))}
			return a.Paged(ctx, func() error {
				_, err := fmt.Fprint(a.Streams.Out, c.draw(tl))
				return err
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&name, "run", "", "the run (default: the living one)")
	f.StringVar(&since, "since", "", "begin at this time: 10m (ago), 14:02, 2026-01-31T14:02:00Z")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&ascii, "ascii", false, "plain ASCII (the default where the locale is not UTF-8)")
	f.IntVar(&wide, "width", 0, "in cells (default: the terminal's)")
	return cmd
}

func loadTimeline(ctx context.Context, a *app.App, run orchestrator.Run) (history.Timeline, error) {
	names, err := run.AgentNames()
	if err != nil {
		return history.Timeline{}, err
	}
	events, err := history.Load(ctx, run, nil)
	if err != nil {
		return history.Timeline{}, err
	}
	now := a.Now()
	if n := len(events); n > 0 && !run.Alive() {
		now = events[n-1].Time
	}
	return history.TimelineOf(run.Name, names, events, now), nil
}

// utf8Locale tells whether the locale's characters are Unicode.
func utf8Locale(a *app.App) bool {
	for _, key := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(a.Getenv(key)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// glyphs are what a chart is drawn with.
type glyphs struct {
	alive, turn, waiting, tick, rule             rune
	prompt, saved, passed, failed, merged, dot   rune
	person, restart, rollback, ended, limit, end rune
}

func glyphsFor(unicode bool) glyphs {
	if unicode {
		return glyphs{
			alive: '─', turn: '━', waiting: '░', tick: '┬', rule: '─', prompt: '▾', saved: '◆', passed: '✓', failed: '✗', merged: '▲', dot: '•',
			person: '☻', restart: '↻', rollback: '↶', ended: '■', limit: '‖', end: '…',
		}
	}
	return glyphs{
		alive: '-', turn: '=', waiting: '?', tick: '+', rule: '-', prompt: 'v', saved: '*', passed: 'o', failed: 'x', merged: 'M', dot: '.',
		person: 'P', restart: 'R', rollback: '<', ended: '#', limit: '|', end: '~',
	}
}

// A chart draws a timeline as text.
type chart struct {
	theme  term.Theme
	width  int
	glyphs glyphs
}

// of is a mark's glyph, its weight where two fall on one cell, and its style.
func (c chart) of(m history.Mark) (r rune, weight int, style string) {
	g := c.glyphs
	switch m.Kind {
	case history.KindCheck:
		if m.What == "passed" {
			return g.passed, 5, "good"
		}
		return g.failed, 9, "bad"
	case history.KindMerge:
		if m.Bad {
			return g.failed, 9, "bad"
		}
		return g.merged, 6, "good"
	case history.KindCheckpoint:
		if m.Bad {
			return g.failed, 9, "bad"
		}
		return g.saved, 2, "dim"
	case history.KindPrompt:
		return g.prompt, 3, "command"
	case history.KindRollback:
		return g.rollback, 8, "accent"
	case history.KindRestart:
		return g.restart, 7, "warn"
	case history.KindLimit:
		return g.limit, 7, "warn"
	case history.KindAgent:
		return g.ended, 4, "dim"
	}
	if m.Who == history.Person {
		return g.person, 4, "accent"
	}
	if m.Bad {
		return g.failed, 9, "bad"
	}
	return g.dot, 1, "dim"
}

func (c chart) style(name string, s string) string {
	t := c.theme
	switch name {
	case "good":
		return t.Good.Render(s)
	case "bad":
		return t.Bad.Render(s)
	case "warn":
		return t.Warn.Render(s)
	case "busy":
		return t.Busy.Render(s)
	case "accent":
		return t.Accent.Render(s)
	case "command":
		return t.Command.Render(s)
	case "dim":
		return t.Dim.Render(s)
	}
	return s
}

// A row is one line of cells with their styles.
type row struct {
	cells  []rune
	styles []string
	weight []int
}

func newRow(n int) *row {
	r := &row{cells: make([]rune, n), styles: make([]string, n), weight: make([]int, n)}
	for i := range r.cells {
		r.cells[i] = ' '
	}
	return r
}

func (r *row) text(c chart) string {
	var b strings.Builder
	for i := 0; i < len(r.cells); {
		j := i
		for j < len(r.cells) && r.styles[j] == r.styles[i] {
			j++
		}
		b.WriteString(c.style(r.styles[i], string(r.cells[i:j])))
		i = j
	}
	return strings.TrimRight(b.String(), " ")
}

const minChart = 20

func (c chart) draw(t history.Timeline) string {
	left := 0
	for _, l := range t.Lanes {
		left = max(left, term.Width(l.Name))
	}
	left = min(left, 20) + 1
	n := max(c.width-left-1, minChart)
	at := func(when time.Time) int {
		total := t.To.Sub(t.From)
		if total <= 0 {
			return 0
		}
		return min(max(int(float64(when.Sub(t.From))/float64(total)*float64(n-1)), 0), n-1)
	}
	var b strings.Builder
	pad := func(name string) string { return fmt.Sprintf("%-*s", left, term.Truncate(name, left-1)) }
	labels, ticks := c.axis(t, n)
	fmt.Fprintf(&b, "%s%s\n%s%s\n", pad(""), c.style("dim", labels), pad(""), c.style("dim", ticks))
	for _, l := range t.Lanes {
		spans, marks := newRow(n), newRow(n)
		for _, s := range l.Spans {
			c.span(spans, s, at)
		}
		for _, m := range l.Marks {
			if m.Time.Before(t.From) {
				continue
			}
			x := at(m.Time)
			if r, w, style := c.of(m); w >= marks.weight[x] {
				marks.cells[x], marks.styles[x], marks.weight[x] = r, style, w
			}
		}
		if strings.HasPrefix(l.Name, "(") {
			fmt.Fprintf(&b, "%s%s\n", c.style("dim", pad(strings.Trim(l.Name, "()"))), marks.text(c))
			continue
		}
		fmt.Fprintf(&b, "%s%s\n%s%s\n", c.theme.Strong.Render(pad(l.Name)), spans.text(c), pad(""), marks.text(c))
	}
	fmt.Fprintf(&b, "\n%s\n", c.style("dim", c.legend()))
	return b.String()
}

// legend says what the glyphs are, in lines that fit.
func (c chart) legend() string {
	g := c.glyphs
	var b strings.Builder
	x := 0
	for _, item := range []struct {
		glyph rune
		what  string
	}{
		{g.turn, "turn"}, {g.waiting, "waits"}, {g.prompt, "prompt"}, {g.saved, "checkpoint"}, {g.passed, "passed"}, {g.failed, "failed"}, {g.merged, "merged"},
		{g.restart, "restart"}, {g.rollback, "rollback"}, {g.ended, "ended"}, {g.limit, "limit"}, {g.person, "person"}, {g.dot, "edit"},
	} {
		text := string(item.glyph) + " " + item.what
		switch n := term.Width(text); {
		case x == 0:
			x = n
		case x+2+n > c.width:
			b.WriteByte('\n')
			x = n
		default:
			b.WriteString("  ")
			x += 2 + n
		}
		b.WriteString(text)
	}
	return b.String()
}

// span draws a span, with its name in it where that fits.
func (c chart) span(r *row, s history.Span, at func(time.Time) int) {
	from, to := at(s.From), at(s.To)
	glyph, style := c.glyphs.alive, "dim"
	switch s.Kind {
	case history.SpanTurn:
		glyph, style = c.glyphs.turn, "busy"
		if s.What != "done" && s.What != "" {
			style = "bad"
		}
	case history.SpanWaiting:
		glyph, style = c.glyphs.waiting, "warn"
	case history.SpanAlive:
	}
	for x := from; x <= to; x++ {
		r.cells[x], r.styles[x] = glyph, style
	}
	if s.Open && s.Kind == history.SpanTurn {
		r.cells[to] = c.glyphs.end
	}
	if s.Kind != history.SpanTurn {
		return
	}
	label := []rune(term.CleanLine(s.Label()))
	if !slices.ContainsFunc(label, func(x rune) bool { return x > 0x7e }) && len(label)+2 <= to-from+1 {
		copy(r.cells[from+1:], label)
	}
}

// axis is the line of times and the line with its ticks.
func (c chart) axis(t history.Timeline, n int) (labels, ticks string) {
	total := t.To.Sub(t.From)
	layout := "15:04:05"
	switch {
	case total < 10*time.Second:
		layout = "15:04:05.0"
	case total > 48*time.Hour:
		layout = "Jan 02 15:04"
	case total > 2*time.Hour:
		layout = "15:04"
	}
	step := len(layout) + 6
	text, rule := newRow(n), newRow(n)
	for x := range rule.cells {
		rule.cells[x] = c.glyphs.rule
	}
	for x := 0; x+len(layout) <= n; x += step {
		when := t.From.Add(time.Duration(float64(total) * float64(x) / float64(max(n-1, 1))))
		copy(text.cells[x:], []rune(when.Local().Format(layout)))
		rule.cells[x] = c.glyphs.tick
	}
	return strings.TrimRight(string(text.cells), " "), string(rule.cells)
}
