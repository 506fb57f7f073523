package orchestrator

import (
	"fmt"
	"strings"
)

// maxCheckOutput is how much of a failed check's output an agent is sent, in bytes.
const maxCheckOutput = 8 << 10

// taskText is the prompt that gives a task to an agent.
func taskText(t Task, check string, shared bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task: ^%s %s\n", t.ID, t.Text)
	if body := strings.TrimSpace(t.Body); body != "" {
		b.WriteString("\n" + body + "\n")
	}
	folder := "it is a git worktree of your own. "
	if shared {
		folder = "it is a git worktree that you share with other agents, so change only what the task needs. "
	}
	b.WriteString("\nWork on this task only, in the present folder: " + folder +
		"Leave the board's files (PLAN.md, TODO.md) alone, and do not commit: your files are taken as they are when you finish. ")
	if check == "" {
		b.WriteString("End your turn when the task is done.\n")
	} else {
		fmt.Fprintf(&b, "End your turn when the task is done; then this is run to check it:\n\n    %s\n", check)
	}
	return b.String()
}

// stepText says which step of a task this is, and what was done before.
func stepText(c Course, steps int) string {
	text := fmt.Sprintf("\nThis is step %d of %d of the task: do only what is your part.", c.Step+1, steps)
	if c.From == "" {
		return text + "\n"
	}
	text += fmt.Sprintf(" Your folder holds what %s made in the step before.", c.From)
	if said := strings.TrimSpace(c.Said); said != "" {
		text += fmt.Sprintf(" %s said at the end:\n\n%s", c.From, indent(said))
	}
	return text + "\n"
}

// checkText sends the output of a failed check back.
func checkText(task, command string, res Result) string {
	out := strings.TrimRight(tailOf(res.Output, maxCheckOutput), "\n")
	return fmt.Sprintf("The check of ^%s failed: %s\n\n    $ %s\n%s\n\nRepair it, then end your turn; the check will be run again.\n",
		task, res.Error, command, indent(out))
}

func changeText(before, after, task string) string {
	return fmt.Sprintf("A person changed task ^%s on the board while you work on it. It said:\n\n%s\n\nNow it says:\n\n%s\n",
		task, indent(strings.TrimSpace(before)), indent(strings.TrimSpace(after)))
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// tailOf keeps the last n bytes of s, from the start of a line where it can.
func tailOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		s = rest
	}
	return "[…]\n" + strings.ToValidUTF8(s, "")
}
