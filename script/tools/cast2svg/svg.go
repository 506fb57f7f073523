package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"muntin/script/tools/cast"
	"muntin/script/tools/screen"
)

// The size of a cell and the margin, in pixels.
const (
	cellW    = 8.43
	cellH    = 18.0
	fontSize = 14
	baseline = 13.5
	margin   = 12.0
)

// A picture is a film: the frames lie side by side, and CSS moves the strip. Rows
// are drawn once, however many frames show them.
type picture struct {
	term    cast.Term
	frames  []shot
	options options
	defs    bytes.Buffer
	ids     map[string]int
}

func (p *picture) write(b *bytes.Buffer) {
	p.ids = map[string]int{}
	var strip bytes.Buffer
	for i, f := range p.frames {
		fmt.Fprintf(&strip, "<svg x=\"%s\" width=\"%s\" height=\"%s\">\n",
			num(float64(i)*p.width()), num(p.width()), num(p.height()))
		for y, row := range f.rows {
			if id := p.row(row); id > 0 {
				fmt.Fprintf(&strip, "<use href=\"#r%d\" y=\"%s\"/>", id, num(float64(y)*cellH))
			}
		}
		strip.WriteString("</svg>\n")
	}
	p.head(b)
	fmt.Fprintf(b, "<defs>\n%s</defs>\n", p.defs.Bytes())
	fmt.Fprintf(b, "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"%s\"/>\n", screen.Background)
	fmt.Fprintf(b, "<svg x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">\n",
		num(margin), num(margin), num(p.width()), num(p.height()))
	fmt.Fprintf(b, "<g class=\"film\" transform=\"translate(%s)\">\n%s</g>\n</svg>\n</svg>\n",
		num(p.offset(len(p.frames)-1)), strip.Bytes())
}

func (p *picture) width() float64           { return float64(p.term.Cols) * cellW }
func (p *picture) height() float64          { return float64(p.term.Rows) * cellH }
func (p *picture) offset(frame int) float64 { return -float64(frame) * p.width() }

func (p *picture) head(b *bytes.Buffer) {
	w, h := num(p.width()+2*margin), num(p.height()+2*margin)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" `+
		`xml:space="preserve" role="img" aria-label="%s">`+"\n", w, h, w, h, escape(p.options.title))
	fmt.Fprintf(b, "<style>\ntext{font:%dpx ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',Consolas,"+
		"monospace;fill:%s;white-space:pre}\n.b{font-weight:bold}.i{font-style:italic}.l{fill:none;stroke-width:1.2}\n",
		fontSize, screen.Foreground)
	if len(p.frames) > 1 {
		p.animation(b)
	}
	b.WriteString("</style>\n")
}

// animation makes one step for each frame. Who wants no motion sees the last frame.
func (p *picture) animation(b *bytes.Buffer) {
	length := p.frames[len(p.frames)-1].at
	total := p.options.play + p.options.hold
	b.WriteString("@media (prefers-reduced-motion:no-preference){\n")
	fmt.Fprintf(b, ".film{animation:film %.1fs step-end infinite}\n}\n@keyframes film{\n", total.Seconds())
	for i, f := range p.frames {
		at := time.Duration(float64(p.options.play) * float64(f.at) / float64(length))
		percent := 100 * at.Seconds() / total.Seconds()
		fmt.Fprintf(b, "%.2f%%{transform:translateX(%spx)}\n", percent, num(p.offset(i)))
	}
	fmt.Fprintf(b, "100%%{transform:translateX(%spx)}\n}\n", num(p.offset(len(p.frames)-1)))
}

// row draws a row if none like it was drawn yet, and returns its number; 0 for an
// empty one.
func (p *picture) row(runs []screen.Run) int {
	if len(runs) == 0 {
		return 0
	}
	var b bytes.Buffer
	for _, r := range runs {
		if r.Style.Bg != "" {
			fmt.Fprintf(&b, `<rect x="%s" width="%s" height="%s" fill="%s"/>`,
				num(float64(r.Col)*cellW), num(float64(r.Width)*cellW), num(cellH), r.Style.Bg)
		}
	}
	for _, r := range runs {
		drawRun(&b, r)
	}
	key := b.String()
	if id, ok := p.ids[key]; ok {
		return id
	}
	id := len(p.ids) + 1
	p.ids[key] = id
	fmt.Fprintf(&p.defs, "<g id=\"r%d\">%s</g>\n", id, key)
	return id
}

// drawRun draws letters as text, and lines and blocks as shapes: fonts leave gaps
// between those.
func drawRun(b *bytes.Buffer, r screen.Run) {
	lines := &strokes{}
	col := r.Col
	begin, text := col, ""
	flush := func() {
		drawText(b, begin, text, r)
		text = ""
	}
	for _, c := range r.Text {
		if width := columns(r, c); isShape(c) {
			flush()
			drawShape(b, lines, shapeAt{col: col, char: c, fill: or(r.Style.Fg, screen.Foreground)})
			col += width
			begin = col
		} else {
			text += string(c)
			col += width
		}
	}
	flush()
	if d := lines.path(); d != "" {
		fmt.Fprintf(b, `<path class="l" stroke="%s"%s d="%s"/>`, or(r.Style.Fg, screen.Foreground), faint(r.Style), d)
	}
}

// columns is how wide a character of a run is. Runs with wide or combined characters
// hold no shapes in practice; there the width does not matter.
func columns(r screen.Run, c rune) int {
	if isShape(c) || r.Width == utf8.RuneCountInString(r.Text) {
		return 1
	}
	return max(1, runeWidth(c))
}

func drawText(b *bytes.Buffer, col int, text string, r screen.Run) {
	if !r.Style.Underline {
		trimmed := strings.TrimLeft(text, " ")
		col += len(text) - len(trimmed)
		text = strings.TrimRight(trimmed, " ")
	}
	if text == "" {
		return
	}
	width := 0
	for _, c := range text {
		width += columns(r, c)
	}
	fmt.Fprintf(b, `<text x="%s" y="%s"`, num(float64(col)*cellW), num(baseline))
	if width > 1 { // keeps the columns where the reader's font is wider or narrower
		fmt.Fprintf(b, ` textLength="%s"`, num(float64(width)*cellW))
	}
	if r.Style.Fg != "" {
		fmt.Fprintf(b, ` style="fill:%s"`, r.Style.Fg)
	}
	var classes []string
	if r.Style.Bold {
		classes = append(classes, "b")
	}
	if r.Style.Italic {
		classes = append(classes, "i")
	}
	if len(classes) > 0 {
		fmt.Fprintf(b, ` class="%s"`, strings.Join(classes, " "))
	}
	if r.Style.Underline {
		b.WriteString(` text-decoration="underline"`)
	}
	fmt.Fprintf(b, `%s>%s</text>`, faint(r.Style), escape(text))
}

func faint(s screen.Style) string {
	if s.Faint {
		return ` opacity=".6"`
	}
	return ""
}

func escape(s string) string {
	var b strings.Builder
	// A strings.Builder does not fail.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func num(f float64) string {
	return strconv.FormatFloat(float64(int(f*100+0.5*sign(f)))/100, 'f', -1, 64)
}

func sign(f float64) float64 {
	if f < 0 {
		return -1
	}
	return 1
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
