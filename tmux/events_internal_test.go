package tmux

import (
	"errors"
	"testing"
)

// Whoever does not take events loses them, and is told; nobody else does.
func TestSlowConsumerIsToldToResync(t *testing.T) {
	t.Parallel()
	h := newHub(nil, Epoch{}, nil)
	slow, err := h.subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	quick, err := h.subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2*eventQueue + 10 {
		h.publish(Event{Kind: EventLayout, Window: WindowID(rune('a' + i%26))})
		if e := <-quick; e.Kind != EventLayout {
			t.Fatalf("the quick one got %v", e)
		}
	}
	h.publish(Event{Kind: EventServerGone, Err: errors.New("x")})
	h.end()
	var kinds []EventKind
	for e := range slow {
		kinds = append(kinds, e.Kind)
	}
	if len(kinds) < 2 || kinds[0] != EventResync || kinds[len(kinds)-1] != EventServerGone {
		t.Errorf("the slow one got %v", kinds)
	}
}

// A death without its status is held back, and told without it when none comes.
func TestCompare(t *testing.T) {
	t.Parallel()
	h := newHub(nil, Epoch{}, nil)
	ch, err := h.subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alive, dead := Pane{PID: 1}, Pane{PID: 1, Dead: true}
	h.compare(Pane{}, alive, false)
	h.compare(alive, dead, true)
	h.compare(dead, dead, true)
	h.compare(dead, alive, true)
	h.compare(dead, Pane{PID: 2, Dead: true}, true)
	h.compare(Pane{}, dead, false)
	h.end()
	var kinds []EventKind
	for e := range ch {
		kinds = append(kinds, e.Kind)
	}
	want := []EventKind{EventAdded, EventDied, EventRespawned, EventRespawned, EventDied, EventAdded, EventDied}
	if len(kinds) != len(want) {
		t.Fatalf("%v, want %v", kinds, want)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("%v, want %v", kinds, want)
		}
	}
}
