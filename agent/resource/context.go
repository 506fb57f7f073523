// Package resource finds what a coding agent is told before the conversation
// begins: context files, skills, prompt templates, themes, and the system prompt
// made from them.
//
// Context files are read without asking, as every agent reads them: they are text
// for the model. What else a project brings along is loaded only when the person
// trusts the folder. That is decided by names alone, see Brought: nothing of an
// untrusted project is read.
//
// Of two things with one name the nearer counts: what the command line names, the
// project's, the user's, then that of packages.
package resource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"
)

// MaxFile is how many bytes of one context file are used.
const MaxFile = 32 << 10

// A File is one context file.
type File struct {
	Path string
	Text string
	Cut  bool // only the first MaxFile bytes are in Text
}

// ContextFiles reads AGENTS.md, or else CLAUDE.md, of the folder dir and of the
// folders above it, up to the root of the repository that dir lies in; outside a
// repository up to home; outside both of dir only. The outermost comes first, so
// that the nearest has the last word. A file that cannot be read is left out and
// its error returned beside the others.
func ContextFiles(dir, home string) ([]File, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding context files: %w", err)
	}
	var files []File
	var problems []error
	for _, d := range folders(dir, home) {
		f, err := contextFile(d)
		if err != nil {
			problems = append(problems, err)
		} else if f != nil {
			files = append(files, *f)
		}
	}
	return files, errors.Join(problems...)
}

// folders are the folders to look in, from the outermost to dir.
func folders(dir, home string) []string {
	var up []string
	homeAt := -1
	for d := dir; ; d = filepath.Dir(d) {
		up = append(up, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil { // a folder, or a file in a linked worktree
			break
		}
		if home != "" && d == filepath.Clean(home) {
			homeAt = len(up)
		}
		if d == filepath.Dir(d) { // no repository
			up = up[:max(homeAt, 1)]
			break
		}
	}
	slices.Reverse(up)
	return up
}

func contextFile(dir string) (*File, error) {
	for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
		path := filepath.Join(dir, name)
		text, err := readHead(path, MaxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading context file %s: %w", path, err)
		}
		f := &File{Path: path, Text: text}
		if len(text) > MaxFile {
			f.Text, f.Cut = cutAtLine(text[:MaxFile]), true
		}
		f.Text = strings.ToValidUTF8(strings.TrimPrefix(f.Text, "\uFEFF"), "\uFFFD")
		return f, nil
	}
	return nil, nil
}

// readHead reads at most one byte more than limit, of a regular file only.
func readHead(path string, limit int64) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", plainError(err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a FIFO
	if err != nil {
		return "", plainError(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", plainError(err)
	}
	return string(b), nil
}

// plainError drops the path, which the message around it names.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// cutAtLine ends text behind its last whole line, or character if it is one line.
func cutAtLine(text string) string {
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		return text[:i+1]
	}
	for len(text) > 0 {
		if r, n := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || n != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}
