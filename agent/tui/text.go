package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"muntin/agent/harness"
	"muntin/internal/term"
)

// summary says in one clean line what a call does.
func summary(tool string, args json.RawMessage) string {
	var a struct {
		Command string `json:"command"`
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if json.Unmarshal(args, &a) != nil {
		a.Command, a.Path = "", ""
	}
	switch {
	case a.Command != "":
		first, rest, _ := strings.Cut(strings.TrimSpace(a.Command), "\n")
		if rest != "" {
			first += " …"
		}
		return term.CleanLine(first)
	case tool == "write" && a.Path != "":
		return fmt.Sprintf("%s (%s)", term.CleanLine(a.Path), plural(lineCount(a.Content), "line"))
	case a.Path != "":
		return term.CleanLine(a.Path)
	}
	return term.CleanLine(string(args))
}

func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func footerText(o harness.Outcome) string {
	in := o.Usage.Input + o.Usage.CacheRead + o.Usage.CacheWrite
	return fmt.Sprintf("%s · %s in · %s out", duration(o.Duration), count(in), count(o.Usage.Output))
}

func duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// count prints a number of tokens: 340, 1.2k, 3.4M.
func count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func aborted(err error) bool { return errors.Is(err, harness.ErrAborted) }
