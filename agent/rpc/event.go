package rpc

import (
	"encoding/json"
	"errors"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/agent/session"
)

// An encoder makes events as Pi's JSON and RPC modes give them. It is for the
// events of one agent, in their order.
type encoder struct {
	usage llm.Usage // of the response that is streamed, as far as it is known
}

// object is one JSON object; its keys are sorted when it is written.
type object = map[string]any

// encode gives the object of an event.
func (enc *encoder) encode(e agent.Event) (object, error) {
	o := object{"type": e.Type}
	switch e.Type {
	case agent.EventMessageStart, agent.EventMessageEnd:
		return o, enc.message(o, e)
	case agent.EventMessageUpdate:
		o["usage"], o["assistantMessageEvent"] = enc.usage, delta(*e.Stream)
	case agent.EventToolStart:
		o["toolCallId"], o["toolName"], o["args"] = e.ToolCallID, e.ToolName, e.Args
	case agent.EventToolUpdate:
		o["toolCallId"], o["toolName"], o["args"], o["partialResult"] = e.ToolCallID, e.ToolName, e.Args, result(*e.Partial)
	case agent.EventToolEnd:
		o["toolCallId"], o["toolName"], o["result"] = e.ToolCallID, e.ToolName, result(*e.Result)
		o["isError"], o["durationMs"] = e.IsError, e.DurationMS
	case agent.EventTurnEnd:
		results, err := messages(e.ToolResults)
		if err != nil {
			return nil, err
		}
		o["toolResults"] = results
		return o, enc.message(o, e)
	case agent.EventAgentEnd:
		added, err := messages(e.Messages)
		o["messages"], o["willRetry"] = added, e.WillRetry
		return o, err
	case agent.EventSettled:
		o["aborted"] = e.Aborted
		if e.Error != "" {
			o["errorMessage"] = e.Error
		}
	case agent.EventQueue:
		o["steering"], o["followUp"] = list(e.Steering), list(e.FollowUp)
	default:
		enc.around(o, e)
	}
	return o, nil
}

// around fills in the events that lie around the turns of a run.
func (enc *encoder) around(o object, e agent.Event) {
	switch e.Type {
	case agent.EventCompaction:
		o["reason"] = e.Reason
	case agent.EventCompactionEnd:
		o["reason"], o["aborted"], o["willRetry"] = e.Reason, e.Aborted, e.WillRetry
		if e.Compaction != nil {
			o["result"] = e.Compaction
		}
		if e.Error != "" {
			o["errorMessage"] = e.Error
		}
	case agent.EventRetry, agent.EventSummaryRetry:
		o["attempt"], o["maxAttempts"], o["delayMs"], o["errorMessage"] = e.Attempt, e.MaxAttempts, e.DelayMS, e.Error
	case agent.EventRetryEnd:
		o["success"], o["attempt"] = e.Success, e.Attempt
		if e.Error != "" {
			o["finalError"] = e.Error
		}
	case agent.EventSummaryAttempt:
		o["source"] = "compaction"
	case agent.EventThinkingLevel:
		o["level"] = e.Level
	case agent.EventSessionInfo:
		o["name"] = e.Name
	}
}

// message adds an event's message. One that has only begun is pending.
func (enc *encoder) message(o object, e agent.Event) error {
	m := *e.Message
	if m.Role == llm.RoleAssistant && e.Type == agent.EventMessageStart {
		enc.usage = llm.Usage{}
		if m.Usage != nil {
			enc.usage = *m.Usage
		}
		if m.StopReason == "" {
			m.StopReason = "pending"
		}
	}
	raw, err := session.EncodeMessage(m)
	o["message"] = raw
	return err
}

// delta is a step of a response without the response so far, so that a stream
// grows with its text only.
func delta(e llm.Event) object {
	o := object{"type": e.Type, "contentIndex": e.Index}
	switch e.Type {
	case llm.EventTextDelta, llm.EventThinkingDelta, llm.EventToolDelta:
		o["delta"] = e.Delta
	case llm.EventTextEnd, llm.EventThinkingEnd:
		content := ""
		if e.Block != nil {
			content = e.Block.Text + e.Block.Thinking // one of them is empty
		}
		o["content"] = content
	case llm.EventToolStart:
		if e.Block != nil {
			o["id"], o["toolName"] = e.Block.ID, e.Block.Name
		}
	case llm.EventToolEnd:
		if e.Block != nil {
			o["toolCall"] = *e.Block
		}
	}
	return o
}

func result(r agent.ToolResult) object {
	o := object{"content": r.Content}
	if r.Content == nil {
		o["content"] = []llm.Block{}
	}
	if len(r.Details) > 0 {
		o["details"] = r.Details
	}
	if r.IsError {
		o["isError"] = true
	}
	return o
}

func messages(ms []llm.Message) ([]json.RawMessage, error) {
	all := make([]json.RawMessage, 0, len(ms))
	var errs error
	for _, m := range ms {
		raw, err := session.EncodeMessage(m)
		all, errs = append(all, raw), errors.Join(errs, err)
	}
	return all, errs
}

// list is never null.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}
