package llmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"muntin/agent/llm"
)

// an answer is one stream on its way out.
type answer struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	reply Reply
	model string
}

type object = map[string]any

func (a *answer) send() {
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.w.WriteHeader(http.StatusOK)
	a.choice(object{"role": "assistant", "content": ""}, "")
	for _, p := range a.pieces(a.reply.Thinking) {
		a.choiceRaw(`{"reasoning_content":`+p+`}`, "")
	}
	for _, p := range a.pieces(a.reply.Text) {
		a.choiceRaw(`{"content":`+p+`}`, "")
	}
	a.tools()
	switch {
	case a.reply.StreamError != "":
		a.event(encode(object{"error": object{"message": a.reply.StreamError}}))
		return
	case a.reply.Cut, a.reply.NoFinish, a.reply.Hold:
		return
	}
	a.choice(object{}, a.finishReason())
	if u := a.reply.Usage; u != nil {
		a.event(encode(object{"id": "resp-1", "choices": []any{}, "usage": object{
			"prompt_tokens": u.Input + u.CacheRead, "completion_tokens": u.Output, "total_tokens": u.Total,
			"prompt_tokens_details":     object{"cached_tokens": u.CacheRead},
			"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
		}}))
	}
	if !a.reply.Wire.NoDone {
		a.event([]byte("[DONE]"))
	}
}

func (a *answer) finishReason() string {
	switch a.reply.Stop {
	case llm.StopLength:
		return "length"
	case llm.StopToolUse:
		return "tool_calls"
	case llm.StopEnd:
		return "stop"
	}
	if len(a.reply.Tools) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// tools sends the calls one after the other, or with their pieces taking turns.
func (a *answer) tools() {
	pieces := make([][]string, len(a.reply.Tools))
	longest := 0
	for i, t := range a.reply.Tools {
		pieces[i] = a.pieces(t.Arguments)
		longest = max(longest, len(pieces[i]))
	}
	head := func(i int) {
		t := a.reply.Tools[i]
		a.tool(i, object{"id": t.ID, "type": "function"}, `{"name":`+string(encode(t.Name))+`,"arguments":""}`)
	}
	piece := func(i, j int) { a.tool(i, object{}, `{"arguments":`+pieces[i][j]+`}`) }
	if a.reply.Wire.Parallel {
		for i := range pieces {
			head(i)
		}
		for j := range longest {
			for i := range pieces {
				if j < len(pieces[i]) {
					piece(i, j)
				}
			}
		}
		return
	}
	for i := range pieces {
		head(i)
		for j := range pieces[i] {
			piece(i, j)
		}
	}
}

func (a *answer) tool(index int, fields object, function string) {
	fields["index"] = index
	fields["function"] = json.RawMessage(function)
	a.choice(object{"tool_calls": []any{fields}}, "")
}

// pieces cuts text and encodes each piece as JSON. JSON cannot carry half a
// character, so no piece ends within one; Flush splits the bytes on the network.
func (a *answer) pieces(text string) []string {
	size := a.reply.Wire.Split
	if size <= 0 {
		size = len(text)
	}
	var out []string
	for text != "" {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		out = append(out, string(encode(text[:n])))
		text = text[n:]
	}
	return out
}

func (a *answer) choice(delta object, finish string) { a.choiceRaw(string(encode(delta)), finish) }

func (a *answer) choiceRaw(delta, finish string) {
	reason := "null"
	if finish != "" {
		reason = strconv.Quote(finish)
	}
	a.event([]byte(`{"id":"resp-1","object":"chat.completion.chunk","model":` + string(encode(a.model)) +
		`,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`))
}

// event writes one event in the form that the reply asks for.
func (a *answer) event(data []byte) {
	text := "data: " + string(data) + "\n\n"
	if a.reply.Wire.Comments {
		text = ": keep-alive\n\n" + text
	}
	if a.reply.Wire.CRLF {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	size := a.reply.Wire.Flush
	if size <= 0 {
		size = len(text)
	}
	for text != "" {
		n := min(size, len(text))
		if _, err := a.w.Write([]byte(text[:n])); err != nil {
			return // the client is gone
		}
		_ = a.flush.Flush()
		text = text[n:]
	}
}

// encode is for values that can always be encoded.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("llmtest: encoding JSON: " + err.Error())
	}
	return bytes.TrimSpace(buf.Bytes())
}
