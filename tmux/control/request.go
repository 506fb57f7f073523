package control

import (
	"fmt"
	"strconv"
	"strings"
)

// A request is one list of commands under way.
type request struct {
	seq     uint64
	cmds    []Cmd
	tag     int // with queued
	queued  bool
	replies []string
	err     error
	done    chan struct{} // closed when replies and err are final

	text     strings.Builder // of the command that is being answered
	blocks   int             // of that command so far
	errs     []string
	answered bool
}

// script is the request on the wire: a line with the commands, each with a marker
// after it when they are several, and a line with the last marker, which comes
// also when a command fails and drops the rest of its line. That one is no command
// at all: nothing that answers is cheaper for the server than what it refuses.
func (r *request) script(word string) (string, error) {
	list := r.cmds
	if len(list) > 1 {
		list = make([]Cmd, 0, 2*len(r.cmds))
		for i, c := range r.cmds {
			list = append(list, c, r.marker(word, i))
		}
	}
	first, err := Line(list...)
	if err != nil {
		return "", err
	}
	return first + "\n" + word + strconv.FormatUint(r.seq, 10) + "\n", nil
}

// unknownCommand begins what tmux says of the last marker.
const unknownCommand = "parse error: unknown command: "

// marker prints the marker behind command i.
func (r *request) marker(word string, i int) Cmd {
	return Cmd{"display-message", "-p", fmt.Sprintf("%s%d %d", word, r.seq, i)}
}

// take adds what a block holds to the reply under way.
func (r *request) take(b block) {
	r.blocks++
	if !b.failed {
		r.text.Write(b.text)
		return
	}
	text := strings.TrimSpace(string(b.text))
	r.errs = append(r.errs, strings.TrimPrefix(text, "parse error: "))
}

// next ends the reply under way and reports whether it was the last.
func (r *request) next() bool {
	r.replies = append(r.replies, strings.TrimSuffix(r.text.String(), "\n"))
	r.text.Reset()
	r.blocks = 0
	return len(r.replies) == len(r.cmds)
}

// settle counts the reply under way when the connection has ended after a
// plain command and before its marker, as kill-session may bring about.
func (r *request) settle() {
	n := len(r.replies)
	if n < len(r.cmds) && r.blocks == 1 && len(r.errs) == 0 && r.cmds[n][0] != "if-shell" {
		r.next()
	}
}

// finish makes the result final. lost is why no more replies come, or nil.
func (r *request) finish(lost error) {
	if r.answered {
		return
	}
	r.answered = true
	n := len(r.replies)
	switch {
	case n < len(r.cmds) && len(r.errs) == 0 && lost != nil:
		r.err = lost
	case n < len(r.cmds) && len(r.errs) == 0:
		r.err = &Error{Command: r.cmds[n][0], Text: "no reply"}
	case len(r.errs) > 0:
		r.err = &Error{Command: r.cmds[min(n, len(r.cmds)-1)][0], Text: strings.Join(r.errs, "\n")}
	}
	close(r.done)
}
