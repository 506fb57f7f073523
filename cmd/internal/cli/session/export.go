package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/session"
	"muntin/agent/session/export"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/id"
)

// The forms of an export.
const (
	formHTML     = "html"
	formMarkdown = "md"
	formJSONL    = "jsonl"
)

func newExport(o *Options) *cobra.Command {
	var form, out string
	cmd := &cobra.Command{
		Use:   "export <session>",
		Short: "Write a session as HTML, Markdown or JSONL",
		Long: "Write a session's conversation as a page for people: html is one file without anything\n" +
			"from elsewhere, md is Markdown. jsonl is the whole session, all branches, in one file of\n" +
			"Pi's format, with images and long texts in it.",
		Example: "  muntin session export 01KC -o talk.html\n  muntin session export 01KC --format md | less",
		Args:    app.Args(1, 1, "a session"),
		RunE: o.App.Interruptible(func(_ context.Context, args []string) error {
			if form == "" {
				form = formOf(out)
			}
			s, err := o.read(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			err = o.export(s, form, out)
			o.warn(s)
			return err
		}),
	}
	cmd.Flags().StringVar(&form, "format", "", "html, md or jsonl (default: by the name of the file, else html)")
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to write; it must not be there (default: standard output)")
	return cmd
}

func formOf(out string) string {
	switch strings.TrimPrefix(filepath.Ext(out), ".") {
	case "md", "markdown":
		return formMarkdown
	case "jsonl":
		return formJSONL
	}
	return formHTML
}

func (o *Options) export(s *session.Session, form, out string) error {
	write := export.HTML
	switch form {
	case formHTML:
	case formMarkdown:
		write = export.Markdown
	case formJSONL:
		return o.exportLines(s, out)
	default:
		return app.Usage("format %q: want html, md or jsonl", form)
	}
	if out == "" || out == "-" {
		return write(o.App.Streams.Out, s)
	}
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("exporting: %w", err)
	}
	if err := errors.Join(write(f, s), f.Close()); err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

// exportLines writes the session as one file that stands on its own.
func (o *Options) exportLines(s *session.Session, out string) error {
	opts := session.ForkOptions{Path: out, Inline: true, Import: true, Now: o.App.Now}
	if out != "" && out != "-" {
		return s.Fork(opts)
	}
	dir, err := os.MkdirTemp("", "muntin-export-")
	if err != nil {
		return fmt.Errorf("exporting: %w", err)
	}
	defer os.RemoveAll(dir)
	opts.Path = filepath.Join(dir, "session.jsonl")
	if err := s.Fork(opts); err != nil {
		return err
	}
	f, err := os.Open(opts.Path)
	if err != nil {
		return fmt.Errorf("exporting: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(o.App.Streams.Out, f)
	return err
}

func newImport(o *Options) *cobra.Command {
	return o.jsonFlag(&cobra.Command{
		Use:   "import <file>",
		Short: "Copy a session file, also one of Pi's, to the other sessions",
		Long:  "Copy a session file to the other sessions; it keeps its id and its folder. Files of\nPi's versions 1 to 3 are read, and stay as they are.",
		Args:  app.Args(1, 1, "a file"),
		RunE: o.App.Interruptible(func(_ context.Context, args []string) error {
			s, err := session.Open(args[0], session.Options{ReadOnly: true, Now: o.App.Now})
			if err != nil {
				return err
			}
			defer s.Close()
			path, err := o.importSession(s)
			if err != nil {
				return err
			}
			o.warn(s)
			if o.JSON {
				return o.App.PrintJSON(map[string]string{"id": s.Header().ID, "path": path})
			}
			fmt.Fprintf(o.App.Streams.Out, "%s\n", path)
			return nil
		}),
	})
}

func (o *Options) importSession(s *session.Session) (string, error) {
	dir, name := Dir(o.App, o.Dir), s.Header().ID
	if !id.Word(name, id.Upper+id.Lower+id.Digits, id.Upper+id.Lower+id.Digits+"._-", 128) {
		return "", fmt.Errorf("importing %s: its id %q cannot be the name of a file", s.Path(), name)
	}
	if known, err := session.Find(dir, name); err == nil && known.ID == name {
		return "", app.Hint(fmt.Errorf("importing %s: session %s is in %s already", s.Path(), name, known.Path), "go on with a copy of it: muntin agent --fork %s", s.Path())
	}
	path := filepath.Join(dir, name+".jsonl")
	err := s.Fork(session.ForkOptions{Path: path, Import: true, Now: o.App.Now})
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("importing: %w", err)
	}
	return path, err
}
