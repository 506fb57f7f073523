// Package extension runs the extensions of the coding agent: programs in any
// language that speak JSON lines over standard input and output. The protocol is
// described in docs/extensions.md, its types are in protocol.go.
//
// What an extension registers stands in a manifest beside the program, so that
// nothing is started before it is needed. A program that crashes is started again,
// within bounds; every call has a deadline. A handler that gates something and does
// not decide, decides no: see Gate.Open for the exception.
//
// An extension has the rights that its manifest asks for where the system can
// enforce that, else those of the user: see the package sandbox.
package extension
