package pty

import (
	"bytes"
	"encoding/base64"
	"strings"
	"sync/atomic"

	"muntin/agent/adapter"
)

// maxOSC is how much of an operating system command is read; the rest of a
// longer one (a clipboard, an image) passes unread.
const maxOSC = 4 << 10

// A scanner reads the program's output as it passes, and never changes it. It
// follows the modes that delivery depends on, as xterm's ctlseqs and kitty's
// keyboard protocol have them: bracketed paste (DECSET 2004), the alternate
// screens (47, 1047, 1049) and the flags of the keyboard. And it tells of the
// signals a program gives: OSC 0 and 2 (titles), 9 and 777 (notifications), 133
// (a shell's marks), 7501 (program status), and the bell. One goroutine feeds
// it, any may read the modes. Sequences may be split anywhere.
type scanner struct {
	pasting atomic.Bool
	altScr  atomic.Bool
	kitty   atomic.Int32 // flags of the keyboard protocol
	fresh   atomic.Int64 // output count up to which nothing is on the screen any more

	heard func(cue) // may be nil

	state  scanState
	string stringKind
	param  int
	params [8]int
	n      int
	prefix byte // the private marker of a CSI sequence
	osc    []byte
	flags  []int32 // the stack of keyboard flags
	count  int64   // bytes before the present piece
}

// A cue is one signal that the program gave. at is the output count behind
// it.
type cue struct {
	kind adapter.SignalKind
	text string
	note string // what it says to people
	at   int64
}

type scanState uint8

const (
	scanText   scanState = iota
	scanEsc              // after ESC
	scanCSI              // in CSI n ; n
	scanSkip             // in a CSI sequence that is of no interest
	scanString           // in OSC, DCS, SOS, PM or APC
	scanEnd              // after ESC in one of those
)

type stringKind uint8

const (
	otherString stringKind = iota
	oscString
)

func (s *scanner) feed(b []byte) {
	start := s.count
	s.count += int64(len(b))
	for i := 0; i < len(b); {
		switch s.state {
		case scanText: // most of it, fast
			n := plain(b[i:])
			if i += n; i == len(b) {
				return
			}
			if b[i] == 0x07 {
				s.tell(cue{kind: adapter.SignalBell, at: start + int64(i) + 1})
			} else {
				s.state = scanEsc
			}
			i++
		case scanString:
			n := inString(b[i:])
			s.keep(b[i : i+n])
			if i += n; i < len(b) {
				s.inString(b[i], start+int64(i)+1)
				i++
			}
		case scanEsc, scanCSI, scanSkip, scanEnd:
			s.step(b[i], start+int64(i)+1)
			i++
		}
	}
}

// plain is how much of b is before its first ESC or BEL.
func plain(b []byte) int {
	if i := bytes.IndexByte(b, 0x1b); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, 0x07); i >= 0 {
		return i
	}
	return len(b)
}

// inString is how much of b belongs to a string that it is in the middle of.
func inString(b []byte) int {
	for i, c := range b {
		if c == 0x1b || c == 0x07 || c == 0x18 || c == 0x1a {
			return i
		}
	}
	return len(b)
}

func (s *scanner) keep(b []byte) {
	if s.string == oscString && len(s.osc) < maxOSC {
		s.osc = append(s.osc, b[:min(len(b), maxOSC-len(s.osc))]...)
	}
}

// inString takes a control character in a string.
func (s *scanner) inString(c byte, at int64) {
	switch {
	case c == 0x1b:
		s.state = scanEnd
	case c == 0x07 && s.string == oscString:
		s.command(at)
		s.state = scanText
	case c == 0x18 || c == 0x1a: // CAN and SUB end any sequence
		s.state = scanText
	}
}

func (s *scanner) step(c byte, at int64) {
	switch {
	case s.state == scanEnd:
		if c == '\\' {
			s.command(at)
			s.state = scanText
			return
		}
		s.state = scanEsc // the string was broken off
		s.step(c, at)
	case c == 0x1b:
		s.state = scanEsc
	case c == 0x18 || c == 0x1a:
		s.state = scanText
	case s.state == scanEsc:
		s.escape(c, at)
	case c < 0x20 || c == 0x7f: // controls inside a sequence do not end it
	case s.state == scanSkip:
		if c >= 0x40 && c <= 0x7e {
			s.state = scanText
		}
	default:
		s.csi(c, at)
	}
}

func (s *scanner) escape(c byte, at int64) {
	s.state = scanText
	switch c {
	case '[':
		s.state, s.param, s.n, s.prefix = scanCSI, 0, 0, 0
	case ']':
		s.state, s.string, s.osc = scanString, oscString, s.osc[:0]
	case 'P', 'X', '^', '_':
		s.state, s.string = scanString, otherString
	case 'c': // RIS, a full reset
		s.pasting.Store(false)
		s.altScr.Store(false)
		s.kitty.Store(0)
		s.flags = nil
		s.fresh.Store(at)
	}
}

func (s *scanner) csi(c byte, at int64) {
	switch {
	case c >= '<' && c <= '?' && s.prefix == 0 && s.n == 0 && s.param == 0:
		s.prefix = c
	case c >= '0' && c <= '9':
		s.param = min(s.param*10+int(c-'0'), 99999)
	case c == ';':
		s.push()
	case c >= 0x40 && c <= 0x7e:
		s.push()
		s.final(c, at)
		s.state = scanText
	default:
		s.state = scanSkip
	}
}

func (s *scanner) push() {
	if s.n < len(s.params) {
		s.params[s.n] = s.param
		s.n++
	}
	s.param = 0
}

// final carries out a CSI sequence.
func (s *scanner) final(c byte, at int64) {
	switch {
	case s.prefix == '?' && (c == 'h' || c == 'l'):
		s.set(c == 'h', at)
	case s.prefix == 0 && c == 'J' && s.params[0] == 2:
		s.fresh.Store(at)
	case c == 'u' && s.prefix != 0:
		s.keyboard()
	}
}

func (s *scanner) set(on bool, at int64) {
	for _, p := range s.params[:s.n] {
		switch p {
		case 2004:
			s.pasting.Store(on)
		case 47, 1047, 1049:
			s.altScr.Store(on)
			if on {
				s.fresh.Store(at)
			}
		}
	}
}

// maxFlags is how deep the stack of keyboard flags is kept.
const maxFlags = 16

// keyboard follows the flags of the kitty keyboard protocol:
// https://sw.kovidgoyal.net/kitty/keyboard-protocol/#progressive-enhancement
func (s *scanner) keyboard() {
	now, arg := s.kitty.Load(), int32(min(s.params[0], 31)) //nolint:gosec // at most 31
	switch s.prefix {
	case '>': // push
		if len(s.flags) == maxFlags {
			s.flags = s.flags[1:]
		}
		s.flags = append(s.flags, now)
		now = arg
	case '<': // pop
		for range max(arg, 1) {
			if now = 0; len(s.flags) > 0 {
				now = s.flags[len(s.flags)-1]
				s.flags = s.flags[:len(s.flags)-1]
			}
		}
	case '=': // set
		switch mode := s.params[1]; {
		case s.n > 1 && mode == 2:
			now |= arg
		case s.n > 1 && mode == 3:
			now &^= arg
		default:
			now = arg
		}
	}
	s.kitty.Store(now)
}

// command takes the operating system command that has just ended.
func (s *scanner) command(at int64) {
	if s.string != oscString || len(s.osc) == maxOSC {
		return
	}
	code, text, _ := strings.Cut(string(s.osc), ";")
	sig := cue{text: text, note: text, at: at}
	switch code {
	case "0", "2":
		sig.kind = adapter.SignalTitle
	case "9":
		if kind, _, more := strings.Cut(text, ";"); more && kind == "4" || text == "" {
			return // a progress bar
		}
		sig.kind = adapter.SignalNotify
	case "777":
		rest, ok := strings.CutPrefix(text, "notify;")
		if !ok {
			return
		}
		sig.kind, sig.text = adapter.SignalNotify, strings.Replace(rest, ";", ": ", 1)
		sig.note = sig.text
	case "133":
		sig.kind = adapter.SignalCommand
	case "7501":
		var ok bool
		if sig.text, sig.note, ok = programStatus(text); !ok {
			return
		}
		sig.kind = adapter.SignalStatus
	default:
		return
	}
	s.tell(sig)
}

func (s *scanner) tell(sig cue) {
	if s.heard != nil {
		s.heard(sig)
	}
}

// programStatus reads OSC 7501's "state=working:app=pi:msg=BASE64" into the
// state, with the kind of a blocked one behind a colon, and the message.
func programStatus(text string) (state, note string, ok bool) {
	kind := ""
	for field := range strings.SplitSeq(text, ":") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "state":
			state = value
		case "kind":
			kind = value
		case "msg":
			if raw, err := base64.StdEncoding.DecodeString(value); err == nil {
				note = strings.ToValidUTF8(string(raw), "\uFFFD")
			}
		}
	}
	if kind != "" && state == "blocked" {
		state += ":" + kind
	}
	return state, note, state != ""
}
