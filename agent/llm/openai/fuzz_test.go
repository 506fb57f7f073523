package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"muntin/agent/llm/llmtest"
)

// FuzzStream checks that whatever a server sends, the events keep the contract.
func FuzzStream(f *testing.F) {
	llmtest.FuzzDialect(f, bare,
		"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3,\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]}}]}\r\n\r\n",
		"data: {\"choices\":[{\"delta\":{\"reasoning\":\"x\"}}],\"usage\":{\"prompt_tokens\":-5}}\n\n: ping\n\ndata: {\"error\":{\"code\":\"x\"}}\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{}},{\"index\":-1,\"function\":{\"arguments\":{}}}]},\"finish_reason\":\"length\"}]}",
		"data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"a\"},{\"type\":\"reasoning.text\",\"text\":\"b\"},null]},\"finish_reason\":\"stop\"}]}\n\n",
		"data: null\n\ndata: []\n\n",
	)
}

func BenchmarkStream(b *testing.B) {
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d \"},\"finish_reason\":null}]}\n\n", i)
	}
	body.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	llmtest.BenchmarkDialect(b, bare, body.String())
}
