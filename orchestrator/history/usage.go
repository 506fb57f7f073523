package history

import (
	"time"

	"muntin/agent/pty"
)

// Usage is what turns used.
type Usage struct {
	Turns      int           `json:"turns"`
	Time       time.Duration `json:"time"` // of turns, nanoseconds
	Input      int64         `json:"input"`
	Output     int64         `json:"output"`
	CacheRead  int64         `json:"cache_read"`
	CacheWrite int64         `json:"cache_write"`
	Cost       float64       `json:"cost"`     // US dollars, of the turns whose cost is known
	Unpriced   int           `json:"unpriced"` // turns that used tokens of unknown cost
	Untold     int           `json:"untold"`   // turns whose agent does not tell what it used
}

// Tokens are all tokens together.
func (u Usage) Tokens() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Plus adds what others used.
func (u Usage) Plus(o Usage) Usage {
	return Usage{
		Turns: u.Turns + o.Turns, Time: u.Time + o.Time, Input: u.Input + o.Input, Output: u.Output + o.Output,
		CacheRead: u.CacheRead + o.CacheRead, CacheWrite: u.CacheWrite + o.CacheWrite,
		Cost: u.Cost + o.Cost, Unpriced: u.Unpriced + o.Unpriced, Untold: u.Untold + o.Untold,
	}
}

func (u *Usage) turn(end pty.TurnEndInfo) {
	one := Usage{Turns: 1, Time: time.Duration(end.DurationMS) * time.Millisecond}
	if t := end.Usage; t == nil {
		one.Untold = 1
	} else {
		one.Input, one.Output, one.CacheRead, one.CacheWrite = int64(t.Input), int64(t.Output), int64(t.CacheRead), int64(t.CacheWrite)
		one.Cost = t.Cost
		if t.Cost == 0 && one.Tokens() > 0 {
			one.Unpriced = 1
		}
	}
	*u = u.Plus(one)
}

// UsageBy adds up what the turns of a stream used, by what key says of an
// event that ends a turn; those with an empty key are left out.
func UsageBy(events []Event, key func(Event) string) map[string]Usage {
	sums := map[string]Usage{}
	for _, e := range events {
		if e.Log == nil || e.Log.TurnEnd == nil {
			continue
		}
		if k := key(e); k != "" {
			u := sums[k]
			u.turn(*e.Log.TurnEnd)
			sums[k] = u
		}
	}
	return sums
}
