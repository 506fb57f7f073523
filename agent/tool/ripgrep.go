package tool

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"muntin/internal/proc"
)

// ripgrep searches with the rg program, in the searched folder, so that globs are
// relative to it. Its own settings are left out, so that answers are the same
// everywhere. An error says that it could not be used.
//
// The output is one line a match or context line: path, NUL, number, ":" or
// "-", text; see rg(1), --null.
func (q query) ripgrep(ctx context.Context, s *Set, found *matches) error {
	argv := []string{
		s.ripgrep, "--no-config", "--no-heading", "--with-filename", "--line-number", "--null", "--color=never",
		"--hidden", "--no-require-git", "--no-ignore-dot", "--no-messages", "--sort=path",
		"--max-columns=" + strconv.Itoa(grepHold), "--max-columns-preview", "--context=" + strconv.Itoa(q.context),
	}
	if q.IgnoreCase {
		argv = append(argv, "--ignore-case")
	}
	if q.Literal {
		argv = append(argv, "--fixed-strings")
	}
	if q.Glob != "" {
		argv = append(argv, "--glob="+q.Glob)
	}
	argv = append(argv, "--glob=!.git", "--regexp="+q.Pattern, "--")
	dir := q.root
	if q.isDir {
		argv = append(argv, ".")
	} else {
		dir = filepath.Dir(q.root)
		argv = append(argv, "./"+filepath.Base(q.root))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reader := &rgReader{found: found, context: q.context, enough: func() { cancel(errStop) }}
	_, err := proc.Run(ctx, proc.Spec{Argv: argv, Dir: dir, Env: s.env, Stdout: reader, Grace: drain, Reap: true})
	var exit *proc.ExitError
	switch {
	case errors.Is(context.Cause(ctx), errStop):
		return nil
	case errors.As(err, &exit) && exit.Result.Code == 1: // nothing found
		return nil
	case errors.As(err, &exit) && exit.Result.Code == 2 && len(exit.Result.Stderr) == 0: // a file could not be read
		return nil
	}
	return err
}

// rgReader takes rg's output apart.
type rgReader struct {
	found   *matches
	context int
	enough  func()
	rest    []byte
	file    string
	stopped bool
}

// Write implements io.Writer and never fails.
func (r *rgReader) Write(p []byte) (int, error) {
	r.rest = append(r.rest, p...)
	for !r.stopped {
		line, rest, whole := bytes.Cut(r.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		r.line(line)
		r.rest = rest
	}
	r.rest = nil
	return len(p), nil
}

// line takes one line; those without a NUL are separators and remarks.
func (r *rgReader) line(line []byte) {
	name, rest, ok := bytes.Cut(line, []byte{0})
	if !ok {
		return
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(string(rest[:digits]))
	if err != nil || digits == len(rest) {
		return
	}
	if file := string(bytes.TrimPrefix(name, []byte("./"))); file != r.file {
		r.file = file
		r.found.startFile(file, r.context)
	}
	hit := rest[digits] == ':'
	if !r.found.line(n, bytes.TrimSuffix(rest[digits+1:], []byte("\r")), hit) {
		r.stopped = true
		r.enough()
	}
}
