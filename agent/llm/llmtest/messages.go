package llmtest

import (
	"fmt"

	"muntin/agent/llm"
)

// messages is the format of Anthropic's Messages.
type messages struct {
	*answer
	index int // of the next block
}

// Signature is what the thinking of Anthropic's format is signed with, in two pieces.
const Signature = "c2lnbmF0dXJl+/="

func (m *messages) head() {
	usage := object{"input_tokens": 1, "output_tokens": 1}
	if u := m.reply.Usage; u != nil {
		usage = object{
			"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
			"cache_creation": object{"ephemeral_1h_input_tokens": u.CacheWrite1h},
		}
	}
	m.typed("message_start", object{"message": object{"id": m.id(), "role": "assistant", "content": []any{}, "model": m.model, "usage": usage}})
	m.typed("ping", object{})
}

func (m *messages) typed(name string, fields object) {
	fields["type"] = name
	m.named(name, encode(fields))
}

func (m *messages) block(start object, deltas func()) {
	m.typed("content_block_start", object{"index": m.index, "content_block": start})
	deltas()
	m.typed("content_block_stop", object{"index": m.index})
	m.index++
}

func (m *messages) piece(index int, kind, field, piece string) {
	m.named("content_block_delta", fmt.Appendf(nil, `{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, index, kind, field, piece))
}

func (m *messages) thinking(pieces []string) {
	m.block(object{"type": "thinking", "thinking": "", "signature": ""}, func() {
		for _, p := range pieces {
			m.piece(m.index, "thinking_delta", "thinking", p)
		}
		for _, s := range []string{Signature[:5], Signature[5:]} {
			m.piece(m.index, "signature_delta", "signature", string(encode(s)))
		}
	})
}

func (m *messages) text(pieces []string) {
	m.block(object{"type": "text", "text": ""}, func() {
		for _, p := range pieces {
			m.piece(m.index, "text_delta", "text", p)
		}
	})
}

func (m *messages) tools(pieces [][]string) {
	base := m.index
	m.eachPiece(pieces, func(i int) {
		t := m.reply.Tools[i]
		m.typed("content_block_start", object{"index": base + i, "content_block": object{"type": "tool_use", "id": t.ID, "name": t.Name, "input": object{}}})
		m.piece(base+i, "input_json_delta", "partial_json", `""`)
	}, func(i int, piece string) {
		m.piece(base+i, "input_json_delta", "partial_json", piece)
	}, func(i int) {
		m.typed("content_block_stop", object{"index": base + i})
	})
}

func (m *messages) fail(message string) {
	m.typed("error", object{"error": object{"type": "api_error", "message": message}})
}

func (m *messages) finish() {
	reasons := map[llm.StopReason]string{llm.StopEnd: "end_turn", llm.StopLength: "max_tokens", llm.StopToolUse: "tool_use"}
	usage := object{"output_tokens": 2}
	if u := m.reply.Usage; u != nil {
		usage = object{"output_tokens": u.Output, "output_tokens_details": object{"thinking_tokens": u.Reasoning}}
	}
	m.typed("message_delta", object{"delta": object{"stop_reason": reasons[m.stop()], "stop_sequence": nil}, "usage": usage})
	m.typed("message_stop", object{})
}
