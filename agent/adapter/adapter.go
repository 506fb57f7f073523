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

// Confidence says how sure a conclusion from the screen is. Other evidence has
// none: it is what was said.
type Confidence string

// The grades of confidence.
const (
	// High: the adapter knows where the program's composer stands, and what was
	// seen stands at it or in its place, on a screen that stands still.
	High Confidence = "high"
	// Medium: a pattern of the adapter's fits on the last lines of a still
	// screen, or output followed what was typed, and no pattern of the adapter's
	// speaks against it.
	Medium Confidence = "medium"
	// Low: nothing is known but that the output stands still, or has come.
	Low Confidence = "low"
)
