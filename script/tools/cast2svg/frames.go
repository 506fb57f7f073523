package main

import (
	"errors"
	"io"
	"reflect"
	"time"

	"muntin/script/tools/cast"
	"muntin/script/tools/screen"
)

// A shot is the screen from a moment on.
type shot struct {
	at   time.Duration
	rows [][]screen.Run
}

// settle is how long a program must be silent before its screen counts: a frame
// must not show half of an update.
const settle = 15 * time.Millisecond

// replay gives the screens of a recording, from the first that shows something.
func replay(term cast.Term, events []cast.Event) ([]shot, error) {
	s := screen.New(term.Cols, term.Rows, io.Discard)
	defer s.Close()
	var shots []shot
	for i, e := range events {
		if e.Code != "o" {
			continue
		}
		if _, err := s.Write([]byte(e.Data)); err != nil {
			return nil, err
		}
		if i+1 < len(events) && events[i+1].At-e.At < settle {
			continue
		}
		rows := s.Rows()
		if len(shots) == 0 && blank(rows) {
			continue
		}
		shots = append(shots, shot{e.At, rows})
	}
	if len(shots) == 0 {
		return nil, errors.New("the recording shows nothing")
	}
	return shots, nil
}

func blank(rows [][]screen.Run) bool {
	for _, row := range rows {
		if len(row) > 0 {
			return false
		}
	}
	return true
}

// choose takes at most n shots, at even distances in time, the last always; what
// looks like the shot before is left out. The times begin with 0.
func choose(shots []shot, n int) []shot {
	first, last := shots[0], shots[len(shots)-1]
	length := last.at - first.at
	picked := []shot{{0, first.rows}}
	next := 0
	for i := 1; i < n; i++ {
		at := length * time.Duration(i) / time.Duration(max(n-1, 1))
		for next+1 < len(shots) && shots[next+1].at-first.at <= at {
			next++
		}
		if !reflect.DeepEqual(shots[next].rows, picked[len(picked)-1].rows) {
			picked = append(picked, shot{at, shots[next].rows})
		}
	}
	if n == 1 {
		return []shot{{0, last.rows}}
	}
	return picked
}
