package orchestrator

import (
	"strings"
	"time"

	"muntin/agent/pty"
)

// A TroubleKind says what keeps an agent from its work.
type TroubleKind string

// What can keep an agent. All but restarting and limited need a person.
const (
	TroubleAsks       TroubleKind = "waiting" // for an answer in its pane
	TroubleStalled    TroubleKind = "stalled"
	TroubleLimited    TroubleKind = "limited"
	TroubleBudget     TroubleKind = "budget"
	TroubleRestarting TroubleKind = "restarting"
	TroubleGivenUp    TroubleKind = "given-up"
)

// A Trouble is what keeps an agent, and until when where that is known.
type Trouble struct {
	Kind  TroubleKind `json:"kind"`
	Why   string      `json:"why,omitempty"`
	Until string      `json:"until,omitempty"` // RFC 3339
}

// NeedsPerson tells whether the trouble does not go by itself.
func (t Trouble) NeedsPerson() bool {
	return t.Kind != TroubleRestarting && t.Kind != TroubleLimited && t.Kind != ""
}

// Troubles are those of the run's agents, by name; nil if there are none.
func (s State) Troubles() map[string]Trouble {
	var list map[string]Trouble
	for _, name := range s.Order {
		if t := s.Trouble(s.Agents[name]); t.Kind != "" {
			if list == nil {
				list = map[string]Trouble{}
			}
			list[name] = t
		}
	}
	return list
}

// Trouble is what keeps an agent; its Kind is empty if nothing does.
func (s State) Trouble(a Agent) Trouble {
	until := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case !a.Restart.At.IsZero():
		return Trouble{Kind: TroubleRestarting, Why: a.Note, Until: until(a.Restart.At)}
	case a.Restart.Key != "":
		return Trouble{Kind: TroubleRestarting, Why: a.Note}
	case a.Restart.Gone && a.Restart.Policy != RestartNever && a.Restart.Count >= a.Restart.Most:
		return Trouble{Kind: TroubleGivenUp, Why: a.Note}
	case a.State == pty.AgentExited || a.State == pty.AgentUnknown:
		return Trouble{}
	case a.Asks != nil:
		return Trouble{Kind: TroubleAsks, Why: firstLine(a.Asks.Text)}
	case a.Pause.on():
		return Trouble{Kind: TroubleLimited, Why: firstLine(a.Pause.Text), Until: until(a.Pause.Until)}
	case a.Silence.Stalled:
		return Trouble{Kind: TroubleStalled, Why: "silent since " + a.Silence.Heard.Format("15:04 MST")}
	}
	if why := s.Over(a); why != "" {
		return Trouble{Kind: TroubleBudget, Why: strings.TrimPrefix(why, budgetPrefix)}
	}
	return Trouble{}
}
