package board

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	parse := func(s string) *Board {
		b, err := Parse([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	old := parse("- [ ] a #x ^a\n- [ ] b ^b\n  notes\n- [ ] gone ^c\n- [ ] no id\n")
	now := parse("- [!] a #x @ada ^a\n  Blocked: why\n- [ ] better b ^b\n- [ ] no name\n- [ ] new ^d\n")
	want := []Change{
		{"a", Marked, "open", "blocked"}, {"a", Tagged, "#x", "@ada #x"}, {"a", Noted, "", "Blocked: why"},
		{"b", Worded, "b", "better b"}, {"b", Noted, "notes", ""},
		{"d", Added, "", "[ ] new ^d"}, {"c", Removed, "[ ] gone ^c", ""},
	}
	if got := Changes(old, now); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := Changes(old, old); got != nil {
		t.Errorf("without a difference: %v", got)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	f := keptFile(t, "- [ ] a ^a\n")
	f.Log = filepath.Join(filepath.Dir(f.LockPath), "log.jsonl")
	ada := f
	ada.By, ada.Who = Agent, "ada"
	ada.mustUpdate(t, func(b *Board) error { return b.SetState("a", Claimed) })
	stale := "- [ ] a ^a\n- [ ] b ^b\n"
	save(t, f, strings.Replace(stale, "[ ] a", "[ ] all of a", 1))
	ada.mustUpdate(t, func(b *Board) error { return b.SetState("a", Done) })
	got, err := f.History("a")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		who string
		by  Author
		c   Change
	}
	var rows []row
	for _, r := range got {
		for _, c := range r.Changes {
			rows = append(rows, row{r.Who, r.By, c})
		}
		if r.Time.IsZero() {
			t.Error("a record without a time")
		}
	}
	want := []row{
		{"ada", Agent, Change{"a", Marked, "open", "claimed"}},
		{"", Person, Change{"a", Worded, "a", "all of a"}},
		{"ada", Agent, Change{"a", Marked, "claimed", "done"}},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got  %v\nwant %v", rows, want)
	}
	if all, err := f.History(""); err != nil || len(all) != 3 {
		t.Errorf("%d records, %v", len(all), err)
	}
}
