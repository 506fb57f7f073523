package dash

import (
	"fmt"
	"time"

	"muntin/internal/term"
)

// A Sign is what is said of an agent outside the dashboard, where there is room
// for a few words: its state, the mark and the style that the dashboard gives
// that, as tmux(1), STYLES, has it.
type Sign struct {
	State, Mark, Style string
	Since              string // when it began, "" if that is not known
}

// SignOf is the sign of an agent at a moment, without colours if so wished.
func SignOf(a Agent, now time.Time, colour bool) Sign {
	f := frame{now: now, theme: newPalette(term.DefaultTheme())}
	mark, tone := f.agentMark(a.State)
	s := Sign{State: clean(string(a.State)), Mark: mark, Style: term.TmuxStyle(*tone.style, colour)}
	if !a.Since.IsZero() {
		s.Since = f.clock(a.Since, "15:04")
	}
	return s
}

// Words are a run in a few words of ASCII: how far it is, who works, and how much
// waits for a person.
func Words(v View) (text, needs string) {
	total, by := v.counts()
	working := 0
	for _, a := range v.Agents {
		if a.State == AgentWorking {
			working++
		}
	}
	text = fmt.Sprintf("%s %d/%d", clean(v.Run), by[TaskDone], total)
	if working > 0 {
		text += fmt.Sprintf(", %d working", working)
	}
	if n := len(v.Needs); n > 0 {
		needs = fmt.Sprintf("%d for you", n)
	}
	return text, needs
}
