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
// agent whose adapter has a sight that means idle takes prompts only when that
// shows.
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

// Seen is what a still screen shows.
type Seen struct {
	Sight    Sight // the first that fits; the zero value if none does
	Composer bool  // the program's composer shows
	// Confidence is High where the adapter knows the composer, so that it is
	// certain what stands above it, and else Medium.
	Confidence Confidence
}

// See tells what the screen shows. A dialog counts below the last line of the
// composer only, or, where none shows, in its place at the bottom. said is what
// was said in the conversation of late: where the composer is not known, lines
// of it are the transcript.
func (a Adapter) See(lines []string, said string) Seen {
	last := lastLines(lines, DialogLines)
	seen, below := Seen{Confidence: Medium}, last
	if re, err := regexp.Compile(a.Composer); err == nil && a.Composer != "" {
		seen.Confidence = High
		if i := slices.IndexFunc(last, re.MatchString); i >= 0 {
			seen.Composer, below = true, last[:i]
		}
	} else {
		last = unsaidLines(last, said)
		below = last
	}
	for _, s := range a.Sights {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			continue // Check tells of it
		}
		in := last
		if s.Means == MeansApproval || s.Means == MeansQuestion || s.Means == MeansLimit {
			in = below
		}
		if s.Lines > 0 {
			in = in[:min(len(in), s.Lines)]
		}
		if slices.ContainsFunc(in, re.MatchString) {
			seen.Sight = s
			return seen
		}
	}
	return seen
}

// minSaid is the least length of a line, in bytes, that is taken for one of the
// conversation: shorter ones stand in anything.
const minSaid = 8

// unsaidLines leaves out the lines that are a part of what was said, however it
// was wrapped.
func unsaidLines(lines []string, said string) []string {
	if said = strings.Join(strings.Fields(said), " "); said == "" {
		return lines
	}
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		line = strings.Trim(line, " \t┃│|>❯›•⏺●✦*")
		line = strings.Join(strings.Fields(line), " ")
		return len(line) >= minSaid && strings.Contains(said, line)
	})
}

// lastLines are the last n lines that are not empty, the last first.
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
	if _, err := regexp.Compile(a.Composer); err != nil {
		return fmt.Errorf("adapter %s: the composer's pattern: %w", a.Name, err)
	}
	return nil
}
