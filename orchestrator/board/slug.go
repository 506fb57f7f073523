package board

import (
	"strconv"
	"strings"

	"muntin/internal/id"
)

// slugLength leaves room in an id for a suffix. Ids are typed by people.
const slugLength = 24

// slug makes an id from a text: its ASCII letters and digits, whole words
// where they fit, and "task" when there are none.
func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	out := ""
	for _, w := range words {
		switch {
		case out == "":
			out = w[:min(len(w), slugLength)]
		case len(out)+1+len(w) <= slugLength:
			out += "-" + w
		default:
			return out
		}
	}
	if out == "" {
		return "task"
	}
	return out
}

// freeID is a slug of the text that is not taken, with a number if need be.
func freeID(text string, taken map[string]bool) string {
	base := slug(text)
	for n, name := 2, base; ; n++ {
		if !taken[name] && id.CheckName("task", name) == nil {
			return name
		}
		name = base + "-" + strconv.Itoa(n)
	}
}
