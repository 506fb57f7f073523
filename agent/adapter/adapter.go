// Package adapter says how the command line of an agent is started, prompted,
// watched and stopped, mostly as data. The supervisor acts on it.
package adapter

// Evidence grades how something about an agent is known, best first.
type Evidence string

// The grades of evidence.
const (
	ByProtocol   Evidence = "protocol"   // the agent said so on its link
	ByProcess    Evidence = "process"    // the system said so: its process started or ended
	ByHook       Evidence = "hook"       // a hook of the agent's ran
	ByTranscript Evidence = "transcript" // it stands in the agent's session file
	ByTerminal   Evidence = "terminal"   // it said so in a control sequence of its output
	ByScreen     Evidence = "screen"     // concluded from the terminal
	ByNone       Evidence = "none"       // nothing was seen
)
