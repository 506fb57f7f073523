package recording

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/cast"
	"muntin/internal/durable"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// ExportOptions are export's arguments.
type ExportOptions struct {
	App    *app.App
	Run    string
	Format string
	Agent  string
	Output string
	V2     bool
}

// NewExport makes `muntin export`.
func NewExport(a *app.App) *cobra.Command {
	o := ExportOptions{App: a}
	cmd := &cobra.Command{
		Use:   "export cast|html|jsonl [agent]",
		Short: "Take a run, or a pane's recording, out to a file",
		Long: "cast   the recording of an agent's pane as an asciicast, for asciinema and its like\n" +
			"html   one page with the timeline, and the screens at the end of every turn; it asks\n" +
			"       nothing of any other place\n" +
			"jsonl  the events of the run, one object a line, as muntin events has them\n\n" +
			"Without an agent html and jsonl are about the whole run.",
		Example: "  muntin export cast ada -o ada.cast\n  muntin export html -o run.html",
		Args:    app.Args(1, 2, "cast, html or jsonl, and maybe an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Format = args[0]
			if len(args) > 1 {
				o.Agent = args[1]
			}
			return export(ctx, o)
		}),
		ValidArgs: []string{"cast", "html", "jsonl"},
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.StringVarP(&o.Output, "output", "o", "", "write to this file (default: standard output)")
	f.BoolVar(&o.V2, "v2", false, "cast: version 2 of the format, for older players")
	return cmd
}

func export(ctx context.Context, o ExportOptions) error {
	switch o.Format {
	case "cast", "html", "jsonl":
	default:
		return app.Usage("there is no format %q: there are cast, html and jsonl", o.Format)
	}
	if o.V2 && o.Format != "cast" {
		return app.Usage("--v2 is about cast")
	}
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	if o.Agent == "" && o.Format == "cast" {
		return app.Hint(app.Usage("name the agent whose pane it is"), "muntin ls lists them")
	}
	names, err := agentsOf(run, o.Agent)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error {
		switch o.Format {
		case "cast":
			version := 3
			if o.V2 {
				version = 2
			}
			return cast.Copy(w, run.Dir.Agent(o.Agent).Screen(), version, o.Agent+" of run "+run.Name)
		case "html":
			return exportHTML(ctx, w, run, names)
		}
		return exportJSONL(ctx, w, run, o.Agent)
	}
	if o.Output == "" {
		out := bufio.NewWriter(o.App.Streams.Raw())
		return errors.Join(write(out), out.Flush())
	}
	return toFile(o.Output, write)
}

// toFile writes a file that is there whole or not at all.
func toFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".export-*")
	if err != nil {
		return fmt.Errorf("exporting to %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // it is of no use; the error says why
		}
	}()
	out := bufio.NewWriter(f)
	if err := errors.Join(write(out), out.Flush(), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("exporting to %s: %w", path, err)
	}
	return durable.Rename(f.Name(), path)
}

func exportJSONL(ctx context.Context, w io.Writer, run orchestrator.Run, agent string) error {
	events, err := history.Load(ctx, run, nil)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range events {
		if agent != "" && e.Agent != agent {
			continue
		}
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// exportHTML writes the run as one page.
func exportHTML(ctx context.Context, w io.Writer, run orchestrator.Run, names []string) error {
	events, err := history.Load(ctx, run, nil)
	if err != nil {
		return err
	}
	now := time.Now()
	if n := len(events); n > 0 && !run.Alive() {
		now = events[n-1].Time
	}
	title := "Run " + run.Name
	page := &errWriter{w: w}
	page.print(history.PageTop, safe(title), history.PageTitled, "<h1>", safe(title), "</h1>\n<p class=\"dim\">", safe(run.From), " · ",
		safe(run.Root), " · ", run.Created.UTC().Format("2006-01-02 15:04 MST"), "</p>\n")
	page.print(history.TimelineOf(run.Name, names, events, now).SVG())
	for _, name := range names {
		page.print("<h2>", safe(name), "</h2>\n")
		if err := turnScreens(page, run, events, name); err != nil {
			return err
		}
	}
	page.print(history.PageEnd)
	return page.err
}

// turnScreens writes the screen at the end of each turn of an agent, with its
// prompt. The recording is played once.
func turnScreens(page *errWriter, run orchestrator.Run, events []history.Event, agent string) error {
	prompts := map[string]string{}
	var ends []history.Event
	for _, e := range events {
		switch {
		case e.Agent != agent || e.Log == nil:
		case e.Kind == history.KindPrompt:
			prompts[e.ID] = e.Text
		case e.Log.TurnEnd != nil:
			ends = append(ends, e)
		}
	}
	tr := &track{name: agent}
	defer tr.rewind()
	err := cast.Read(run.Dir.Agent(agent).Screen(), func(e cast.Event) error {
		tr.events = append(tr.events, e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("exporting agent %s: %w", agent, err)
	}
	// What a program prints at the end of its turn may come a moment after the
	// turn's end was noted: the screen is that before the next turn's begin.
	for i, e := range ends {
		until := e.Time.Add(time.Second)
		if i+1 < len(ends) && ends[i+1].Log.TurnEnd != nil {
			began := ends[i+1].Time.Add(-time.Duration(ends[i+1].Log.TurnEnd.DurationMS) * time.Millisecond)
			if began.Before(until) {
				until = began
			}
		}
		if until.Before(e.Time) {
			until = e.Time
		}
		if err := tr.play(until); err != nil {
			return err
		}
		class := "good"
		if e.What != "done" {
			class = "bad"
		}
		page.print("<details><summary>turn ", fmt.Sprint(e.Turn), " <span class=\"", class, "\">", safe(e.What), "</span> ", safe(taskOf(e.Task)),
			" <span class=\"dim\">", e.Time.UTC().Format("15:04:05"), "</span></summary>\n")
		if p := prompts[e.ID]; p != "" {
			page.print("<p class=\"dim\">prompt</p><pre>", html.EscapeString(term.Clean(p)), "</pre>\n")
		}
		page.print("<p class=\"dim\">screen</p><pre>")
		if tr.emu != nil {
			lines := tr.emu.Lines(false)
			for len(lines) > 0 && lines[len(lines)-1] == "" {
				lines = lines[:len(lines)-1]
			}
			for _, line := range lines {
				page.print(safe(line), "\n")
			}
		}
		page.print("</pre></details>\n")
	}
	return page.err
}

func taskOf(task string) string {
	if task == "" {
		return ""
	}
	return "^" + task
}

func safe(text string) string { return html.EscapeString(term.CleanLine(text)) }

// An errWriter keeps the first error.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) print(parts ...string) {
	for _, p := range parts {
		if e.err == nil {
			_, e.err = io.WriteString(e.w, p)
		}
	}
}
