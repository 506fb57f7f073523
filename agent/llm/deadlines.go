package llm

import "time"

// Deadlines bound the silences of a response, and the response as a whole. For each, 0 means the default and
// a negative value no bound. Whatever passes one becomes a retryable error.
type Deadlines struct {
	Connect    time.Duration // until there is a connection; default 30 s
	FirstEvent time.Duration // from then to the first event; default 5 min
	Idle       time.Duration // between two events, keep-alives not counted; default 2 min
	Whole      time.Duration // from the request to the end of the response; default 1 h
}

// WithDefaults gives the deadlines with each 0 replaced by the default.
func (d Deadlines) WithDefaults() Deadlines {
	if d.Connect == 0 {
		d.Connect = 30 * time.Second
	}
	if d.FirstEvent == 0 {
		d.FirstEvent = 5 * time.Minute
	}
	if d.Idle == 0 {
		d.Idle = 2 * time.Minute
	}
	if d.Whole == 0 {
		d.Whole = time.Hour
	}
	return d
}
