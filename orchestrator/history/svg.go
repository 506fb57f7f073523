package history

import (
	"fmt"
	"html"
	"strings"
	"time"

	"muntin/internal/term"
)

// The measures of a timeline's picture, in its own units.
const (
	svgLeft  = 110
	svgWidth = 1000
	svgLane  = 34
	svgTop   = 30
)

// SVG draws the timeline as a picture for an HTML page: text and shapes in the
// page's colours by class (turn, bad, waiting, good, person, dim), each with a
// title that tells what it is. Nothing in it refers to anything outside.
func (t Timeline) SVG() string {
	var b strings.Builder
	height := svgTop + svgLane*len(t.Lanes) + 10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="timeline of run %s">`+"\n",
		svgLeft+svgWidth+20, height, safe(t.Run))
	total := t.To.Sub(t.From)
	x := func(at time.Time) float64 {
		if total <= 0 {
			return svgLeft
		}
		return svgLeft + min(max(float64(at.Sub(t.From))/float64(total), 0), 1)*svgWidth
	}
	const ticks = 8
	for i := range ticks + 1 {
		at := t.From.Add(total / ticks * time.Duration(i))
		fmt.Fprintf(&b, `<line class="tick" x1="%.1f" x2="%.1f" y1="20" y2="%d"/><text class="dim" x="%.1f" y="14" text-anchor="middle">%s</text>`+"\n",
			x(at), x(at), height, x(at), at.UTC().Format(svgLayout(total)))
	}
	for i, lane := range t.Lanes {
		y := float64(svgTop + svgLane*i)
		fmt.Fprintf(&b, `<text x="0" y="%.1f">%s</text>`+"\n", y+14, safe(strings.Trim(lane.Name, "()")))
		for _, s := range lane.Spans {
			svgSpan(&b, s, x, y)
		}
		for _, m := range lane.Marks {
			class := markClass(m)
			fmt.Fprintf(&b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`+"\n", class, x(m.Time), y+24,
				safe(fmt.Sprintf("%s %s %s %s %s", m.Time.UTC().Format("15:04:05.000"), m.Kind, m.What, taskText(m.Task), firstLine(m.Text))))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func svgSpan(b *strings.Builder, s Span, x func(time.Time) float64, y float64) {
	class, h, top := "alive", 2.0, y+9
	switch s.Kind {
	case SpanTurn:
		class, h, top = "turn", 14, y+3
		if s.What != "done" && s.What != "" {
			class = "turn bad"
		}
	case SpanWaiting:
		class, h, top = "waiting", 14, y+3
	case SpanAlive:
	}
	wide := max(x(s.To)-x(s.From), 1)
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.0f"><title>%s</title></rect>`+"\n", class, x(s.From), top, wide, h,
		safe(fmt.Sprintf("%s %s, %s: %s", s.Kind, s.Label(), s.To.Sub(s.From).Round(time.Millisecond), firstLine(s.Text))))
	if label := s.Label(); s.Kind == SpanTurn && wide > float64(7*len(label)) {
		fmt.Fprintf(b, `<text class="in" x="%.1f" y="%.1f">%s</text>`+"\n", x(s.From)+3, y+14, safe(label))
	}
}

func markClass(m Mark) string {
	switch {
	case m.Bad:
		return "bad"
	case m.Who == Person:
		return "person"
	case m.Kind == KindMerge || m.Kind == KindCheck:
		return "good"
	}
	return "mark"
}

func svgLayout(total time.Duration) string {
	switch {
	case total < 10*time.Second:
		return "15:04:05.0"
	case total > 48*time.Hour:
		return "Jan 02 15:04"
	}
	return "15:04:05"
}

func safe(text string) string { return html.EscapeString(term.CleanLine(text)) }

func taskText(task string) string {
	if task == "" {
		return ""
	}
	return "^" + task
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}

// PageTop begins an HTML page that needs nothing from anywhere: all it refers
// to is in it, and its own policy forbids the rest. The title follows it, then
// PageTitled.
const PageTop = `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>
:root{--ground:#fff;--text:#1b1f24;--dim:#59636e;--line:#d1d9e0;--turn:#0a5bc4;--good:#1a7f37;--bad:#c01c28;--warn:#9a6700;--person:#8250df;--code:#f4f6f8}
@media (prefers-color-scheme:dark){:root{--ground:#0f1318;--text:#e4e9ee;--dim:#98a3ae;--line:#313a43;--turn:#3f7fd0;--good:#4ac26b;--bad:#ff7b72;--warn:#d4a72c;--person:#c297ff;--code:#191f26}}
body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem}h2{font-size:1.1rem;border-top:1px solid var(--line);padding-top:.8rem}h3{font-size:1rem}
table{border-collapse:collapse}td,th{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}th{color:var(--dim);font-weight:normal}
pre{background:var(--code);padding:.6rem;overflow:auto;font:.85rem/1.3 ui-monospace,monospace}
summary{cursor:pointer}p,td{overflow-wrap:anywhere}.dim,.dim a{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}
svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:var(--text)}svg .dim{fill:var(--dim)}svg .in{fill:#fff}
.tick{stroke:var(--line)}.alive{fill:var(--line)}.turn{fill:var(--turn)}.turn.bad,circle.bad{fill:var(--bad)}.waiting{fill:var(--warn)}
circle.good{fill:var(--good)}circle.person{fill:var(--person)}circle.mark{fill:var(--dim)}
</style><title>`

// PageTitled ends the page's head.
const PageTitled = "</title></head><body>\n"

// PageEnd ends the page.
const PageEnd = "</body></html>\n"
