package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Paste puts text into a pane as a paste: bracketed if the program asked for
// that, line feeds as they are, in one step that a person's typing cannot cut
// in two. Copy mode is left first. Text is made safe before: CR LF becomes LF;
// control characters but TAB and LF are dropped, and with them the sequence
// that would end the paste early. Nothing is submitted: that is SendKeys.
//
// ErrDeadPane, ErrInputOff, ErrNoSuchPane: nothing was pasted. Success means
// that tmux took the text, not that the program has read it.
func (s *Server) Paste(ctx context.Context, ref PaneRef, text string) error {
	text = pasteText(text)
	if text == "" {
		return nil
	}
	at, buffer := string(ref.ID), "muntin-"+rand.Text()
	guarded, err := guard(at, "0", Cmd{"paste-buffer", "-p", "-r", "-d", "-b", buffer, "-t", at})
	if err != nil {
		return err
	}
	replies, err := s.onPane(ctx, ref, Cmd{"set-buffer", "-b", buffer, "--", text}, guarded)
	if err == nil {
		err = refusal(replies[1])
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("pasting into pane %s: %w", ref.ID, err)
	if len(replies) > 0 {
		// The paste would have deleted it. It may also be gone with the server.
		_, _ = s.Do(context.WithoutCancel(ctx), dropBuffer(buffer)...)
	}
	return err
}

// keysChunk is the number of bytes a send-keys command carries: its arguments
// are limited to 1,000 in tmux 3.7 and 10,000 before.
const keysChunk = 512

// ErrSynchronized says that the window has synchronize-panes on, so what is typed into
// the pane goes to all the others too.
var ErrSynchronized = errors.New("the pane's input is synchronized with others")

// SendKeys sends bytes to a pane as if typed: "\r" is Enter, "\x03" is Ctrl-C.
// Copy mode is left first. ErrDeadPane, ErrInputOff, ErrSynchronized,
// ErrNoSuchPane: nothing was sent.
func (s *Server) SendKeys(ctx context.Context, ref PaneRef, keys []byte) error {
	if len(keys) == 0 {
		return nil
	}
	at := string(ref.ID)
	var cmds []Cmd
	for chunk := range slices.Chunk(keys, keysChunk) {
		cmd := Cmd{"send-keys", "-t", at, "-H"}
		for _, b := range chunk {
			cmd = append(cmd, fmt.Sprintf("%02x", b))
		}
		cmds = append(cmds, cmd)
	}
	guarded, err := guard(at, "#{pane_synchronized}", cmds...)
	if err != nil {
		return err
	}
	replies, err := s.onPane(ctx, ref, guarded)
	if err == nil {
		err = refusal(replies[0])
	}
	if err != nil {
		return fmt.Errorf("sending keys to pane %s: %w", ref.ID, err)
	}
	return nil
}

// guard carries out input commands only if the pane can take input. A paste
// into a dead pane crashes servers up to 3.3a
// (https://github.com/tmux/tmux/pull/3830); input to a pane that is switched
// off is lost without a word; copy mode takes keys as its own commands. shared
// is a format that is true if the input would go to other panes too: keys do
// with synchronize-panes, a paste does not.
func guard(pane, shared string, cmds ...Cmd) (Cmd, error) {
	leave := Cmd{"if-shell", "-F", "-t", pane, "#{pane_in_mode}", `copy-mode -q -t "` + pane + `"`}
	list, err := line(append([]Cmd{leave}, cmds...)...)
	if err != nil {
		return nil, err
	}
	refuse, err := line(Cmd{"display-message", "-p", "-t", pane, refused + "#{?pane_dead,dead,#{?pane_input_off,off,shared}}"})
	return Cmd{"if-shell", "-F", "-t", pane, "#{||:#{pane_dead},#{||:#{pane_input_off}," + shared + "}}", refuse, list}, err
}

// refused comes before the reason in a guard's reply, where a person's hooks
// may have printed too.
const refused = "muntin-refused-"

func refusal(reply string) error {
	_, reason, found := strings.Cut(reply, refused)
	if !found {
		return nil
	}
	reason, _, _ = strings.Cut(reason, "\n")
	switch reason {
	case "dead":
		return ErrDeadPane
	case "off":
		return ErrInputOff
	case "shared":
		return ErrSynchronized
	case "piped":
		return ErrPiped
	}
	return fmt.Errorf("reply %q: %w", reply, errReply)
}

// pasteText is text without what a program could take for something other
// than text: control characters, C1 ones too, and bytes that are not UTF-8.
func pasteText(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return r
		case r == '\r':
			return '\n'
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
}
