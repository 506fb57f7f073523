package recipes

import (
	"math"
	"strconv"
	"strings"
)

// A unit is what a size may end in.
type unit struct {
	name  string
	bytes int64
}

// units are the units of sizes, in the order in which formatSize tries them.
func units() []unit {
	return []unit{
		{"TiB", 1 << 40},
		{"TB", 1e12},
		{"GiB", 1 << 30},
		{"GB", 1e9},
		{"MiB", 1 << 20},
		{"MB", 1e6},
		{"KiB", 1 << 10},
		{"KB", 1e3},
		{"B", 1},
	}
}

// parseSize reads a whole number with a unit, in any case.
func parseSize(s string) (bytes int64, ok bool) {
	digits := strings.TrimRight(s, "KMGTiBkmgtIb ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	name := strings.TrimSpace(s[len(digits):])
	for _, u := range units() {
		if strings.EqualFold(name, u.name) {
			return n * u.bytes, n <= math.MaxInt64/u.bytes
		}
	}
	return 0, false
}

// formatSize is what parseSize reads back to the same.
func formatSize(n int64) string {
	for _, u := range units() {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
