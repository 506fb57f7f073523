// Package orchestrator runs a fleet: it gives the board's tasks to agents,
// checks what they say is done, merges it, and writes the result on the board.
//
// The deciding is a pure function, Reduce: a state and one input make the next
// state and a list of effects. The Loop feeds it: every input is journalled
// before it is reduced and every effect before it is carried out, and what an
// effect gave comes back as an input. So the state of a run is its journal
// folded through Reduce, and a killed orchestrator goes on where it stopped:
// effects that were journalled without a result are carried out again, which
// each of them allows.
package orchestrator
