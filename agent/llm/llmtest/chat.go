package llmtest

import (
	"encoding/json"
	"strconv"

	"muntin/agent/llm"
)

// chat is the format of OpenAI's Chat Completions.
type chat struct{ *answer }

func (c chat) head() { c.choice(`{"role":"assistant","content":""}`, "") }

func (c chat) thinking(pieces []string) {
	for _, p := range pieces {
		c.choice(`{"reasoning_content":`+p+`}`, "")
	}
}

func (c chat) text(pieces []string) {
	for _, p := range pieces {
		c.choice(`{"content":`+p+`}`, "")
	}
}

func (c chat) tools(pieces [][]string) {
	c.eachPiece(pieces, func(i int) {
		t := c.reply.Tools[i]
		c.tool(object{"index": i, "id": t.ID, "type": "function"}, `{"name":`+string(encode(t.Name))+`,"arguments":""}`)
	}, func(i int, piece string) {
		c.tool(object{"index": i}, `{"arguments":`+piece+`}`)
	}, func(int) {})
}

func (c chat) tool(fields object, function string) {
	fields["function"] = json.RawMessage(function)
	c.choice(string(encode(object{"tool_calls": []any{fields}})), "")
}

func (c chat) fail(message string) {
	c.event(encode(object{"error": object{"message": message}}))
}

func (c chat) finish() {
	reasons := map[llm.StopReason]string{llm.StopEnd: "stop", llm.StopLength: "length", llm.StopToolUse: "tool_calls"}
	c.choice(`{}`, reasons[c.stop()])
	if u := c.reply.Usage; u != nil {
		c.event(encode(object{"id": c.id(), "choices": []any{}, "usage": object{
			"prompt_tokens": u.Input + u.CacheRead, "completion_tokens": u.Output, "total_tokens": u.Total,
			"prompt_tokens_details":     object{"cached_tokens": u.CacheRead},
			"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
		}}))
	}
	if !c.reply.Wire.NoDone {
		c.event([]byte("[DONE]"))
	}
}

func (c chat) choice(delta, finish string) {
	reason := "null"
	if finish != "" {
		reason = strconv.Quote(finish)
	}
	c.event([]byte(`{"id":` + string(encode(c.id())) + `,"object":"chat.completion.chunk","model":` + string(encode(c.model)) +
		`,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`))
}
