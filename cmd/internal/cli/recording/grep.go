package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/cast"
	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator/history"
)

// GrepOptions are grep's arguments.
type GrepOptions struct {
	App     *app.App
	Run     string
	Pattern string
	Agents  []string
	Fold    bool
	JSON    bool
	Context int
	In      string
}

// NewGrep makes `muntin grep`.
func NewGrep(a *app.App) *cobra.Command {
	o := GrepOptions{App: a}
	cmd := &cobra.Command{
		Use:   "grep <pattern>",
		Short: "Search all screens and conversations of a run",
		Long: "Search what the panes printed and what the conversations hold, for a regular expression\n" +
			"(RE2). A program that draws its whole screen again says its lines again: the same line\n" +
			"in the same turn is told once. Exit code 1 says that nothing was found.",
		Example: "  muntin grep 'panic: .*nil'\n  muntin grep -i todo -a ada --in transcript -C 2",
		Args:    app.Args(1, 1, "a pattern"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Pattern = args[0]
			return grep(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.StringSliceVarP(&o.Agents, "agent", "a", nil, "only these agents")
	f.BoolVarP(&o.Fold, "ignore-case", "i", false, "upper and lower case are the same")
	f.IntVarP(&o.Context, "context", "C", 0, "lines before and after")
	f.StringVar(&o.In, "in", "", "only screen, or only transcript")
	f.BoolVar(&o.JSON, "json", false, "print a JSON object a line")
	return cmd
}

// A match is a line that was found.
type match struct {
	Agent  string    `json:"agent"`
	Time   time.Time `json:"time"`
	Turn   int       `json:"turn,omitempty"`
	Source string    `json:"source"` // "screen", "transcript"
	Line   string    `json:"line"`
	Before []string  `json:"before,omitempty"`
	After  []string  `json:"after,omitempty"`
}

func grep(ctx context.Context, o GrepOptions) error {
	if o.In != "" && o.In != "screen" && o.In != "transcript" || o.Context < 0 {
		return app.Usage("want --in screen or --in transcript, and -C 0 or more")
	}
	pattern := o.Pattern
	if o.Fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return app.Usage("reading the pattern: %w", err)
	}
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	if len(o.Agents) == 0 {
		if o.Agents, err = run.AgentNames(); err != nil {
			return err
		}
	}
	events, err := history.Load(ctx, run, nil)
	if err != nil {
		return err
	}
	found := 0
	show := func() error {
		for _, name := range o.Agents {
			dir, err := app.Agent(run, name)
			if err != nil {
				return err
			}
			s := &searcher{ctx: ctx, o: o, re: re, agent: name, starts: turnStarts(events, name), found: &found}
			if err := s.all(dir); err != nil {
				return fmt.Errorf("searching what agent %s did: %w", name, err)
			}
		}
		return nil
	}
	if o.JSON {
		err = show()
	} else {
		err = o.App.Paged(ctx, show)
	}
	if err == nil && found == 0 {
		return app.Exit(app.ExitFailed)
	}
	return err
}

// ahead is how long before its turn's begin is noted a prompt may stand in a
// conversation, whose times are of another process.
const ahead = 50 * time.Millisecond

type turnStart struct {
	at   time.Time
	turn int
}

func turnStarts(events []history.Event, agent string) (list []turnStart) {
	for _, e := range events {
		if e.Agent == agent && e.Kind == history.KindTurn && e.What == "started" {
			list = append(list, turnStart{e.Time, e.Turn})
		}
	}
	return list
}

// A searcher searches what one agent left, line by line.
type searcher struct {
	ctx    context.Context //nolint:containedctx // of one call of all
	o      GrepOptions
	re     *regexp.Regexp
	agent  string
	starts []turnStart
	found  *int

	source string
	slack  time.Duration // see ahead
	turn   int
	told   map[string]bool // lines of this turn
	before []string
	open   []*match // wait for what comes after them
}

func (s *searcher) all(dir state.AgentDir) error {
	if s.o.In != "transcript" {
		if err := s.screen(dir.Screen()); err != nil {
			return err
		}
	}
	if s.o.In == "screen" {
		return nil
	}
	paths := []string{dir.Session()}
	if c, err := pty.ReadConversation(dir); err == nil && c.Transcript != "" {
		paths = append(paths, c.Transcript)
	}
	for _, path := range paths {
		if err := s.transcript(path); err != nil {
			return err
		}
	}
	return nil
}

func (s *searcher) begin(source string) {
	s.source, s.turn, s.told, s.before, s.open = source, -1, map[string]bool{}, nil, nil
}

// end tells of what waits for lines that do not come.
func (s *searcher) end() error {
	for _, m := range s.open {
		if err := s.tell(*m); err != nil {
			return err
		}
	}
	s.open = nil
	return nil
}

func (s *searcher) screen(path string) error {
	s.begin("screen")
	var text cast.Text
	var at time.Time
	line := func(l string) error { return s.line(at, l) }
	err := cast.Read(path, func(e cast.Event) error {
		at = e.Time
		if e.Code != cast.Output {
			return s.ctx.Err()
		}
		return errors.Join(text.Add(e.Data, line), s.ctx.Err())
	})
	return errors.Join(err, text.Flush(line), s.end())
}

// transcript searches all texts in a file of JSON lines: formats of
// conversations are many, and grow.
func (s *searcher) transcript(path string) error {
	s.begin("transcript")
	_, err := durable.Lines(path, 0, func(data []byte, _ int64) error {
		var v map[string]any
		if json.Unmarshal(data, &v) != nil {
			return nil
		}
		at := time.Time{}
		if text, ok := v["timestamp"].(string); ok {
			at, _ = time.Parse(time.RFC3339, text)
		}
		s.slack = ahead
		return errors.Join(eachText(v, func(text string) error {
			for line := range strings.Lines(text) {
				if err := s.line(at, strings.TrimRight(line, "\r\n")); err != nil {
					return err
				}
			}
			return nil
		}), s.ctx.Err())
	})
	return errors.Join(err, s.end())
}

// eachText calls fn for each text that somebody may have written: names, ids
// and coded data are left out.
func eachText(v any, fn func(string) error) error {
	switch v := v.(type) {
	case string:
		return fn(v)
	case []any:
		for _, x := range v {
			if err := eachText(x, fn); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "id", "parentId", "timestamp", "type", "role", "api", "provider", "model", "modelId", "data", "signature", "thinkingSignature",
				"textSignature", "uuid", "parentUuid", "sessionId", "version", "stopReason", "toolCallId", "mimeType":
				continue
			}
			if err := eachText(v[key], fn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *searcher) line(at time.Time, line string) error {
	turn := 0
	for _, t := range s.starts {
		if !t.at.After(at.Add(s.slack)) {
			turn = t.turn
		}
	}
	if turn != s.turn {
		s.turn = turn
		clear(s.told)
	}
	var open []*match
	for _, m := range s.open {
		if m.After = append(m.After, line); len(m.After) < s.o.Context {
			open = append(open, m)
		} else if err := s.tell(*m); err != nil {
			return err
		}
	}
	s.open = open
	if s.re.MatchString(line) && !s.told[line] {
		s.told[line] = true
		*s.found++
		m := &match{Agent: s.agent, Time: at, Turn: turn, Source: s.source, Line: line, Before: slices.Clone(s.before)}
		if s.o.Context > 0 {
			s.open = append(s.open, m)
		} else if err := s.tell(*m); err != nil {
			return err
		}
	}
	if s.o.Context > 0 {
		if s.before = append(s.before, line); len(s.before) > s.o.Context {
			s.before = slices.Delete(s.before, 0, 1)
		}
	}
	return nil
}

func (s *searcher) tell(m match) error {
	out, t := s.o.App.Streams.Out, s.o.App.Theme
	if s.o.JSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(m)
	}
	where := fmt.Sprintf("%s %s turn %d %s", m.Agent, m.Time.Local().Format("15:04:05"), m.Turn, m.Source)
	var b strings.Builder
	for _, l := range m.Before {
		fmt.Fprintf(&b, "%s\n", t.Dim.Render(where+"- "+term.CleanLine(l)))
	}
	fmt.Fprintf(&b, "%s %s\n", t.Command.Render(where+":"), s.highlight(m.Line))
	for _, l := range m.After {
		fmt.Fprintf(&b, "%s\n", t.Dim.Render(where+"- "+term.CleanLine(l)))
	}
	if s.o.Context > 0 {
		b.WriteString("\n")
	}
	_, err := out.Write([]byte(b.String()))
	return err
}

// highlight marks what was found in a line.
func (s *searcher) highlight(line string) string {
	var b strings.Builder
	at := 0
	for _, span := range s.re.FindAllStringIndex(line, -1) {
		b.WriteString(term.CleanLine(line[at:span[0]]))
		b.WriteString(s.o.App.Theme.Bad.Render(term.CleanLine(line[span[0]:span[1]])))
		at = span[1]
	}
	return b.String() + term.CleanLine(line[at:])
}
