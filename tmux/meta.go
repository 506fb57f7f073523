package tmux

import (
	"context"
	"fmt"
	"strings"
)

// Metadata is kept in tmux's user options, which live as long as the pane or
// session and which formats can show: #{@muntin_agent}. A pane's options are
// inherited from its session, so the two have names of their own. tmux cannot
// list user options in a format; an option more names the keys in use.
const (
	paneMeta    = "@muntin_"
	sessionMeta = "@muntin_session_"
	sessionMark = "@muntin_session" // on every session we make
	keysName    = "keys"            // behind paneMeta and sessionMeta: "|agent|run|"
	titleOption = "@muntin_title"
)

// SetPaneMeta sets metadata of a pane; other keys keep their values. An empty
// value removes a key. Keys are a-z, then a-z, 0-9 or '_'.
func (s *Server) SetPaneMeta(ctx context.Context, ref PaneRef, meta map[string]string) error {
	if err := checkMeta(meta); err != nil {
		return err
	}
	cmds := metaCmds("-p", string(ref.ID), paneMeta, meta)
	if _, err := s.onPane(ctx, ref, cmds...); err != nil {
		return fmt.Errorf("setting metadata of pane %s: %w", ref.ID, err)
	}
	s.noteKeys(sorted(meta)...)
	return nil
}

// SetSessionMeta is SetPaneMeta for a session. ErrNoSuchSession.
func (s *Server) SetSessionMeta(ctx context.Context, id SessionID, meta map[string]string) error {
	if err := id.check(); err != nil {
		return err
	}
	if err := checkMeta(meta); err != nil {
		return err
	}
	cmds := append([]Cmd{{"has-session", "-t", string(id)}}, metaCmds("", string(id)+":", sessionMeta, meta)...)
	if _, err := s.Do(ctx, cmds...); err != nil {
		return fmt.Errorf("setting metadata of tmux session %s: %w", id, err)
	}
	s.noteKeys(sorted(meta)...)
	return nil
}

// metaCmds are the commands that set metadata. scope is "-p" for a pane and
// "" for a session. The server itself looks whether a key is noted, so two
// clients cannot lose one.
func metaCmds(scope, target, prefix string, meta map[string]string) []Cmd {
	var cmds []Cmd
	set := func(args ...string) {
		cmd := Cmd{"set-option"}
		if scope != "" {
			cmd = append(cmd, scope)
		}
		cmds = append(cmds, append(cmd, args...))
	}
	for _, k := range sorted(meta) {
		if meta[k] == "" {
			set("-u", "-t", target, "--", prefix+k)
			continue
		}
		noted := "#{" + prefix + keysName + "}"
		has := "#{m:*|" + k + "|*," + noted + "}"
		set("-F", "-t", target, "--", prefix+keysName, "#{?"+has+","+noted+","+noted+"|"+k+"|}")
		set("-t", target, "--", prefix+k, meta[k])
	}
	return cmds
}

// splitKeys reads a note of keys. Words that are no keys are not ours and are left out.
func splitKeys(s string) []string {
	var keys []string
	for k := range strings.SplitSeq(s, "|") {
		if isMetaKey(k) {
			keys = append(keys, k)
		}
	}
	return keys
}
