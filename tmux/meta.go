package tmux

import (
	"context"
	"fmt"
	"strings"
)

// Metadata is kept in tmux's user options, which live as long as the pane or
// session and which formats can show: #{@muntin_agent}. A pane's options are
// inherited from its session, so the two have names of their own. tmux cannot
// list user options in a format; the server's keysOption names all keys in use.
const (
	paneMeta    = "@muntin_"
	sessionMeta = "@muntin_session_"
	sessionMark = "@muntin_session" // on every session we make
	keysOption  = "@muntin_keys"    // "|agent|run|"
	titleOption = "@muntin_title"
)

// SetPaneMeta sets metadata of a pane; other keys keep their values. An empty
// value removes a key. Keys are a-z, then a-z, 0-9 or '_'.
func (s *Server) SetPaneMeta(ctx context.Context, ref PaneRef, meta map[string]string) error {
	if err := checkMeta(meta); err != nil {
		return err
	}
	cmds := append(s.keyCmds(meta), s.metaCmds("-p", string(ref.ID), paneMeta, meta)...)
	if _, err := s.onPane(ctx, ref, cmds...); err != nil {
		return fmt.Errorf("setting metadata of pane %s: %w", ref.ID, err)
	}
	s.noteKeys(sorted(meta)...)
	return nil
}

// metaCmds are the commands that set metadata. scope is "-p" for a pane and
// "" for a session.
func (s *Server) metaCmds(scope, target, prefix string, meta map[string]string) []Cmd {
	var cmds []Cmd
	for _, k := range sorted(meta) {
		cmd := Cmd{"set-option"}
		if scope != "" {
			cmd = append(cmd, scope)
		}
		if meta[k] == "" {
			cmds = append(cmds, append(cmd, "-u", "-t", target, "--", prefix+k))
			continue
		}
		cmds = append(cmds, append(cmd, "-t", target, "--", prefix+k, meta[k]))
	}
	return cmds
}

// keyCmds note keys on the server that this client has not seen there yet. The
// server itself looks whether a key is noted, so two clients cannot lose one.
func (s *Server) keyCmds(metas ...map[string]string) []Cmd {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cmds []Cmd
	seen := map[string]bool{}
	for _, meta := range metas {
		for _, k := range sorted(meta) {
			if s.keys[k] || seen[k] {
				continue
			}
			seen[k] = true
			has := "#{m:*|" + k + "|*,#{" + keysOption + "}}"
			value := "#{?" + has + ",#{" + keysOption + "},#{" + keysOption + "}|" + k + "|}"
			cmds = append(cmds, Cmd{"set-option", "-g", "-F", keysOption, value})
		}
	}
	return cmds
}

// splitKeys reads keysOption. Words that are no keys are not ours and are left out.
func splitKeys(s string) []string {
	var keys []string
	for k := range strings.SplitSeq(s, "|") {
		if isMetaKey(k) {
			keys = append(keys, k)
		}
	}
	return keys
}
