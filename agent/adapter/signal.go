package adapter

import "strings"

// A SignalKind names something that a program says of itself in the control
// sequences of its output.
type SignalKind string

// The kinds of signals, the most trusted first.
const (
	SignalStatus  SignalKind = "status"  // OSC 7501, the program status of Codex and Pi
	SignalCommand SignalKind = "command" // OSC 133, the marks around a shell's commands
	SignalTitle   SignalKind = "title"   // OSC 0 and 2
	SignalNotify  SignalKind = "notify"  // OSC 9 and OSC 777;notify
	SignalBell    SignalKind = "bell"
)

// Trust orders the kinds: a signal does not speak against one of a higher
// trust that the program has used before.
func (k SignalKind) Trust() int {
	switch k {
	case SignalStatus:
		return 4
	case SignalCommand:
		return 3
	case SignalTitle:
		return 2
	case SignalNotify, SignalBell:
		return 1
	}
	return 0
}

// A Meaning is what a signal says of the agent.
type Meaning string

// The meanings. MeansNothing is the zero value.
const (
	MeansNothing  Meaning = ""
	MeansIdle     Meaning = "idle"     // it takes prompts
	MeansWorking  Meaning = "working"  // a turn runs
	MeansDone     Meaning = "done"     // a turn has ended
	MeansError    Meaning = "error"    // a turn has ended with an error
	MeansApproval Meaning = "approval" // it waits for a person's yes or no
	MeansQuestion Meaning = "question" // it waits for a person's answer
	MeansLimit    Meaning = "limit"    // its provider takes no more for now
)

// A Rule gives a meaning to a kind of signal whose text holds Has. An empty Has
// fits every text.
type Rule struct {
	Signal SignalKind
	Has    string
	Means  Meaning
}

// Means is what a signal of that kind says for this adapter. A status says it
// by itself ("working", "blocked:permission" and so on, see
// docs/protocol.md); the marks of OSC 133 count for shells only, because other
// programs put them around what they like; the rest needs a rule, the first
// that fits.
func (a Adapter) Means(kind SignalKind, text string) Meaning {
	switch kind {
	case SignalStatus:
		return statusMeans(text)
	case SignalCommand:
		if !a.Foreground {
			return MeansNothing
		}
		return commandMeans(text)
	case SignalTitle, SignalNotify, SignalBell:
	}
	for _, r := range a.Rules {
		if r.Signal == kind && strings.Contains(text, r.Has) {
			return r.Means
		}
	}
	return MeansNothing
}

// statusMeans reads "<state>" or "blocked:<kind>" of OSC 7501.
func statusMeans(text string) Meaning {
	state, kind, _ := strings.Cut(text, ":")
	switch state {
	case "idle":
		return MeansIdle
	case "working":
		return MeansWorking
	case "done":
		return MeansDone
	case "error":
		return MeansError
	case "blocked":
		if kind == "question" || kind == "input" {
			return MeansQuestion
		}
		return MeansApproval
	}
	return MeansNothing
}

// commandMeans reads the mark of OSC 133: C begins a command's output, D ends
// it with its exit status.
func commandMeans(text string) Meaning {
	mark, status, _ := strings.Cut(text, ";")
	switch mark {
	case "C":
		return MeansWorking
	case "D":
		if status != "" && status != "0" {
			return MeansError
		}
		return MeansDone
	}
	return MeansNothing
}
