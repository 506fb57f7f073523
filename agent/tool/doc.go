package tool

import (
	"sort"
	"strings"
)

// A doc is a file's content with all line ends as LF, and the way back to the
// bytes of the file.
type doc struct {
	view
	orig string
	crlf []int // where in view.text the LF stands for CRLF, in order
	lf   bool  // the file has an LF at all
}

func newDoc(orig string) *doc {
	d := &doc{orig: orig, lf: strings.Contains(orig, "\n")}
	for from, removed := 0, 0; ; {
		i := strings.Index(orig[from:], "\r\n")
		if i < 0 {
			break
		}
		d.crlf = append(d.crlf, from+i-removed)
		removed++
		from += i + 2
	}
	d.text = toLF(orig)
	d.starts = lineStarts(d.text)
	return d
}

// offset turns a place in the text into one in the file.
func (d *doc) offset(at int) int { return at + sort.SearchInts(d.crlf, at) }

// splice puts the spans, which are in order and do not overlap, into the file.
func (d *doc) splice(spans []span) string {
	var b strings.Builder
	from := 0
	for _, s := range spans {
		b.WriteString(d.orig[from:d.offset(s.start)])
		text := s.text
		if end := d.ending(s.start); end != "\n" {
			text = strings.ReplaceAll(text, "\n", end)
		}
		b.WriteString(text)
		from = d.offset(s.end)
	}
	b.WriteString(d.orig[from:])
	return b.String()
}

// ending is the line end of the line that at lies in; of the line before, when
// the last line has none. A lone CR counts only in files without any LF.
func (d *doc) ending(at int) string {
	nl := strings.IndexByte(d.text[at:], '\n')
	if nl >= 0 {
		nl += at
	} else if nl = strings.LastIndexByte(d.text[:at], '\n'); nl < 0 {
		return "\n"
	}
	if i := sort.SearchInts(d.crlf, nl); i < len(d.crlf) && d.crlf[i] == nl {
		return "\r\n"
	}
	if !d.lf {
		return "\r"
	}
	return "\n"
}
