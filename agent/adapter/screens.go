package adapter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Sight is something that a CLI shows on its screen while it stands still.
// Pattern is a regular expression over single lines. Only the last lines of
// the screen are looked at, where the CLI has its dialogs and its composer:
// what an agent or a person has written stands above and means nothing. An
// adapter that has a sight which means idle takes prompts only when it shows.
type Sight struct {
	Pattern string
	Lines   int // how many of the last lines that are not empty; 0: DialogLines
	Means   Meaning
	Note    string // what to tell the person
}

// ShowsIdle reports whether there is a sight that means idle.
func (a Adapter) ShowsIdle() bool {
	return slices.ContainsFunc(a.Sights, func(s Sight) bool { return s.Means == MeansIdle })
}

// DialogLines is how many of a screen's last lines a dialog of a CLI takes.
const DialogLines = 14

// See tells what the screen shows: the first sight whose pattern fits. ok is
// false if none does.
func (a Adapter) See(lines []string) (found Sight, ok bool) {
	for _, s := range a.Sights {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			continue // Check tells of it
		}
		n := s.Lines
		if n == 0 {
			n = DialogLines
		}
		for _, line := range lastLines(lines, n) {
			if re.MatchString(line) {
				return s, true
			}
		}
	}
	return Sight{}, false
}

func lastLines(lines []string, n int) []string {
	var last []string
	for i := len(lines) - 1; i >= 0 && len(last) < n; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			last = append(last, line)
		}
	}
	return last
}

// Check tells what is wrong with the adapter's data.
func (a Adapter) Check() error {
	for _, s := range a.Sights {
		if _, err := regexp.Compile(s.Pattern); err != nil {
			return fmt.Errorf("adapter %s: a sight's pattern: %w", a.Name, err)
		}
	}
	return nil
}
