package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Deadlines bound the silences of a response, and the response as a whole. For each, 0 means the default and
// a negative value no bound. Whatever passes one becomes a retryable error.
//
// The JSON has a text for each: {"connect":"10s","firstEvent":"10m","idle":"none","whole":"2h"}.
type Deadlines struct {
	Connect    time.Duration // until there is a connection; default 30 s
	FirstEvent time.Duration // from then to the first event; default 5 min
	Idle       time.Duration // between two events, keep-alives not counted; default 2 min
	Whole      time.Duration // from the request to the end of the response; default 1 h
}

// WithDefaults gives the deadlines with each 0 replaced by the default.
func (d Deadlines) WithDefaults() Deadlines {
	return d.Over(Deadlines{Connect: 30 * time.Second, FirstEvent: 5 * time.Minute, Idle: 2 * time.Minute, Whole: time.Hour})
}

// Over gives the deadlines with each 0 replaced by that of base.
func (d Deadlines) Over(base Deadlines) Deadlines {
	for name, to := range d.fields() {
		if *to == 0 {
			*to = *base.fields()[name]
		}
	}
	return d
}

func (d *Deadlines) fields() map[string]*time.Duration {
	return map[string]*time.Duration{"connect": &d.Connect, "firstEvent": &d.FirstEvent, "idle": &d.Idle, "whole": &d.Whole}
}

// ParseDeadlines reads a list such as "connect=10s,firstEvent=10m,idle=none". A
// name that is not in it keeps 0.
func ParseDeadlines(text string) (Deadlines, error) {
	var d Deadlines
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if err := d.set(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return Deadlines{}, err
		}
	}
	return d, nil
}

func (d *Deadlines) set(name, value string) error {
	to, ok := d.fields()[name]
	if !ok {
		return fmt.Errorf("the deadline %q is not known: want connect, firstEvent, idle or whole", name)
	}
	if value == "none" {
		*to = -1
		return nil
	}
	limit, err := time.ParseDuration(value)
	if err != nil || limit <= 0 {
		return fmt.Errorf("the deadline %s=%q: want a time such as 90s or 10m, or none", name, value)
	}
	*to = limit
	return nil
}

// UnmarshalJSON sets the deadlines that the object has, and leaves the others.
func (d *Deadlines) UnmarshalJSON(data []byte) error {
	var values map[string]string
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("deadlines: want an object of texts such as \"90s\": %w", err)
	}
	for name, value := range values {
		if err := d.set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// MarshalJSON leaves out what has the default.
func (d Deadlines) MarshalJSON() ([]byte, error) {
	values := map[string]string{}
	for name, limit := range d.fields() {
		switch {
		case *limit < 0:
			values[name] = "none"
		case *limit > 0:
			values[name] = limit.String()
		}
	}
	return json.Marshal(values)
}
