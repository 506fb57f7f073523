package history

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Cursor is how far the sources of a run's stream were read: the position in
// each. The zero Cursor is the beginning.
type Cursor map[string]int64

// Pass moves the cursor behind an event. Events must be passed in the order of
// the stream.
func (c Cursor) Pass(e Event) { c[e.Source] = e.next }

// String writes the cursor in one word, as ParseCursor reads it.
func (c Cursor) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, name+"="+strconv.FormatInt(c[name], 10))
	}
	return strings.Join(parts, ",")
}

// ParseCursor reads what String wrote. An empty text is the beginning.
func ParseCursor(text string) (Cursor, error) {
	c := Cursor{}
	if text == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, at, ok := strings.Cut(part, "=")
		n, err := strconv.ParseInt(at, 10, 64)
		if _, twice := c[name]; !ok || err != nil || n < 0 || name == "" || twice {
			return nil, fmt.Errorf("%q is no cursor: want source=number,… as --json prints it", text)
		}
		c[name] = n
	}
	return c, nil
}
