package llmtest

import (
	"encoding/json"

	"muntin/agent/llm"
)

// gemini is the format of Google's streamGenerateContent. Calls come whole, and
// what is no JSON object cannot be sent: it is left out.
type gemini struct{ *answer }

func (g gemini) head() { g.part(`{"text":""}`) }

func (g gemini) part(part string) {
	g.event([]byte(`{"responseId":` + string(encode(g.id())) + `,"candidates":[{"index":0,"content":{"role":"model","parts":[` + part + `]}}]}`))
}

func (g gemini) thinking(pieces []string) {
	for _, p := range pieces {
		g.part(`{"thought":true,"text":` + p + `}`)
	}
}

func (g gemini) text(pieces []string) {
	for _, p := range pieces {
		g.part(`{"text":` + p + `}`)
	}
}

func (g gemini) tools(pieces [][]string) {
	for i := range pieces {
		t := g.reply.Tools[i]
		if json.Valid([]byte(t.Arguments)) {
			g.part(`{"functionCall":{"id":` + string(encode(t.ID)) + `,"name":` + string(encode(t.Name)) + `,"args":` + t.Arguments +
				`},"thoughtSignature":` + string(encode(Signature)) + `}`)
		}
	}
}

func (g gemini) fail(message string) {
	g.event(encode(object{"error": object{"code": 503, "message": message, "status": "UNAVAILABLE"}}))
}

func (g gemini) finish() {
	reason := "STOP"
	if g.stop() == llm.StopLength {
		reason = "MAX_TOKENS"
	}
	last := object{"candidates": []any{object{"index": 0, "finishReason": reason, "content": object{"role": "model", "parts": []any{object{"text": ""}}}}}}
	if u := g.reply.Usage; u != nil {
		last["usageMetadata"] = object{
			"promptTokenCount": u.Input + u.CacheRead, "cachedContentTokenCount": u.CacheRead,
			"candidatesTokenCount": u.Output - u.Reasoning, "thoughtsTokenCount": u.Reasoning, "totalTokenCount": u.Total,
		}
	}
	g.event(encode(last))
}
