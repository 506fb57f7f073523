package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// arms says where the lines of a box-drawing character go from its centre. Heavy and
// double lines are drawn like light ones, round corners like square ones.
func arms(c rune) (up, right, down, left bool) {
	in := func(set string) bool { return strings.ContainsRune(set, c) }
	up = in("│┃║└┘├┤┴┼┗┛┣┫┻╋╚╝╠╣╩╬╰╯╵╹")
	down = in("│┃║┌┐├┤┬┼┏┓┣┫┳╋╔╗╠╣╦╬╭╮╷╻")
	left = in("─━═┐┘┤┬┴┼┓┛┫┳┻╋╗╝╣╦╩╬╮╯╴╸")
	right = in("─━═┌└├┬┴┼┏┗┣┳┻╋╔╚╠╦╩╬╭╰╶╺")
	return up, right, down, left
}

func isLine(c rune) bool {
	up, right, down, left := arms(c)
	return up || right || down || left
}

func isShape(c rune) bool {
	return c >= 0x2580 && c <= 0x2593 || isLine(c)
}

type shapeAt struct {
	col  int
	char rune
	fill string
}

func drawShape(b *bytes.Buffer, lines *strokes, s shapeAt) {
	if isLine(s.char) {
		lines.add(s.col, s.char)
		return
	}
	x, y, w, h, opacity := block(s.char)
	fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"`,
		num((float64(s.col)+x)*cellW), num(y*cellH), num(w*cellW), num(h*cellH), s.fill)
	if opacity < 1 {
		fmt.Fprintf(b, ` opacity="%s"`, num(opacity))
	}
	b.WriteString("/>")
}

// block is the part of the cell, in fractions of it, that a block element of
// U+2580 to U+2593 covers.
func block(c rune) (x, y, w, h, opacity float64) {
	switch {
	case c == 0x2580: // upper half
		return 0, 0, 1, .5, 1
	case c <= 0x2588: // lower eighths
		part := float64(c-0x2580) / 8
		return 0, 1 - part, 1, part, 1
	case c <= 0x258f: // left eighths
		return 0, 0, float64(0x2590-c) / 8, 1, 1
	case c == 0x2590: // right half
		return .5, 0, .5, 1, 1
	default: // shades
		return 0, 0, 1, 1, float64(c-0x2590) / 4
	}
}

// strokes collects the lines of a run; level pieces that touch become one.
type strokes struct {
	level    [][2]float64 // from, to
	vertical strings.Builder
}

func (s *strokes) add(col int, c rune) {
	up, right, down, left := arms(c)
	x, mid := float64(col)*cellW, float64(col)*cellW+cellW/2
	if left || right {
		from, to := mid, mid
		if left {
			from = x
		}
		if right {
			to = x + cellW
		}
		if n := len(s.level); n > 0 && from-s.level[n-1][1] < .01 {
			s.level[n-1][1] = to
		} else {
			s.level = append(s.level, [2]float64{from, to})
		}
	}
	if up || down {
		from, to := cellH/2, cellH/2
		if up {
			from = 0
		}
		if down {
			to = cellH
		}
		fmt.Fprintf(&s.vertical, "M%s %sV%s", num(mid), num(from), num(to))
	}
}

func (s *strokes) path() string {
	var b strings.Builder
	for _, piece := range s.level {
		fmt.Fprintf(&b, "M%s %sH%s", num(piece[0]), num(cellH/2), num(piece[1]))
	}
	return b.String() + s.vertical.String()
}

func runeWidth(c rune) int {
	return ansi.StringWidth(string(c))
}
