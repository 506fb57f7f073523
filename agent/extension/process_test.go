package extension

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// stub counts what a program said.
type stub struct{ events, garbled int }

func (s *stub) said(string, json.RawMessage)         { s.events++ }
func (s *stub) ask(context.Context, Question) Answer { return Answer{} }
func (s *stub) garbage(string)                       { s.garbled++ }
func (s *stub) died(*process, error)                 {}

func reading(t testing.TB) (reader, *stub) {
	s := &stub{}
	p := &process{peer: s, out: make(chan []byte, maxQueue), ready: make(chan struct{}), calls: map[int64]*call{}}
	return reader{t.Context(), p}, s
}

func TestLinesMayComeInPieces(t *testing.T) {
	t.Parallel()
	r, s := reading(t)
	text := "{\"type\":\"event\",\"method\":\"x\"}\r\n\n{\"type\":\"event\",\"method\":\"y\"}\nnot a frame\nnor this\n{\"type\":\"ready\",\"params\":{\"protocol\":1}}\n{\"type\""
	for _, b := range []byte(text) {
		if n, err := r.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if s.events != 2 || s.garbled != 1 || r.p.hello.Protocol != 1 || string(r.p.partial) != `{"type"` {
		t.Errorf("%+v, %q", s, r.p.partial)
	}
}

func TestALineWithoutAnEndIsDropped(t *testing.T) {
	t.Parallel()
	r, s := reading(t)
	big := []byte(strings.Repeat("x", 1<<20))
	for range 40 {
		if _, err := r.Write(big); err != nil {
			t.Fatal(err)
		}
		if len(r.p.partial) > maxLine {
			t.Fatal("it is all kept")
		}
	}
	if _, err := r.Write([]byte("\n{\"type\":\"event\",\"method\":\"x\"}\n")); err != nil || s.events != 1 || s.garbled != 1 {
		t.Errorf("%v, %+v", err, s)
	}
}

func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"", "{}\n", "null\n", "{\"type\":\"ready\",\"params\":[]}\n", "{\"type\":\"response\",\"id\":1,\"result\":{}}\n", "{\"type\":\"update\",\"id\":1}\n",
		"{\"type\":\"request\",\"id\":2,\"method\":\"ask\",\"params\":{\"kind\":\"confirm\"}}\n", "{\"type\":\"request\",\"id\":-1}\n", "\x00\xff\n", "{\"type\":1e9}\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		r, _ := reading(t)
		r.p.calls[1] = &call{done: make(chan Frame, 1), signal: make(chan struct{}, 1)}
		cut = max(0, min(cut, len(data)))
		for _, piece := range [][]byte{data[:cut], data[cut:], []byte("\n")} {
			if n, err := r.Write(piece); err != nil || n != len(piece) {
				t.Fatal(n, err)
			}
		}
		r.p.work.Wait()
	})
}
