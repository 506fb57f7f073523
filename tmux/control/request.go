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

// script is the request on the wire: each command with a marker after it, and
// a line of its own with the last marker, which comes also when a command
// fails and drops the rest of its line.
func (r *request) script(word string) (string, error) {
	list := make([]Cmd, 0, 2*len(r.cmds))
	for i, c := range r.cmds {
		list = append(list, c, r.marker(word, strconv.Itoa(i)))
	}
	first, err := Line(list...)
	if err != nil {
		return "", err
	}
	second, err := Line(r.marker(word, lastMarker))
	return first + "\n" + second + "\n", err
}

const lastMarker = "end"

func (r *request) marker(word, at string) Cmd {
	return Cmd{"display-message", "-p", fmt.Sprintf("%s%d %s", word, r.seq, at)}
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
