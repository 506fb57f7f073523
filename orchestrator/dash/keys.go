package dash

import (
	"slices"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// key takes a key press.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case m.leave:
		m.leave = false
		if name == "y" || name == "Y" || name == "enter" || name == "ctrl+c" {
			return m.quit()
		}
		return nil
	case m.input != nil:
		return m.typed(k)
	case m.sure != nil:
		return m.answer(name)
	case m.filtering:
		m.filterKey(k)
		return nil
	case m.help:
		m.help = false
		return nil
	case m.page != nil:
		return m.pageKey(name)
	}
	m.status = ""
	return m.press(name)
}

// press does what a key means where nothing is asked.
func (m *model) press(name string) tea.Cmd {
	switch name {
	case "q", "ctrl+c":
		m.leave = m.owner
		if m.leave {
			return nil
		}
		return m.quit()
	case "?":
		m.help = true
		return nil
	case "/":
		m.filtering = m.tab != TabAgent
		return nil
	case "esc":
		if m.opts.Once && m.filter == "" {
			return m.quit()
		}
		if m.tab == TabAgent {
			m.show(TabFleet)
		}
		m.filter = ""
		return nil
	case "tab":
		m.show((m.tab + 1) % tabCount)
		return nil
	case "shift+tab":
		m.show((m.tab + tabCount - 1) % tabCount)
		return nil
	}
	if len(name) == 1 && name[0] >= '1' && name[0] < '1'+byte(tabCount) {
		m.show(Tab(name[0] - '1'))
		return nil
	}
	if m.move(name) {
		return nil
	}
	acts := m.frame().acts()
	if i := slices.IndexFunc(acts, func(a act) bool { return a.key == name }); i >= 0 {
		return m.begin(acts[i])
	}
	return nil
}

// show goes to a tab. A filter is of the tab that it was typed in.
func (m *model) show(t Tab) {
	if t != m.tab {
		m.filter = ""
	}
	m.tab = t
}

// begin begins an act: it asks what is to be asked.
func (m *model) begin(a act) tea.Cmd {
	switch {
	case a.plan:
		m.page = &page{title: "PLAN.md", plan: true}
	case a.open != "":
		m.agent = a.open
		m.show(TabAgent)
	case a.ask != "":
		m.input = &input{act: a}
	case a.sure:
		m.sure = &a
	default:
		return m.do(a, "")
	}
	return nil
}

// answer takes the answer to whether an act shall be carried out.
func (m *model) answer(name string) tea.Cmd {
	a := *m.sure
	m.sure = nil
	if name == "y" || name == "Y" || name == "enter" {
		return m.do(a, "")
	}
	return m.over()
}

// over ends a popup when what it was for was left.
func (m *model) over() tea.Cmd {
	if m.opts.Once {
		return m.quit()
	}
	return nil
}

// typed edits the line that an act asks for.
func (m *model) typed(k tea.KeyPressMsg) tea.Cmd {
	in := m.input
	switch name := k.String(); name {
	case "esc", "ctrl+c":
		m.input = nil
		return m.over()
	case "enter":
		if text := string(in.text); text != "" {
			m.input = nil
			return m.do(in.act, text)
		}
	default:
		in.text = edited(in.text, k)
	}
	return nil
}

func (m *model) filterKey(k tea.KeyPressMsg) {
	switch k.String() {
	case "esc", "ctrl+c":
		m.filter, m.filtering = "", false
	case "enter", "down", "up":
		m.filtering = false
	default:
		m.filter = string(edited([]rune(m.filter), k))
	}
}

// edited is a line after a key.
func edited(text []rune, k tea.KeyPressMsg) []rune {
	switch k.String() {
	case "backspace":
		return text[:max(len(text)-1, 0)]
	case "ctrl+u":
		return nil
	case "ctrl+w":
		n := len(text)
		for n > 0 && unicode.IsSpace(text[n-1]) {
			n--
		}
		for n > 0 && !unicode.IsSpace(text[n-1]) {
			n--
		}
		return text[:n]
	}
	return append(slices.Clip(text), []rune(k.Text)...)
}

// paste puts a pasted text into the line that is being typed.
func (m *model) paste(text string) {
	switch {
	case m.input != nil:
		m.input.text = append(slices.Clip(m.input.text), []rune(text)...)
	case m.filtering:
		m.filter += clean(text)
	}
}

// pageKey scrolls a page, or leaves it.
func (m *model) pageKey(name string) tea.Cmd {
	f := m.frame()
	room := max(m.lay.page, 1)
	last := max(len(f.pageText())-room, 0)
	top := min(m.page.top, last)
	switch name {
	case "esc", "q", "enter", "ctrl+c":
		m.page = nil
		return m.over()
	case "up", "k":
		top--
	case "down", "j":
		top++
	case "pgup", "b", "ctrl+b":
		top -= room
	case "pgdown", "space", "ctrl+f":
		top += room
	case "home", "g":
		top = 0
	case "end", "G":
		top = last
	}
	m.page.top = min(max(top, 0), last)
	return nil
}

// move moves in the list, or from agent to agent.
func (m *model) move(name string) bool {
	if m.tab == TabAgent {
		return m.nextAgent(name)
	}
	var by int
	switch name {
	case "up", "k":
		by = -1
	case "down", "j":
		by = 1
	case "pgup", "ctrl+b":
		by = -max(m.lay.shown-1, 1)
	case "pgdown", "ctrl+f":
		by = max(m.lay.shown-1, 1)
	case "home", "g":
		by = -1 << 30
	case "end", "G":
		by = 1 << 30
	default:
		return false
	}
	m.step(by)
	return true
}

func (m *model) nextAgent(name string) bool {
	var by int
	switch name {
	case "left", "h", "up", "k":
		by = -1
	case "right", "j", "down":
		by = 1
	default:
		return false
	}
	list := m.view.Agents
	if a, ok := m.frame().shownAgent(); ok {
		i := slices.IndexFunc(list, func(b Agent) bool { return b.Name == a.Name })
		m.agent = list[(i+by+len(list))%len(list)].Name
	}
	return true
}

// step chooses another row.
func (m *model) step(by int) {
	f := m.frame()
	rows := f.rows()
	if len(rows) == 0 {
		return
	}
	m.choose(rows, min(max(f.chosen(rows)+by, 0), len(rows)-1))
}

func (m *model) choose(rows []row, i int) {
	p := &m.places[m.tab]
	p.key, p.index = rows[i].key, i
	p.moved = i < len(rows)-1
}

// click chooses the tab or the row under the mouse; a chosen row is opened.
func (m *model) click(at tea.Mouse) tea.Cmd {
	if at.Button != tea.MouseLeft || m.input != nil || m.sure != nil || m.leave {
		return nil
	}
	if at.Y == m.lay.tabY {
		for t, s := range m.lay.tabs {
			if at.X >= s.from && at.X < s.to {
				m.page, m.help = nil, false
				m.show(Tab(t))
			}
		}
		return nil
	}
	i := at.Y - m.lay.listY
	if m.page != nil || m.help || i < 0 || i >= m.lay.shown {
		return nil
	}
	rows := m.frame().rows()
	i += m.lay.first
	if i >= len(rows) {
		return nil
	}
	was := m.frame().chosen(rows)
	m.choose(rows, i)
	if was != i || rows[i].acts == nil {
		return nil
	}
	if acts := rows[i].acts(); len(acts) > 0 && acts[0].open != "" {
		return m.begin(acts[0])
	}
	return nil
}

const wheelRows = 3

func (m *model) wheel(at tea.Mouse) {
	by := wheelRows
	if at.Button == tea.MouseWheelUp {
		by = -by
	}
	switch {
	case m.page != nil:
		last := max(len(m.frame().pageText())-max(m.lay.page, 1), 0)
		m.page.top = min(max(m.page.top+by, 0), last)
	case m.tab != TabAgent:
		m.step(by)
	}
}
