package dash

import (
	"fmt"
	"strings"

	"muntin/internal/term"
)

// styled makes a line of a terminal's screen fit to be shown: colours and
// attributes stay, all other sequences go.
func styled(line string, width int) string {
	var b strings.Builder
	colours := false
	for line != "" {
		esc := strings.IndexByte(line, 0x1b)
		if esc < 0 {
			esc = len(line)
		}
		b.WriteString(clean(line[:esc]))
		line = line[esc:]
		if n := sgr(line); n > 0 {
			b.WriteString(line[:n])
			line, colours = line[n:], true
		} else if line != "" {
			line = line[1:]
		}
	}
	text := term.Truncate(b.String(), width)
	if colours {
		text += "\x1b[m"
	}
	return text
}

// sgr is the length of the SGR sequence that s begins with (ECMA-48, 8.3.117);
// 0 if it does not.
func sgr(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case c >= '0' && c <= '9' || c == ';' || c == ':':
		default:
			return 0
		}
	}
	return 0
}

// ascii writes our marks and lines for terminals that have ASCII only. Names
// and texts of others stay as they are.
func ascii(s string) string {
	return strings.NewReplacer(
		"●", "*", "○", "o", "◐", "@", "✗", "x", "✓", "+", "▌", ">", "▏", "_", "━", "=", "─", "-", "│", "|",
		"…", "~", "·", ".", "–", "-", "×", "x", "↔", "~", "→", ">", "←", "<", "↑", "^", "↓", "v",
	).Replace(s)
}

func percent(n, of int) string { return fmt.Sprintf("%d%%", 100*n/max(of, 1)) }
