package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// truncation tells what of a text was shown. It is kept in the details of a
// result under Pi's names.
type truncation struct {
	Truncated      bool   `json:"truncated"`
	By             string `json:"truncatedBy,omitempty"` // "lines" or "bytes"
	TotalLines     int    `json:"totalLines"`
	TotalBytes     int64  `json:"totalBytes"`
	OutputLines    int    `json:"outputLines"`
	OutputBytes    int    `json:"outputBytes"`
	LastPartial    bool   `json:"lastLinePartial,omitempty"`
	FirstTooLong   bool   `json:"firstLineExceedsLimit,omitempty"`
	lastLineLength int    // of the whole line
}

// tailOf returns the last whole lines of text within the limits. When the last
// line alone is too long, it returns that line's end.
func tailOf(text string) (string, truncation) {
	t := truncation{TotalLines: countLines(text), TotalBytes: int64(len(text))}
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	keep, bytes := 0, 0
	for ; keep < len(all) && t.By == ""; keep++ {
		n := len(all[len(all)-1-keep])
		if keep > 0 {
			n++ // the newline between
		}
		if keep == MaxLines {
			t.By = "lines"
			break
		}
		if bytes+n > MaxBytes {
			t.By = "bytes"
			break
		}
		bytes += n
	}
	out := strings.Join(all[len(all)-keep:], "\n")
	if keep == 0 {
		last := all[len(all)-1]
		t.LastPartial = true
		out, keep = endOf(last, MaxBytes), 1
	}
	t.Truncated = t.By != ""
	t.OutputLines, t.OutputBytes = keep, len(out)
	return out, t
}

// endOf returns at most n bytes of the end of s, whole characters only.
func endOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for i := 0; i < utf8.UTFMax && len(s) > 0 && !utf8.RuneStart(s[0]); i++ {
		s = s[1:]
	}
	return s
}

// countLines counts lines; one newline at the end does not start another.
func countLines(s string) int {
	if s == "" {
		return 0
	}
	n := strings.Count(s, "\n")
	if !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// size prints a number of bytes: 512B, 12.3KB, 1.2MB.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%dB", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1fKB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1fMB", float64(n)/(1<<20))
}
