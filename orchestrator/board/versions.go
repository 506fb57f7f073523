package board

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muntin/internal/durable"
)

const (
	keepVersions = 40        // texts kept of one board
	fewVersions  = 10        // looked at when the text is long
	longText     = 512 << 10 // bytes
	believe      = 2         // versions between which a text counts as saved twice in a row
)

// stale marks a version that somebody saved from an old text; what was added since
// was put back. Saved twice in a row, the same text is believed.
const stale Author = "stale"

// A version is a text that the board had. The newest one is the text that muntin
// knows of.
type version struct {
	seq     int
	by      Author
	sum     string
	path    string
	pending bool // it may not stand in the file: whoever wrote it has died, or is at it
}

// notYet ends the name of a version that is about to be written.
const notYet = ".new"

// versions lists the kept texts, the oldest first. Files with other names are
// not ours and left alone.
func (f File) versions() ([]version, error) {
	if f.Versions == "" {
		return nil, nil
	}
	list, err := os.ReadDir(f.Versions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the board's kept versions: %w", err)
	}
	var out []version
	for _, item := range list {
		name, pending := strings.CutSuffix(item.Name(), notYet)
		parts := strings.Split(strings.TrimSuffix(name, ".md"), "-")
		if len(parts) != 3 {
			continue
		}
		seq, err := strconv.Atoi(parts[0])
		if err != nil {
			continue
		}
		out = append(out, version{
			seq: seq, by: Author(parts[1]), sum: parts[2], path: filepath.Join(f.Versions, item.Name()), pending: pending,
		})
	}
	slices.SortFunc(out, func(a, b version) int { return a.seq - b.seq })
	return out, nil
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// read gives the text; ok is false when the file is not what it was kept as.
func (v version) read() (text []byte, ok bool) {
	text, err := os.ReadFile(v.path)
	return text, err == nil && sumOf(text) == v.sum
}

// keep adds a text as the newest version and lets go of the oldest.
func (f File) keep(all []version, text []byte, by Author) ([]version, error) {
	return f.keepAs(all, text, version{by: by})
}

func (f File) keepAs(all []version, text []byte, v version) ([]version, error) {
	if f.Versions == "" {
		return nil, nil
	}
	v.seq, v.sum = 1, sumOf(text)
	if n := len(all); n > 0 {
		if all[n-1].sum == v.sum && v.by != stale {
			return all, nil
		}
		v.seq = all[n-1].seq + 1
	}
	if err := os.MkdirAll(f.Versions, 0o700); err != nil {
		return all, fmt.Errorf("keeping a version of the board: %w", err)
	}
	v.path = filepath.Join(f.Versions, fmt.Sprintf("%08d-%s-%s.md", v.seq, v.by, v.sum))
	if v.pending {
		v.path += notYet
	}
	if err := durable.WriteFile(v.path, text, 0o600); err != nil {
		return all, fmt.Errorf("keeping a version of the board: %w", err)
	}
	all = append(all, v)
	for len(all) > keepVersions {
		if err := os.Remove(all[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return all, fmt.Errorf("letting go of an old version of the board: %w", err)
		}
		all = all[1:]
	}
	return all, nil
}

// written takes note that the newest version stands in the file.
func (f File) written(all []version) error {
	if len(all) == 0 || !all[len(all)-1].pending {
		return nil
	}
	v := &all[len(all)-1]
	path := strings.TrimSuffix(v.path, notYet)
	if err := os.Rename(v.path, path); err != nil {
		return fmt.Errorf("keeping a version of the board: %w", err)
	}
	v.path, v.pending = path, false
	return nil
}

// origin finds the kept version that a text most likely started from: the one
// that is most like it, the newest of several. newest tells that it
// is the last one, so that nothing was missed. The list is not empty.
func origin(all []version, text []byte) (base []byte, from int) {
	last := len(all) - 1
	first := 0
	if len(text) > longText {
		first = max(0, last-fewVersions+1)
	}
	sum := sumOf(text)
	for _, v := range all[max(0, last-believe):] {
		if v.sum == sum && v.by == stale {
			return text, last // said twice in a row: it is meant
		}
	}
	mine := looksOf(text)
	best, found := likeness{}, false
	from = last
	for i := last; i >= first; i-- {
		kept, ok := all[i].read()
		if !ok {
			continue
		}
		if d := mine.compare(looksOf(kept)); !found || d.less(best) {
			best, found, base, from = d, true, kept, i
		}
	}
	return base, from
}

// looks is what a text is compared by: its tasks and its other lines.
type looks struct {
	tasks map[string]string // the line of each task, by its id
	lines map[string]int    // how often each other line is there
}

func looksOf(text []byte) looks {
	f := looks{map[string]string{}, map[string]int{}}
	for l := range strings.Lines(string(text)) {
		l = strings.Trim(l, " \t\r\n")
		i := strings.LastIndexByte(l, '^')
		if i <= 0 || !isBlank(l[i-1]) || strings.ContainsAny(l[i:], " \t") {
			f.lines[l]++
			continue
		}
		f.tasks[l[i:]] = l
	}
	return f
}

// A likeness says how far a text is from an older one that it may come from. Few
// people take things away, and nobody makes up an id that muntin will give later:
// what is gone counts before what is new. Where the guess is wrong, something comes
// back that was deleted, and nothing is lost.
type likeness struct{ gone, new int }

func (l likeness) less(o likeness) bool {
	return l.gone < o.gone || l.gone == o.gone && l.new < o.new
}

func (f looks) compare(old looks) likeness {
	var d likeness
	for id, was := range old.tasks {
		now, ok := f.tasks[id]
		switch {
		case !ok || open(now) && !open(was):
			d.gone++
		case now != was:
			d.new++
		}
	}
	for id := range f.tasks {
		if _, ok := old.tasks[id]; !ok {
			d.gone++ // it cannot come from a text without it
		}
	}
	for l, n := range old.lines {
		d.gone += max(0, n-f.lines[l])
	}
	for l, n := range f.lines {
		d.new += max(0, n-old.lines[l])
	}
	return d
}

// open reports whether nothing was done about a task yet.
func open(line string) bool { return strings.Contains(line, "[ ] ") }

// since is who wrote what came after a version: a person as soon as one of them did.
func since(all []version, from int) Author {
	for _, v := range all[from+1:] {
		if v.by != Agent {
			return Person
		}
	}
	return Agent
}
