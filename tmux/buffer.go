package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoSuchBuffer says that the paste buffer is not there.
var ErrNoSuchBuffer = errors.New("no such tmux buffer")

// SetBuffer keeps text in a paste buffer of that name (see CheckName), which a
// person can paste and which pushes no other buffer out. It can hold any byte
// but NUL.
func (s *Server) SetBuffer(ctx context.Context, name, text string) error {
	if err := CheckName("buffer", name); err != nil {
		return err
	}
	if text == "" {
		return fmt.Errorf("setting tmux buffer %s: tmux keeps no empty buffers", name)
	}
	if _, err := s.Do(ctx, Cmd{"set-buffer", "-b", name, "--", text}); err != nil {
		return fmt.Errorf("setting tmux buffer %s: %w", name, err)
	}
	return nil
}

// Buffer reads a paste buffer. ErrNoSuchBuffer.
//
// It comes by way of a private file: show-buffer ends the output of the tmux
// process that runs it.
func (s *Server) Buffer(ctx context.Context, name string) (string, error) {
	wrap := func(err error) error { return fmt.Errorf("reading tmux buffer %s: %w", name, err) }
	if err := CheckName("buffer", name); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "muntin")
	if err != nil {
		return "", wrap(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "buffer")
	if err := s.patient(ctx, Cmd{"save-buffer", "-b", name, escapePath(path)}); err != nil {
		return "", wrap(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", wrap(err)
	}
	return string(data), nil
}

// DeleteBuffer removes a paste buffer. ErrNoSuchBuffer.
func (s *Server) DeleteBuffer(ctx context.Context, name string) error {
	wrap := func(err error) error { return fmt.Errorf("deleting tmux buffer %s: %w", name, err) }
	if err := CheckName("buffer", name); err != nil {
		return err
	}
	names, err := s.Buffers(ctx)
	if err != nil {
		return wrap(err)
	}
	if !slices.Contains(names, name) {
		return wrap(ErrNoSuchBuffer)
	}
	if _, err := s.Do(ctx, dropBuffer(name)...); err != nil {
		return wrap(err)
	}
	return nil
}

// dropBuffer are the commands that remove a buffer, if it is there. tmux 3.2
// removes the newest one, a person's, when that of the name is not there: so
// it is made first.
func dropBuffer(name string) []Cmd {
	return []Cmd{{"set-buffer", "-b", name, "--", "x"}, {"delete-buffer", "-b", name}}
}

// Buffers lists the paste buffers' names, the newest first.
func (s *Server) Buffers(ctx context.Context) ([]string, error) {
	replies, err := s.Do(ctx, Cmd{"list-buffers", "-F", textField("buffer_name")})
	if err != nil {
		return nil, fmt.Errorf("listing tmux buffers: %w", err)
	}
	var names []string
	for l := range strings.Lines(replies[0]) {
		names = append(names, unquote(strings.TrimSuffix(l, "\n")))
	}
	return names, nil
}
