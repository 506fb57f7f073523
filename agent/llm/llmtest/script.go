// Package llmtest helps to test what talks to models: a loopback server that
// speaks the wire formats of the APIs, well-behaved or not, and a suite of tests
// that every llm.Provider passes.
package llmtest

import (
	"muntin/agent/llm"
)

// A Script is what a model answers, request by request.
type Script struct {
	Replies []Reply

	// Choose, when it is set, gives the reply in place of Replies. n counts the
	// requests from 0. It may be called from several goroutines.
	Choose func(n int, r Request) Reply
}

// A Reply is one answer.
type Reply struct {
	Thinking string
	Text     string
	Tools    []ToolCall
	Stop     llm.StopReason // "": by whether there are tools
	Usage    *llm.Usage     // nil: none is sent

	Fail *Failure // in place of an answer

	// How the answer breaks, after its content. At most one is set.
	Cut         bool   // the connection is dropped
	NoFinish    bool   // the stream ends cleanly, without a finish reason
	StreamError string // an error object with this message
	Hold        bool   // nothing more comes until the client goes away or the server is closed

	Wire Wire
}

// A ToolCall is one call of an answer. Arguments is sent as it is, also when it is
// not JSON.
type ToolCall struct {
	ID, Name, Arguments string
}

// A Failure is an answer with an HTTP error.
type Failure struct {
	Status     int
	Message    string
	RetryAfter string // the header's value
	Headers    map[string]string
	Body       string // "": an error object with Message
}

// A Wire says how the bytes of an answer look. The zero value is a good server.
type Wire struct {
	CRLF     bool // lines end with CRLF
	Comments bool // keep-alive comments between the events
	Split    int  // text and arguments come in pieces of so many bytes, but whole characters; 0: whole
	Flush    int  // the network gets so many bytes at a time (1 splits UTF-8); 0: an event at a time
	Parallel bool // the pieces of the tool calls take turns
	NoDone   bool // the end mark of Chat Completions is left out
}
