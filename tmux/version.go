package tmux

import (
	"fmt"
	"strconv"
	"strings"
)

// A Version is what `tmux -V` says. Differences between versions that the
// package minds are the methods of this type.
type Version struct {
	Raw          string // "3.3a"
	Major, Minor int
}

// newest stands for builds without a number ("master").
const newest = 1 << 16

// ParseVersion reads what `tmux -V` prints or #{version} holds: "tmux 3.3a",
// "next-3.5", "3.8-rc", "master", "openbsd-7.4" (where 6.9 and later have what
// 3.2 has; the number is OpenBSD's and never tmux's).
func ParseVersion(s string) (Version, error) {
	raw := strings.TrimPrefix(strings.TrimSpace(s), "tmux ")
	v := Version{Raw: raw}
	if raw == "master" {
		v.Major = newest
		return v, nil
	}
	num, openbsd := strings.CutPrefix(raw, "openbsd-")
	num = strings.TrimPrefix(num, "next-")
	major, rest, ok := strings.Cut(num, ".")
	if !ok {
		return Version{}, fmt.Errorf("tmux version %q: no number in it", raw)
	}
	minor := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	var err error
	if v.Major, err = digits(major); err == nil {
		v.Minor, err = digits(minor)
	}
	if err != nil {
		return Version{}, fmt.Errorf("tmux version %q: %w", raw, err)
	}
	if openbsd {
		v = fromOpenBSD(v)
	}
	return v, nil
}

func digits(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 15)
	return int(n), err
}

func fromOpenBSD(v Version) Version {
	switch {
	case v.Major > 7 || v.Major == 7 && v.Minor >= 2:
		v.Major, v.Minor = 3, 3
	case v.Major == 7 || v.Major == 6 && v.Minor == 9:
		v.Major, v.Minor = 3, 2
	default:
		v.Major, v.Minor = 2, 0
	}
	return v
}

// AtLeast reports whether v is major.minor or later.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

func (v Version) String() string { return v.Raw }

// check refuses versions without what the package is built on (3.2: `-e` of
// new-session, empty panes' respawn, pane options, `source-file -`).
func (v Version) check() error {
	if v.AtLeast(3, 2) {
		return nil
	}
	return fmt.Errorf("tmux %s: %w", v.Raw, ErrTooOld)
}

// passthrough: the option allow-passthrough exists.
func (v Version) passthrough() bool { return v.AtLeast(3, 3) }

// sizesWindows: a window made by a command has the size of its session. In
// 3.2 it has that of the client that ran the command, even one without a
// terminal.
func (v Version) sizesWindows() bool { return v.AtLeast(3, 3) }

// mainShare: main-pane-width and -height take a share of the window.
func (v Version) mainShare() bool { return v.AtLeast(3, 3) }

// popupDress: display-popup takes a title and an environment.
func (v Version) popupDress() bool { return v.AtLeast(3, 3) }

// doublesBackslash: window names and pane titles are kept with every
// backslash doubled.
func (v Version) doublesBackslash() bool { return v.AtLeast(3, 7) }
