// Package session holds the commands about the conversations that were kept: ls,
// show, tree, export, import, rename and label.
package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/session"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/durable"
	"muntin/internal/term"
)

// Options are what all the commands take.
type Options struct {
	App  *app.App
	Dir  string // --session-dir
	JSON bool
}

// NewCmd makes `muntin session`.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "session",
		Short: "The conversations of muntin's own agent: list, show, export, import, name",
		Long: "The conversations that muntin agent has kept. A session is named by its id, by the\n" +
			"beginning of it, or by the path of its file; files of the Pi agent are read as well.",
		Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
	}
	cmd.PersistentFlags().StringVar(&o.Dir, "session-dir", "", "the folder of sessions (default: $MUNTIN_SESSION_DIR, else muntin's own)")
	cmd.AddCommand(newLs(o), newShow(o), newTree(o), newExport(o), newImport(o), newRename(o), newLabel(o))
	return cmd
}

func (o *Options) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

// Dir is the folder of sessions: the one asked for, that of the environment, or
// muntin's own.
func Dir(a *app.App, asked string) string {
	if asked == "" {
		asked = a.Getenv("MUNTIN_SESSION_DIR")
	}
	if asked == "" {
		return filepath.Join(a.Layout.State, "sessions")
	}
	if abs, err := filepath.Abs(asked); err == nil {
		return abs
	}
	return asked
}

// Resolve finds the file of a session that a person named by a path, an id or
// the beginning of one.
func Resolve(dir, ref string) (string, error) {
	if strings.ContainsRune(ref, filepath.Separator) || strings.HasSuffix(ref, ".jsonl") {
		path, err := filepath.Abs(ref)
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("looking for the session: %w", err)
		}
		return path, nil
	}
	info, err := session.Find(dir, ref)
	var many *session.AmbiguousError
	switch {
	case errors.As(err, &many):
		return "", &app.ExitError{Code: app.ExitUsage, Err: app.Hint(err, "name it by more of its id")}
	case errors.Is(err, session.ErrNoSession):
		return "", app.Hint(err, "list them with `muntin session ls --all`, or name a file by its path")
	case err != nil:
		return "", err
	}
	return info.Path, nil
}

// Explain adds what a person can do to an error of opening a session.
func Explain(err error) error {
	switch {
	case errors.Is(err, durable.ErrLocked):
		return app.Hint(err, "another process has this conversation open; go on with a copy of it: muntin agent --fork")
	case errors.Is(err, session.ErrOldVersion):
		return app.Hint(err, "go on with a copy of it: muntin agent --fork")
	}
	return err
}

// read opens a session to look at it.
func (o *Options) read(ref string) (*session.Session, error) {
	path, err := Resolve(Dir(o.App, o.Dir), ref)
	if err != nil {
		return nil, err
	}
	return session.Open(path, session.Options{ReadOnly: true, Now: o.App.Now})
}

// write opens a session to add something to it.
func (o *Options) write(ref string, add func(*session.Session) error) error {
	path, err := Resolve(Dir(o.App, o.Dir), ref)
	if err != nil {
		return err
	}
	s, err := session.Open(path, session.Options{Now: o.App.Now})
	if err != nil {
		return Explain(err)
	}
	return errors.Join(add(s), s.Close())
}

// warn tells what could not be read.
func (o *Options) warn(s *session.Session) {
	for _, p := range s.Problems() {
		fmt.Fprintf(o.App.Streams.Err, "%s %s: %s\n", o.App.Theme.Bad.Render("muntin:"), s.Path(), p)
	}
}

func newLs(o *Options) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "ls [text]",
		Short: "List this folder's sessions, newest first",
		Long:  "List the sessions that were held in this folder, newest first. With a text, those\nwhose id, name, first message or folder holds it.",
		Args:  app.Args(0, 1, "at most one text"),
		RunE: o.App.Interruptible(func(_ context.Context, args []string) error {
			infos, err := session.List(Dir(o.App, o.Dir))
			if err != nil {
				return err
			}
			infos, err = o.chosen(infos, all, strings.Join(args, " "))
			if err != nil {
				return err
			}
			if o.JSON {
				return o.App.PrintJSON(infos)
			}
			return o.printList(infos, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "those of all folders")
	return o.jsonFlag(cmd)
}

func (o *Options) chosen(infos []session.Info, all bool, text string) ([]session.Info, error) {
	here, err := app.Confirmed(o.App.Dir)
	if err != nil {
		return nil, err
	}
	text = strings.ToLower(text)
	kept := []session.Info{}
	for _, i := range infos {
		in := strings.ToLower(i.ID + "\n" + i.Name + "\n" + i.First + "\n" + i.Cwd)
		if (all || i.Cwd == here) && strings.Contains(in, text) {
			kept = append(kept, i)
		}
	}
	return kept, nil
}

func (o *Options) printList(infos []session.Info, all bool) error {
	a := o.App
	if len(infos) == 0 {
		fmt.Fprintln(a.Streams.Out, "there are no such sessions; see also --all")
		return nil
	}
	width := 0
	if a.Streams.OutTTY {
		width, _ = a.Streams.Size()
	}
	head := []string{"ID", "CHANGED", "MESSAGES", "WHAT"}
	if all {
		head = append(head[:3:3], "FOLDER", "WHAT")
	}
	table := term.NewTable(head...)
	for _, i := range infos {
		row := []string{a.Theme.Dim.Render(term.CleanLine(i.ID)), i.Modified.Local().Format("Jan 02 15:04"), fmt.Sprint(i.Messages)}
		if all {
			row = append(row, term.CleanLine(i.Cwd))
		}
		table.Row(append(row, term.Truncate(term.CleanLine(i.Title()), 80))...)
	}
	return table.Write(a.Streams.Out, a.Theme, width)
}

func newRename(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "rename <session> <name>",
		Short: "Give a session a name",
		Args:  app.Args(2, 2, "a session and a name"),
		RunE: o.App.Interruptible(func(_ context.Context, args []string) error {
			return o.write(args[0], func(s *session.Session) error { return s.Rename(args[1]) })
		}),
	}
}

func newLabel(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "label <session> <entry> [label]",
		Short: "Mark an entry of a session; without a label, take the mark away",
		Long:  "Mark an entry of a session with a word, to find it again. `muntin session tree` shows\nthe ids of entries; the beginning of one is enough.",
		Args:  app.Args(2, 3, "a session, an entry and a label"),
		RunE: o.App.Interruptible(func(_ context.Context, args []string) error {
			return o.write(args[0], func(s *session.Session) error {
				entry, err := findEntry(s, args[1])
				if err != nil {
					return err
				}
				label := ""
				if len(args) == 3 {
					label = args[2]
				}
				return s.SetLabel(entry, label)
			})
		}),
	}
}

func findEntry(s *session.Session, ref string) (string, error) {
	var found []string
	for _, n := range s.Nodes() {
		if n.ID == ref {
			return ref, nil
		}
		if ref != "" && strings.HasPrefix(n.ID, ref) {
			found = append(found, n.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", app.Hint(fmt.Errorf("%q: %w", ref, session.ErrNoEntry), "`muntin session tree` shows its entries")
	case 1:
		return found[0], nil
	}
	return "", app.Usage("%q may be any of the entries %s", ref, strings.Join(found, ", "))
}
