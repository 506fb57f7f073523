package dash

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"muntin/internal/term"
)

// Plain writes what changed from prev to next, one line a change, for outputs
// that are no terminal. The zero View is before everything.
func Plain(w io.Writer, prev, next View) error {
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, term.CleanLine(fmt.Sprintf(format, args...)))
	}
	if prev.Phase != next.Phase {
		say("run %s: %s", next.Run, next.Phase)
	}
	for _, p := range next.Problems {
		if !slices.Contains(prev.Problems, p) {
			say("problem: %s", p)
		}
	}
	plainTasks(say, prev, next)
	for _, a := range next.Agents {
		i := slices.IndexFunc(prev.Agents, func(b Agent) bool { return a.Name == b.Name })
		if i >= 0 && prev.Agents[i].State == a.State && prev.Agents[i].Turn == a.Turn && prev.Agents[i].Task == a.Task {
			continue
		}
		line := fmt.Sprintf("agent %s: %s", a.Name, a.State)
		if a.Task != "" {
			line += " on " + a.Task
		}
		if a.Turn > 0 {
			line += fmt.Sprintf(", turn %d", a.Turn)
		}
		say("%s", line)
	}
	for _, l := range next.Log[newFrom(prev.Log, next.Log):] {
		say("%s %s: %s", l.Time.UTC().Format("15:04:05"), l.Level, l.Text)
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func plainTasks(say func(string, ...any), prev, next View) {
	for _, t := range next.Tasks {
		i := slices.IndexFunc(prev.Tasks, func(o Task) bool { return o.ID == t.ID })
		if i >= 0 && prev.Tasks[i].State == t.State && prev.Tasks[i].Agent == t.Agent && prev.Tasks[i].Attempt == t.Attempt {
			continue
		}
		line := fmt.Sprintf("task %s: %s", t.ID, t.State)
		if t.Agent != "" {
			line += " by " + t.Agent
		}
		if t.Attempt > 1 {
			line += fmt.Sprintf(", attempt %d", t.Attempt)
		}
		if t.Note != "" {
			line += ": " + t.Note
		}
		say("%s", line)
	}
	for _, t := range prev.Tasks {
		if !slices.ContainsFunc(next.Tasks, func(o Task) bool { return o.ID == t.ID }) {
			say("task %s: removed", t.ID)
		}
	}
}

// newFrom is where the lines of next begin that prev did not have. The log may
// have lost lines at its beginning meanwhile.
func newFrom(prev, next []Line) int {
	if len(prev) == 0 {
		return 0
	}
	last := prev[len(prev)-1]
	for i := len(next) - 1; i >= 0; i-- {
		if next[i] == last {
			return i + 1
		}
	}
	return 0
}
