package llm

// NoResult is the text of the result that stands in for one that never came.
const NoResult = "No result provided: the run was interrupted before this call gave a result. It may have taken effect in part."

// Sendable gives the part of a transcript that a model may be shown, in the
// order that providers accept:
//   - assistant messages that failed or were aborted, or are empty, are left out;
//   - every tool call is followed by exactly one result, in the order of the
//     calls; one that is missing is an error result of NoResult;
//   - results that answer no call are left out;
//   - other messages between a call and its results come after the results.
//
// The messages given are not changed.
func Sendable(messages []Message) []Message {
	out := make([]Message, 0, len(messages))
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		switch {
		case m.Role == RoleTool:
			// Its call was left out, or there never was one.
		case m.Role != RoleAssistant:
			out = append(out, m)
		case m.StopReason == StopError || m.StopReason == StopAborted || len(m.Content) == 0:
		default:
			end := i + 1
			for end < len(messages) && messages[end].Role != RoleAssistant {
				end++
			}
			out = append(out, m)
			out = appendAnswers(out, m, messages[i+1:end])
			i = end - 1
		}
	}
	return out
}

// appendAnswers adds a result for each call of m, then what else lies in rest.
func appendAnswers(out []Message, m Message, rest []Message) []Message {
	for _, call := range m.ToolCalls() {
		out = append(out, answer(call, m.Timestamp, rest))
	}
	for _, r := range rest {
		if r.Role != RoleTool {
			out = append(out, r)
		}
	}
	return out
}

func answer(call Block, unixMilli int64, rest []Message) Message {
	for _, r := range rest {
		if r.Role == RoleTool && r.ToolCallID == call.ID {
			return r
		}
	}
	return MissingResult(call, unixMilli)
}

// MissingResult makes the error result that stands in for one that never came.
func MissingResult(call Block, unixMilli int64) Message {
	return Message{
		Role:       RoleTool,
		Content:    []Block{{Type: BlockText, Text: NoResult}},
		Timestamp:  unixMilli,
		ToolCallID: call.ID,
		ToolName:   call.Name,
		IsError:    true,
	}
}

// Unanswered gives the tool calls at the end of a transcript that have no
// result yet: those of the last assistant message, when nothing but results
// follows it. A transcript that a crash cut off ends like this.
func Unanswered(messages []Message) []Block {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role == RoleTool {
		last--
	}
	if last < 0 {
		return nil
	}
	m := messages[last]
	if m.Role != RoleAssistant || m.StopReason == StopError || m.StopReason == StopAborted {
		return nil
	}
	answered := map[string]bool{}
	for _, r := range messages[last+1:] {
		answered[r.ToolCallID] = true
	}
	var open []Block
	for _, call := range m.ToolCalls() {
		if !answered[call.ID] {
			open = append(open, call)
		}
	}
	return open
}
