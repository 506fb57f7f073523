package resource

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muntin/agent/llm"
)

// A Prompt is what the system prompt is made of.
type Prompt struct {
	Dir    string // the working folder
	Date   time.Time
	Tools  []llm.Tool
	Files  []File
	Skills []Skill
	System string // the caller's own words, in place of those of this package
	Append string // the caller's own words, after the project's
}

// Text is the system prompt. It says little: what the agent works with, where,
// and what the project asks for. The date has no time of day, so that a
// provider's cache holds for the day.
func (p Prompt) Text() string {
	var b strings.Builder
	if own := strings.TrimSpace(p.System); own != "" {
		b.WriteString(own + "\n")
	} else {
		p.own(&b)
	}
	for _, f := range p.Files {
		fmt.Fprintf(&b, "\n<project_instructions path=%q>\n%s\n", f.Path, strings.TrimRight(f.Text, "\n"))
		if f.Cut {
			fmt.Fprintf(&b, "[The file is longer; these are its first %d KiB.]\n", MaxFile>>10)
		}
		b.WriteString("</project_instructions>\n")
	}
	if s := strings.TrimSpace(p.Append); s != "" {
		b.WriteString("\n" + s + "\n")
	}
	if slices.ContainsFunc(p.Tools, func(t llm.Tool) bool { return t.Name == "read" }) { // without it they cannot be read
		writeSkills(&b, offered(p.Skills))
	}
	fmt.Fprintf(&b, "\nWorking folder: %s\nDate: %s\n", p.Dir, p.Date.Format(time.DateOnly))
	return b.String()
}

// own is what this package says of itself.
func (p Prompt) own(b *strings.Builder) {
	b.WriteString("You are a coding agent. You work in a terminal, in a project's folder, and do what you are asked for there.\n")
	has := map[string]bool{}
	if len(p.Tools) > 0 {
		b.WriteString("\nTools: ")
		for i, t := range p.Tools {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(t.Name)
			has[t.Name] = true
		}
		b.WriteString("\n")
	}
	b.WriteString("\nRules:\n")
	for _, rule := range rules(has) {
		b.WriteString("- " + rule + "\n")
	}
}

func rules(has map[string]bool) []string {
	all := []string{"Look before you change: work from what the files say, not from what you expect."}
	if has["read"] && has["edit"] {
		all = append(all, "Read a file before you edit it. Change as little as the task needs.")
	}
	if has["edit"] && has["write"] {
		all = append(all, "Use edit for a part of a file, and write for a new file or a whole one.")
	}
	if has["bash"] {
		all = append(all, "Run the project's own checks when you have changed something, and say so when they fail.")
	}
	return append(all, "Say shortly what you did and what is left. Never claim what you did not see.")
}
