package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"muntin/internal/durable"
)

// follow starts a tail whose lines come on the channel.
func follow(t *testing.T) (*Tail, <-chan Line) {
	t.Helper()
	lines := make(chan Line, 10_000)
	tail, err := Follow(t.Context(), Options{Resync: -1}, func(l Line) error {
		l.Data = append([]byte(nil), l.Data...)
		lines <- l
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tail.Close(); err != nil {
			t.Error(err)
		}
	})
	return tail, lines
}

func receive(t *testing.T, lines <-chan Line) Line {
	t.Helper()
	select {
	case l := <-lines:
		return l
	case <-time.After(patience):
		t.Fatal("no line")
		return Line{}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestTailMany lets several writers append to logs that come later, and wants
// every line once and in order.
func TestTailMany(t *testing.T) {
	t.Parallel()
	const logs, count = 5, 200
	dir := t.TempDir()
	tail, lines := follow(t)
	var writers sync.WaitGroup
	for i := range logs {
		path := filepath.Join(dir, fmt.Sprint("agent", i), "events.jsonl")
		if i%2 == 0 {
			if err := tail.Add(path, 0); err != nil {
				t.Fatal(err)
			}
		}
		writers.Go(func() {
			log, err := durable.OpenLog(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer log.Close()
			for n := range count {
				if err := log.Append(n); err != nil {
					t.Error(err)
				}
			}
		})
		if i%2 == 1 {
			if err := tail.Add(path, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := map[string]int{}
	for range logs * count {
		l := receive(t, lines)
		var n int
		if err := json.Unmarshal(l.Data, &n); err != nil || n != next[l.Path] {
			t.Fatalf("%s: line %q, want %d", l.Path, l.Data, next[l.Path])
		}
		next[l.Path]++
	}
	writers.Wait()
	if len(lines) > 0 {
		t.Errorf("%d lines too many", len(lines))
	}
}

func TestTailPartialLineAndOffset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	appendTo(t, path, "one\ntwo\nthr")
	tail, lines := follow(t)
	if err := tail.Add(path, 4); err != nil {
		t.Fatal(err)
	}
	if l := receive(t, lines); string(l.Data) != "two" || l.Next != 8 || l.Path != path {
		t.Errorf("line %q, next %d", l.Data, l.Next)
	}
	appendTo(t, path, "ee\nfour\n")
	if l := receive(t, lines); string(l.Data) != "three" {
		t.Errorf("line %q", l.Data)
	}
	if l := receive(t, lines); string(l.Data) != "four" || l.Next != 19 {
		t.Errorf("line %q, next %d", l.Data, l.Next)
	}
	if err := tail.Add(path, 0); err != nil {
		t.Fatal(err)
	}
	if l := receive(t, lines); string(l.Data) != "one" {
		t.Errorf("added again: line %q", l.Data)
	}
}

func TestTailShrunk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad, good := filepath.Join(dir, "bad"), filepath.Join(dir, "good")
	appendTo(t, bad, "one\ntwo\n")
	tail, lines := follow(t)
	for _, path := range []string{bad, good} {
		if err := tail.Add(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	receive(t, lines)
	receive(t, lines)
	if err := os.Truncate(bad, 4); err != nil {
		t.Fatal(err)
	}
	if l := receive(t, lines); l.Path != bad || !errors.Is(l.Err, ErrShrunk) {
		t.Errorf("line %+v", l)
	}
	appendTo(t, good, "still\n")
	if l := receive(t, lines); string(l.Data) != "still" {
		t.Errorf("line %+v", l)
	}
}

func TestTailEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	appendTo(t, path, "one\ntwo\n")
	enough := errors.New("enough")
	tail, err := Follow(t.Context(), Options{}, func(Line) error { return enough })
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Add(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := tail.Wait(); !errors.Is(err, enough) {
		t.Errorf("Wait = %v", err)
	}
	if err := tail.Add(path, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("Add after the end: %v", err)
	}
	if err := tail.Close(); !errors.Is(err, enough) {
		t.Errorf("Close = %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	tail, err = Follow(ctx, Options{}, func(Line) error { cancel(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Add(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := tail.Wait(); err != nil {
		t.Errorf("Wait after the context's end: %v", err)
	}
}
