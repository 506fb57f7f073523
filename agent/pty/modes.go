package pty

import (
	"bytes"
	"sync/atomic"
)

// modes follows the terminal modes that a program sets in its output, so far as
// delivery depends on them: DECSET 2004 (bracketed paste) and the alternate
// screens 47, 1047, 1049, as xterm's ctlseqs has them. One goroutine feeds it,
// any may read it. Sequences may be split anywhere.
type modes struct {
	pasting atomic.Bool
	altScr  atomic.Bool

	state   modeState
	param   int
	params  [8]int
	n       int
	private bool
}

type modeState uint8

const (
	modeText modeState = iota
	modeEsc            // after ESC
	modeCSI            // in CSI ? n ; n
	modeSkip           // in another CSI sequence
)

func (m *modes) feed(b []byte) {
	for len(b) > 0 {
		if m.state == modeText { // most of it, fast
			i := bytes.IndexByte(b, 0x1b)
			if i < 0 {
				return
			}
			b = b[i+1:]
			m.state = modeEsc
			continue
		}
		m.step(b[0])
		b = b[1:]
	}
}

func (m *modes) step(c byte) {
	switch {
	case c == 0x1b:
		m.state = modeEsc
	case c == 0x18 || c == 0x1a: // CAN and SUB end any sequence
		m.state = modeText
	case m.state == modeEsc:
		m.escape(c)
	case c < 0x20 || c == 0x7f: // controls inside a sequence do not end it
	case m.state == modeSkip:
		if c >= 0x40 && c <= 0x7e {
			m.state = modeText
		}
	default:
		m.csi(c)
	}
}

func (m *modes) escape(c byte) {
	switch c {
	case '[':
		m.state, m.param, m.n, m.private = modeCSI, 0, 0, false
	case 'c': // RIS, a full reset
		m.pasting.Store(false)
		m.altScr.Store(false)
		m.state = modeText
	default:
		m.state = modeText
	}
}

func (m *modes) csi(c byte) {
	switch {
	case c == '?' && !m.private && m.n == 0 && m.param == 0:
		m.private = true
	case c >= '0' && c <= '9':
		m.param = min(m.param*10+int(c-'0'), 99999)
	case c == ';':
		m.push()
	case (c == 'h' || c == 'l') && m.private:
		m.push()
		m.set(c == 'h')
		m.state = modeText
	case c >= 0x40 && c <= 0x7e:
		m.state = modeText
	default:
		m.state = modeSkip
	}
}

func (m *modes) push() {
	if m.n < len(m.params) {
		m.params[m.n] = m.param
		m.n++
	}
	m.param = 0
}

func (m *modes) set(on bool) {
	for _, p := range m.params[:m.n] {
		switch p {
		case 2004:
			m.pasting.Store(on)
		case 47, 1047, 1049:
			m.altScr.Store(on)
		}
	}
}
