package control

import (
	"bytes"
	"strconv"
	"time"
)

// structural are the notifications that tell of a change of sessions, windows
// or panes (tmux(1), CONTROL MODE). The value tells whether it is one.
//
//nolint:gochecknoglobals // a constant table
var structural = map[string]bool{
	"layout-change": true, "window-add": true, "window-close": true, "window-renamed": true,
	"unlinked-window-add": true, "unlinked-window-close": true, "unlinked-window-renamed": true,
	"session-changed": true, "session-renamed": true, "sessions-changed": true, "session-window-changed": true,
	"client-session-changed": true, "window-pane-changed": true, "pane-mode-changed": true, "client-detached": true,
	"message": false, "config-error": false, "paste-buffer-changed": false, "paste-buffer-deleted": false, "exit": false,
}

// parse reads a line outside of all blocks. The event owns its data. ok is
// false for lines that are no notification known here.
func parse(line []byte) (e Event, ok bool) {
	if len(line) == 0 || line[0] != '%' {
		return Event{}, false
	}
	name, rest, _ := bytes.Cut(line[1:], []byte(" "))
	switch string(name) {
	case "output":
		pane, data, ok := bytes.Cut(rest, []byte(" "))
		return Event{Kind: Output, Pane: string(pane), Data: decode(bytes.Clone(data))}, ok && isPane(pane)
	case "extended-output":
		return parseExtended(rest)
	case "pause":
		return Event{Kind: Paused, Pane: string(rest)}, isPane(rest)
	case "continue":
		return Event{Kind: Continued, Pane: string(rest)}, isPane(rest)
	case "subscription-changed":
		head, value, ok := bytes.Cut(rest, []byte(" : "))
		sub, _, _ := bytes.Cut(head, []byte(" "))
		return Event{Kind: Subscription, Name: string(sub), Text: string(value)}, ok && len(sub) > 0
	}
	change, known := structural[string(name)]
	e = Event{Kind: Notice, Name: string(name), Text: string(rest)}
	if change {
		e.Kind = Structure
	}
	return e, known
}

// parseExtended reads "%1 250 future arguments : data".
func parseExtended(rest []byte) (Event, bool) {
	head, data, ok := bytes.Cut(rest, []byte(" : "))
	pane, args, _ := bytes.Cut(head, []byte(" "))
	age, _, _ := bytes.Cut(args, []byte(" "))
	ms, err := strconv.ParseUint(string(age), 10, 32)
	if !ok || err != nil || !isPane(pane) {
		return Event{}, false
	}
	e := Event{Kind: Output, Pane: string(pane), Age: time.Duration(ms) * time.Millisecond, Data: decode(bytes.Clone(data))}
	return e, true
}

func isPane(b []byte) bool {
	if len(b) < 2 || b[0] != '%' {
		return false
	}
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
