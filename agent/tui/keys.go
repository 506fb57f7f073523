package tui

import (
	"strings"
	"time"

	"muntin/internal/markdown"
)

// escTwice is how soon a second Escape must follow the first to open the tree.
const escTwice = 500 * time.Millisecond

// keyHelp are the keys for /hotkeys.
func keyHelp() [][2]string {
	return [][2]string{
		{"Enter", "send; while a turn runs: steer it"},
		{"Alt+Enter", "send after the turn"},
		{"Shift+Enter, Ctrl+J", "a new line"},
		{"Esc", "abort the turn, or close what is open"},
		{"Esc Esc", "with an empty editor: /tree"},
		{"Ctrl+C", "clear the editor, abort the turn; twice: leave"},
		{"Ctrl+D", "leave, with an empty editor"},
		{"Alt+Up", "take back what waits"},
		{"Up, Down", "move, or what was sent before"},
		{"Tab", "complete a file or a command"},
		{"Shift+Tab", "the next level of thinking"},
		{"Ctrl+L", "choose a model"},
		{"Ctrl+T", "show or hide thinking"},
		{"Ctrl+O", "show the last folded result, then the one before"},
		{"Ctrl+X", "copy the last answer"},
		{"Ctrl+G", "write the prompt in $VISUAL or $EDITOR"},
		{"Ctrl+A, Ctrl+E, Home, End", "beginning and end of the line"},
		{"Ctrl+Left, Ctrl+Right, Alt+B, Alt+F", "by words"},
		{"Ctrl+W, Alt+Backspace, Alt+D", "cut a word"},
		{"Ctrl+U, Ctrl+K", "cut to the beginning, to the end of the line"},
		{"Ctrl+Y, Alt+Y", "insert what was cut, then what was cut before"},
		{"Ctrl+Z, Ctrl+-", "undo"},
		{"Alt+Z, Ctrl+Shift+Z", "redo"},
	}
}

// key handles a key by Bubble Tea's name for it, and the text that it types.
func (m *model) key(name, text string) {
	if m.dialog != nil {
		m.dialogKey(name, text)
		return
	}
	if m.popup != nil && m.popupKey(name) {
		return
	}
	if m.actionKey(name) {
		return
	}
	if !m.editKey(name) {
		if text == "" {
			return
		}
		m.edit.Insert(text)
	}
	m.complete(false)
}

// actionKey are the keys that do more than write.
func (m *model) actionKey(name string) bool {
	switch name {
	case "enter", "kpenter":
		m.submit(inputLine)
	case "alt+enter":
		m.submit(inputFollowUp)
	case "esc":
		m.escape()
	case "ctrl+c":
		if !m.edit.Empty() {
			m.edit.Set("")
			m.history.Reset()
			return true
		}
		m.want(input{kind: inputInterrupt})
	case "ctrl+d":
		if !m.edit.Empty() {
			return false
		}
		m.want(input{kind: inputLeave})
	case "alt+up":
		m.want(input{kind: inputTakeBack})
	case "ctrl+l":
		m.want(input{kind: inputModel})
	case "shift+tab":
		m.want(input{kind: inputThinking})
	case "ctrl+x":
		m.want(input{kind: inputLine, text: "/copy"})
	case "ctrl+t":
		m.toggleThinking()
	case "ctrl+o":
		m.expand()
	case "ctrl+g":
		m.wantEditor = true
	case "tab":
		m.complete(true)
	default:
		return false
	}
	return true
}

// editKey are the keys of the editor.
func (m *model) editKey(name string) bool {
	e := &m.edit
	width := max(m.width-2, 4)
	switch name {
	case "shift+enter", "ctrl+j", "ctrl+enter":
		e.Insert("\n")
	case "backspace", "ctrl+h", "shift+backspace":
		e.Backspace()
	case "delete", "ctrl+d":
		e.Delete()
	case "left", "ctrl+b":
		e.Left()
	case "right", "ctrl+f":
		e.Right()
	case "up":
		if !e.Up(width) {
			m.walk(m.history.Prev(e.Text()))
		}
	case "down":
		if !e.Down(width) {
			m.walk(m.history.Next())
		}
	case "home", "ctrl+a":
		e.Home()
	case "end", "ctrl+e":
		e.End()
	case "ctrl+home", "alt+<", "alt+shift+,":
		e.Top()
	case "ctrl+end", "alt+>", "alt+shift+.":
		e.Bottom()
	case "alt+b", "alt+left", "ctrl+left":
		e.WordLeft()
	case "alt+f", "alt+right", "ctrl+right":
		e.WordRight()
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.KillWordLeft()
	case "alt+d", "alt+delete", "ctrl+delete":
		e.KillWordRight()
	case "ctrl+u":
		e.KillToStart()
	case "ctrl+k":
		e.KillToEnd()
	case "ctrl+y":
		e.Yank()
	case "alt+y":
		e.YankPop()
	case "ctrl+z", "ctrl+-", "ctrl+_", "ctrl+/":
		e.Undo()
	case "alt+z", "ctrl+shift+z", "shift+ctrl+z":
		e.Redo()
	default:
		return false
	}
	return true
}

// walk shows a text that was sent before.
func (m *model) walk(text string, ok bool) {
	if ok {
		m.edit.Set("")
		m.edit.Paste(text)
	}
}

// submit sends what was written.
func (m *model) submit(kind inputKind) {
	text := m.edit.Text()
	m.popup = nil
	if strings.TrimSpace(text) == "" {
		return
	}
	m.history.Add(strings.TrimSpace(text))
	m.edit.Reset()
	m.want(input{kind: kind, text: text})
}

// escape closes what is open, or aborts.
func (m *model) escape() {
	now := m.now()
	twice := now.Sub(m.lastEsc) <= escTwice
	m.lastEsc = now
	switch {
	case m.atWork():
		m.want(input{kind: inputAbort})
	case twice && m.edit.Empty():
		m.lastEsc = time.Time{}
		m.want(input{kind: inputLine, text: "/tree"})
	default:
		m.want(input{kind: inputAbort}) // a command may wait
	}
}

// paste inserts what was pasted.
func (m *model) paste(text string) {
	if m.dialog != nil {
		m.dialog.paste(text)
		return
	}
	m.edit.Paste(text)
	m.popup = nil
}

// edited takes what the external editor wrote.
func (m *model) edited(text string, err error) {
	if err != nil {
		for _, l := range markdown.Wrap(clean(err.Error()), m.width) {
			m.line(m.theme.Warn.Render(l))
		}
		return
	}
	if text != m.edit.Text() {
		m.edit.Set(text)
	}
}
