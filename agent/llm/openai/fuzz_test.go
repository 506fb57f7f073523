package openai_test

import (
	"testing"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
	"muntin/agent/llm/openai"
)

// FuzzStream checks that whatever a server sends, the events keep the contract,
// and that nothing without a finish reason is taken for a whole answer.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3,\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]}}]}\r\n\r\n",
		"data: {\"choices\":[{\"delta\":{\"reasoning\":\"x\"}}],\"usage\":{\"prompt_tokens\":-5}}\n\n: ping\n\ndata: {\"error\":{\"code\":\"x\"}}\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{}},{\"index\":-1,\"function\":{\"arguments\":{}}}]},\"finish_reason\":\"length\"}]}",
		"data: null\n\ndata: []\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: "http://x.test"}, HTTPClient: answering(200, string(body))})
		events := llmtest.Collect(t, c.Stream(t.Context(), ask()))
		m := events[len(events)-1].Message
		marshal(t, m) // whatever came, the message can be written
		for _, call := range m.ToolCalls() {
			if _, wrong := llm.Arguments(call.Arguments); wrong != "" || call.ID == "" {
				t.Fatalf("call %+v", call)
			}
		}
	})
}
