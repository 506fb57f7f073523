package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muntin/script/tools/cast"
)

func shell(t *testing.T, script string) options {
	t.Helper()
	return options{
		argv: []string{"sh", "-c", script}, out: filepath.Join(t.TempDir(), "a.cast"),
		cols: 40, rows: 5, hold: 50 * time.Millisecond, timeout: 20 * time.Second, grace: time.Second,
	}
}

func recorded(t *testing.T, o options) (text string, events []cast.Event) {
	t.Helper()
	f, err := os.Open(o.out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, events, err := cast.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if h.Term.Cols != 40 || h.Term.Rows != 5 {
		t.Errorf("header %+v", h)
	}
	for _, e := range events {
		if e.Code == "o" {
			text += e.Data
		}
	}
	return text, events
}

func TestStopsWhenTheScreenShowsIt(t *testing.T) {
	o := shell(t, "stty -echo; printf 'al'; printf 'l done'; read -r answer; echo secret; exit 7")
	o.until, o.keys = regexp.MustCompile("all done"), "x\r"
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if text, _ := recorded(t, o); !strings.Contains(text, "all done") || strings.Contains(text, "secret") {
		t.Errorf("recorded %q", text)
	}
}

func TestRecordsTheExit(t *testing.T) {
	o := shell(t, "stty size; exit 7")
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, events := recorded(t, o)
	if last := events[len(events)-1]; !strings.Contains(text, "5 40") || last.Code != "x" || last.Data != "7" {
		t.Errorf("recorded %q, at last %+v", text, last)
	}
}

func TestTellsWhatItSawInstead(t *testing.T) {
	for script, want := range map[string]string{
		"echo something else":               "something else",
		"trap '' HUP; echo stuck; cat; cat": "stuck",
	} {
		o := shell(t, script)
		o.until, o.timeout = regexp.MustCompile("all done"), 500*time.Millisecond
		if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", script, err)
		}
	}
}
