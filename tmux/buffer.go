package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoSuchBuffer: the paste buffer is not there.
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
func (s *Server) Buffer(ctx context.Context, name string) (string, error) {
	if err := CheckName("buffer", name); err != nil {
		return "", err
	}
	replies, err := s.Do(ctx, Cmd{"show-buffer", "-b", name})
	if err != nil {
		return "", fmt.Errorf("reading tmux buffer %s: %w", name, err)
	}
	return replies[0], nil
}

// DeleteBuffer removes a paste buffer. ErrNoSuchBuffer.
func (s *Server) DeleteBuffer(ctx context.Context, name string) error {
	if err := CheckName("buffer", name); err != nil {
		return err
	}
	if _, err := s.Do(ctx, Cmd{"delete-buffer", "-b", name}); err != nil {
		return fmt.Errorf("deleting tmux buffer %s: %w", name, err)
	}
	return nil
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
