package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"muntin/agent/pty"
)

// A Candidate is work to be judged.
type Candidate struct {
	Agent  string `json:"agent"`
	Commit string `json:"commit"`
}

// A Verdict is what a reader, or a person, says of a task's work: approval, a
// wish for changes, or whose work is to be taken.
type Verdict struct {
	Task    string `json:"task"`
	By      string `json:"by,omitempty"` // the agent; empty: a person
	Approve bool   `json:"approve,omitempty"`
	Changes bool   `json:"changes,omitempty"`
	Winner  string `json:"winner,omitempty"`
	Text    string `json:"text,omitempty"` // what was found
}

// ParseVerdict reads a verdict from an agent's last words: the last line that is
// "verdict: approve", "verdict: changes" or "winner: <agent>", whatever marks
// Markdown has around it. The rest is what was found.
func ParseVerdict(text string) (v Verdict, ok bool) {
	var rest []string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(plainLine(line), ":")
		value = strings.Trim(value, " *_`.")
		switch key = strings.Trim(key, " *_`"); {
		case key == "verdict" && (value == "approve" || value == "approved"):
			v, ok = Verdict{Approve: true}, true
		case key == "verdict" && (value == "changes" || value == "request"):
			v, ok = Verdict{Changes: true}, true
		case key == "winner" && value != "" && !strings.ContainsAny(value, " \t"):
			v, ok = Verdict{Winner: value}, true
		default:
			rest = append(rest, line)
		}
	}
	v.Text = strings.TrimSpace(strings.Join(rest, ""))
	return v, ok
}

// plainLine is a line in small letters, without Markdown's marks of lists,
// quotes and headings.
func plainLine(line string) string {
	return strings.ToLower(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), ">#-*+ \t")))
}

// verdict takes a judgement that was given with a command. A reader's counts when
// its turn ends, a person's at once.
func (r *step) verdict(v Verdict) {
	if v.By == "" {
		reader, reading := r.readerOf(v.Task)
		if !r.judged(v.Task, v) {
			r.tell(Fact{Bad: true, Text: fmt.Sprintf("^%s has nothing to be judged like that", v.Task)})
			return
		}
		if now, ok := r.state.Works[reader.Agent]; reading && ok && now.Reads && now.Task == v.Task && !now.Over {
			r.drop(now, "was judged by a person")
		}
		return
	}
	w, ok := r.state.Works[v.By]
	if !ok || !w.Reads || w.Task != v.Task {
		r.tell(Fact{Agent: v.By, Bad: true, Text: fmt.Sprintf("%s does not read ^%s: its judgement was left aside", v.By, v.Task)})
		return
	}
	w.Verdict = &v
	r.state.Works[v.By] = w
}

// Judgeable tells why a verdict would come to nothing as things are now; nil when
// it counts.
func (s State) Judgeable(v Verdict) error {
	flow := s.Settings.Flow
	switch {
	case flow.Lanes > 1 && v.Winner == "":
		return fmt.Errorf("run %s is a race: choose an agent", s.Settings.Run)
	case flow.Lanes <= 1 && v.Winner != "":
		return fmt.Errorf("run %s is no race: there is nobody to choose from", s.Settings.Run)
	}
	var passed []string
	for _, w := range s.WorkOn(v.Task) {
		if !w.Reads && w.Stage == StagePassed {
			passed = append(passed, w.Agent)
		}
	}
	switch {
	case len(passed) == 0:
		return fmt.Errorf("^%s has no work that waits to be judged", v.Task)
	case v.Winner != "" && !slices.Contains(passed, v.Winner):
		return fmt.Errorf("%s has no result of ^%s that has passed: choose one of %s", v.Winner, v.Task, strings.Join(passed, ", "))
	case v.By != "" && (!s.Works[v.By].Reads || s.Works[v.By].Task != v.Task):
		return fmt.Errorf("%s was not asked to judge ^%s", v.By, v.Task)
	}
	return nil
}

// readText is the prompt that has an agent judge work.
func readText(t Task, sides []Work, diffs string) string {
	var b strings.Builder
	if len(sides) == 1 {
		fmt.Fprintf(&b, "Review task ^%s, done by %s. Its check has passed. Your folder holds the result. You only read: nothing that you change here is kept.\n", t.ID, sides[0].Agent)
	} else {
		fmt.Fprintf(&b, "Choose the best result of task ^%s: %s each did it for themselves. The check of each has passed. You only read: nothing that you change here is kept.\n",
			t.ID, strings.Join(agentsOf(sides), ", "))
	}
	fmt.Fprintf(&b, "\nThe task:\n\n%s\n", indent(strings.TrimSpace(t.Text+"\n"+t.Body)))
	fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(diffs, "\n"))
	b.WriteString("\n" + answerText(t.ID, agentsOf(sides)))
	return b.String()
}

func answerText(task string, agents []string) string {
	if len(agents) == 1 {
		return "Say what has to be changed, if anything, with the places. End with the line `verdict: approve` or `verdict: changes`\n" +
			"(or run `muntin review approve " + task + "`, or `muntin review request " + task + " --text '…'`).\n"
	}
	return "End with the line `winner: <agent>`, one of " + strings.Join(agents, ", ") + "\n(or run `muntin choose " + task + " <agent>`).\n"
}

func unclearText(task string, agents []string) string {
	return "Your answer has no verdict that can be read. " + answerText(task, agents)
}

func findingsText(task string, v Verdict) string {
	text := v.Text
	if text == "" {
		text = "(nothing more was said)"
	}
	return fmt.Sprintf("%s reviewed your work on ^%s and wants changes:\n\n%s\n\nMake them, then end your turn; it is checked and read again.\n",
		judgeName(v), task, indent(tailOf(strings.TrimSpace(text), maxCheckOutput)))
}

// readTurn follows the end of a reader's turn.
func (r *step) readTurn(w Work, end pty.TurnEndInfo) {
	r.move(w, StageResting, "") // its turn is over: there is nothing to abort
	w = r.state.Works[w.Agent]
	switch end.Reason {
	case pty.TurnDone:
		text := end.Text
		if v := w.Verdict; v != nil && v.Text == "" && v.Changes {
			withText := *v
			withText.Text = strings.TrimSpace(text)
			w.Verdict = &withText
		}
		r.heard(w, text)
	case pty.TurnAborted:
		r.mark(w, TaskWaiting, fmt.Sprintf("the turn of %s, who was to judge it, was aborted by a person", w.Agent))
	default:
		r.mark(w, TaskBlocked, fmt.Sprintf("the turn of %s, who was to judge it, ended with an error: %s", w.Agent, end.Error))
	}
}
