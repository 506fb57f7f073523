package export

import (
	"strconv"
	"strings"

	"muntin/agent/session"
	"muntin/internal/term"
)

type markdownPage struct{ out }

// line makes a text safe in a heading: on one line, without marks that would
// begin something else.
func line(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`).Replace(term.CleanLine(s))
}

func (p *markdownPage) head(title string, h session.Header) {
	p.write("# ", line(title), "\n\n")
	for _, row := range [][2]string{{"session", h.ID}, {"begun", h.Timestamp}, {"folder", h.Cwd}, {"from", h.ParentSession}} {
		if row[1] != "" {
			p.write("- ", row[0], ": ", line(row[1]), "\n")
		}
	}
}

func (p *markdownPage) section(_, who, when string) {
	p.write("\n## ", line(who), "\n\n")
	if when != "" {
		p.write("<sub>", line(when), "</sub>\n\n")
	}
}

// prose is what was written in Markdown in the first place, more often than not.
func (p *markdownPage) prose(text string) { p.write(strings.TrimSpace(clean(text)), "\n\n") }

func (p *markdownPage) code(title, text string) {
	text = clean(text)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	p.write(line(title), "\n\n", fence, "text\n", strings.TrimSuffix(text, "\n"), "\n", fence, "\n\n")
}

func (p *markdownPage) image(mime, data string) {
	p.write("*[an image, ", line(mime), ", ", byteCount(len(data)/4*3), "]*\n\n")
}

func (p *markdownPage) foot() {}

func byteCount(n int) string {
	if n < 1<<10 {
		return "under 1 KB"
	}
	return strconv.Itoa(n>>10) + " KB"
}
