package llm

import "time"

// Deadlines bound the silences of a response. For each, 0 means the default and
// a negative value no bound. Whatever passes one becomes a retryable error.
type Deadlines struct {
	Connect    time.Duration // until there is a connection; default 30 s
	FirstEvent time.Duration // from then to the first event; default 5 min
	Idle       time.Duration // between two events, keep-alives not counted; default 2 min
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
	return d
}
