package llmtest

import (
	"fmt"

	"muntin/agent/llm"
)

// responses is the format of OpenAI's Responses.
type responses struct {
	*answer
	index int // of the next output item
	seq   int
}

func (r *responses) typed(name string, fields object) {
	fields["type"], fields["sequence_number"] = name, r.seq
	r.seq++
	r.named(name, encode(fields))
}

func (r *responses) head() {
	r.typed("response.created", object{"response": object{"id": r.id(), "status": "in_progress", "model": r.model, "output": []any{}}})
	r.typed("response.in_progress", object{"response": object{"id": r.id(), "status": "in_progress"}})
}

func (r *responses) piece(name string, index int, piece string) {
	r.named(name, fmt.Appendf(nil, `{"type":%q,"output_index":%d,"content_index":0,"summary_index":0,"delta":%s}`, name, index, piece))
}

func (r *responses) thinking(pieces []string) {
	item := object{"type": "reasoning", "id": "rs_1", "summary": []any{}}
	r.typed("response.output_item.added", object{"output_index": r.index, "item": item})
	r.typed("response.reasoning_summary_part.added", object{"output_index": r.index, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
	for _, p := range pieces {
		r.piece("response.reasoning_summary_text.delta", r.index, p)
	}
	r.typed("response.reasoning_summary_text.done", object{"output_index": r.index, "summary_index": 0, "text": r.reply.Thinking})
	item["summary"] = []any{object{"type": "summary_text", "text": r.reply.Thinking}}
	item["encrypted_content"] = Signature
	r.typed("response.output_item.done", object{"output_index": r.index, "item": item})
	r.index++
}

func (r *responses) text(pieces []string) {
	item := object{"type": "message", "id": "msg_1", "role": "assistant", "content": []any{}}
	r.typed("response.output_item.added", object{"output_index": r.index, "item": item})
	r.typed("response.content_part.added", object{"output_index": r.index, "content_index": 0, "part": object{"type": "output_text", "text": ""}})
	for _, p := range pieces {
		r.piece("response.output_text.delta", r.index, p)
	}
	r.typed("response.output_text.done", object{"output_index": r.index, "text": r.reply.Text})
	item["content"] = []any{object{"type": "output_text", "text": r.reply.Text}}
	r.typed("response.output_item.done", object{"output_index": r.index, "item": item})
	r.index++
}

func (r *responses) tools(pieces [][]string) {
	base := r.index
	item := func(i int, arguments string) object {
		t := r.reply.Tools[i]
		return object{"type": "function_call", "id": fmt.Sprintf("fc_%d", i), "call_id": t.ID, "name": t.Name, "arguments": arguments}
	}
	r.eachPiece(pieces, func(i int) {
		r.typed("response.output_item.added", object{"output_index": base + i, "item": item(i, "")})
	}, func(i int, piece string) {
		r.piece("response.function_call_arguments.delta", base+i, piece)
	}, func(i int) {
		r.typed("response.function_call_arguments.done", object{"output_index": base + i, "arguments": r.reply.Tools[i].Arguments})
		r.typed("response.output_item.done", object{"output_index": base + i, "item": item(i, r.reply.Tools[i].Arguments)})
	})
	r.index += len(pieces)
}

func (r *responses) fail(message string) {
	r.typed("error", object{"code": nil, "message": message, "param": nil})
}

func (r *responses) finish() {
	name, response := "response.completed", object{"id": r.id(), "status": "completed"}
	if r.stop() == llm.StopLength {
		name, response["status"], response["incomplete_details"] = "response.incomplete", "incomplete", object{"reason": "max_output_tokens"}
	}
	if u := r.reply.Usage; u != nil {
		response["usage"] = object{
			"input_tokens": u.Input + u.CacheRead, "output_tokens": u.Output, "total_tokens": u.Total,
			"input_tokens_details": object{"cached_tokens": u.CacheRead}, "output_tokens_details": object{"reasoning_tokens": u.Reasoning},
		}
	}
	r.typed(name, object{"response": response})
}
