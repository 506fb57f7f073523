package adapter

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var versionNumber = regexp.MustCompile(`\d{1,9}\.\d{1,9}(\.\d{1,9})*`)

// VersionIn is the version number in what a program says of itself; empty if
// there is none.
func VersionIn(text string) string { return versionNumber.FindString(text) }

// A Range is a list of version numbers, such as "0.73, 1.6-1.9, 2": a number
// stands for all that begin with it, and two with a dash for all from the first
// to those that begin with the second.
type Range string

// Check tells what is wrong with the list. An empty one has no version in it
// that could be told of.
func (r Range) Check() error {
	for _, item := range r.items() {
		from, to, _ := strings.Cut(item, "-")
		if to == "" {
			to = from
		}
		lo, okLo := numbers(from)
		hi, okHi := numbers(to)
		if !okLo || !okHi || strings.HasSuffix(item, "-") || slices.Compare(lo, hi) > 0 {
			return fmt.Errorf("%q is no version or range of versions such as 1.2 or 1.2-1.9", item)
		}
	}
	return nil
}

// Has reports whether a version is in the list. It is true of a version that
// has no numbers, and for an empty list: nothing is known against it.
func (r Range) Has(version string) bool {
	v, ok := numbers(VersionIn(version))
	if !ok || len(r.items()) == 0 {
		return true
	}
	return slices.ContainsFunc(r.items(), func(item string) bool {
		from, to, _ := strings.Cut(item, "-")
		lo, _ := numbers(from)
		hi, _ := numbers(cmp.Or(to, from))
		return slices.Compare(v, lo) >= 0 && slices.Compare(v[:min(len(v), len(hi))], hi) <= 0
	})
}

func (r Range) items() (list []string) {
	for _, item := range strings.Split(string(r), ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

func numbers(version string) (list []int, ok bool) {
	for _, part := range strings.Split(strings.TrimSpace(version), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// Untried says that a version is one that the adapter was not tried with;
// empty if it was, or if nothing is known.
func (a Adapter) Untried(version string) string {
	if a.Versions.Has(version) {
		return ""
	}
	return fmt.Sprintf("this %s is version %s, and its adapter was tried with %s: its turns may be told wrongly", a.Name, VersionIn(version), a.Versions)
}
