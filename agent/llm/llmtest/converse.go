package llmtest

import (
	"bytes"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"muntin/agent/llm"
)

// converse is the format of Amazon Bedrock's Converse API. Its frames have neither
// lines nor comments.
type converse struct {
	*answer
	index int // of the next block
}

func (c *converse) kind() string { return "application/vnd.amazon.eventstream" }

// Frame makes a frame of Amazon's event stream encoding. A kind that is
// "exception" makes the name that of an exception.
func Frame(kind, name string, payload []byte) []byte {
	m := eventstream.Message{Payload: payload}
	m.Headers.Set(":message-type", eventstream.StringValue(kind))
	m.Headers.Set(":"+kind+"-type", eventstream.StringValue(name))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
		panic("llmtest: encoding a frame: " + err.Error())
	}
	return out.Bytes()
}

func (c *converse) event(name string, payload []byte) { c.write(string(Frame("event", name, payload))) }

func (c *converse) head() { c.event("messageStart", []byte(`{"role":"assistant"}`)) }

func (c *converse) delta(index int, delta string) {
	c.event("contentBlockDelta", fmt.Appendf(nil, `{"contentBlockIndex":%d,"delta":{%s}}`, index, delta))
}

func (c *converse) stopBlock(index int) {
	c.event("contentBlockStop", fmt.Appendf(nil, `{"contentBlockIndex":%d}`, index))
}

func (c *converse) thinking(pieces []string) {
	for _, p := range pieces {
		c.delta(c.index, `"reasoningContent":{"text":`+p+`}`)
	}
	for _, s := range []string{Signature[:5], Signature[5:]} {
		c.delta(c.index, `"reasoningContent":{"signature":`+string(encode(s))+`}`)
	}
	c.stopBlock(c.index)
	c.index++
}

func (c *converse) text(pieces []string) {
	for _, p := range pieces {
		c.delta(c.index, `"text":`+p)
	}
	c.stopBlock(c.index)
	c.index++
}

func (c *converse) tools(pieces [][]string) {
	base := c.index
	c.eachPiece(pieces, func(i int) {
		t := c.reply.Tools[i]
		c.event("contentBlockStart", encode(object{"contentBlockIndex": base + i, "start": object{"toolUse": object{"toolUseId": t.ID, "name": t.Name}}}))
	}, func(i int, piece string) {
		c.delta(base+i, `"toolUse":{"input":`+piece+`}`)
	}, func(i int) { c.stopBlock(base + i) })
}

func (c *converse) fail(message string) {
	c.write(string(Frame("exception", "internalServerException", encode(object{"message": message}))))
}

func (c *converse) finish() {
	reasons := map[llm.StopReason]string{llm.StopEnd: "end_turn", llm.StopLength: "max_tokens", llm.StopToolUse: "tool_use"}
	c.event("messageStop", encode(object{"stopReason": reasons[c.stop()]}))
	usage := object{"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
	if u := c.reply.Usage; u != nil {
		usage = object{
			"inputTokens": u.Input, "outputTokens": u.Output, "totalTokens": u.Total,
			"cacheReadInputTokens": u.CacheRead, "cacheWriteInputTokens": u.CacheWrite,
		}
	}
	c.event("metadata", encode(object{"usage": usage, "metrics": object{"latencyMs": 1}}))
}
