// Package scripted is a provider that replays a conversation written in YAML: for
// demonstrations and tests. Everything around it is real; only the model is not.
//
//	version: 1
//	name: demo
//	chunk: 16               # characters a delta; 0: all at once
//	delay: 15ms             # between deltas
//	rules:
//	  - match: '(?s)^sum\b' # RE2, against the text of the user's last message; the first match wins
//	    steps:              # one a response since the user's last message
//	      - thinking: I should write the file.
//	        text: Writing it.
//	        tools:
//	          - name: write
//	            arguments: {path: lib/sum.sh, content: "..."}
//	        delay: 200ms    # before the first delta
//	        stop: length    # default: toolUse with tools, else stop
//	        usage: {input: 1200, output: 90} # default: from the lengths of the texts
//	      - error: {status: 529, message: overloaded, retry_after: 1s, times: 1}
//	        text: What comes once the error was given times times; with times 0 it always is.
//	      - text: A stream that breaks in the middle.
//	        cut: true
//	        cut_times: 1    # as times
//	steps: []               # when no rule matches
//
// Unknown keys are errors, and so are aliases and more than one document.
package scripted

import (
	"encoding/json"
	"regexp"
	"time"

	"muntin/agent/llm"
)

// A Script is a conversation to replay. It is not changed by being played.
type Script struct {
	Name  string
	Chunk int           // characters a delta; 0: all at once
	Delay time.Duration // between deltas
	Rules []Rule
	Steps []Step // when no rule matches
}

// A Rule gives the steps for prompts of a kind.
type Rule struct {
	Match *regexp.Regexp
	Steps []Step
}

// A Step is one response.
type Step struct {
	Thinking string
	Text     string
	Tools    []Tool
	Delay    time.Duration  // before the first delta
	Stop     llm.StopReason // "": by whether there are tools
	Usage    *llm.Usage     // nil: from the lengths of the texts
	Error    *Error         // given in place of the response
	Cut      bool           // the stream breaks before its end
	CutTimes int            // how often; 0: always
}

// A Tool is one tool call.
type Tool struct {
	Name      string
	Arguments json.RawMessage
}

// An Error is a failure in place of a response.
type Error struct {
	Status     int // HTTP status; 0: a broken connection
	Message    string
	RetryAfter time.Duration
	Times      int // how often before the step goes on; 0: always
}

// choose gives the step for a conversation, and its number among its steps.
func (s *Script) choose(messages []llm.Message) (step *Step, rule, index int) {
	prompt := ""
	for _, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			prompt, index = m.Text(), 0
		case llm.RoleAssistant:
			index++
		}
	}
	steps, rule := s.Steps, -1
	for i, r := range s.Rules {
		if r.Match.MatchString(prompt) {
			steps, rule = r.Steps, i
			break
		}
	}
	if index >= len(steps) {
		return nil, rule, index
	}
	return &steps[index], rule, index
}
