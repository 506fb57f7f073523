package scripted_test

import (
	"strings"
	"testing"
	"time"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
	"muntin/agent/llm/openai"
	"muntin/agent/llm/scripted"
)

// TestRecord records a conversation over the wire, with an error and a cut in it,
// and plays it again.
func TestRecord(t *testing.T) {
	t.Parallel()
	const secret = "sk-secret-0123456789"
	server := llmtest.NewServer(llmtest.Script{Replies: []llmtest.Reply{
		{Fail: &llmtest.Failure{Status: 529, Message: "overloaded, " + secret, RetryAfter: "2"}},
		{
			Thinking: "hm: " + secret, Text: "Writing.\n\n# not a comment: 世界\n",
			Tools: []llmtest.ToolCall{{ID: "a", Name: "write", Arguments: `{"z":"` + secret + `","a":[1,{"b":null}],"n":12345678901234567}`}},
			Usage: &llm.Usage{Input: 9, Output: 3, Total: 12},
		},
		{Text: "The first ha", Cut: true},
		{Text: "The first half and the second.", Stop: llm.StopLength},
	}})
	c := openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: server.URL}})
	t.Cleanup(func() {
		server.Close()
		c.CloseIdleConnections()
	})
	r := scripted.Record(c, []string{secret}, nil)
	first := []llm.Message{llm.UserText("go (on) "+secret, 1)}
	llmtest.Last(t, r, llm.Request{Model: "m", Messages: first})
	call := llmtest.Last(t, r, llm.Request{Model: "m", Messages: first})
	second := append(first, *call.Message, llm.Message{Role: llm.RoleTool, ToolCallID: "a"})
	llmtest.Last(t, r, llm.Request{Model: "m", Messages: second})
	llmtest.Last(t, r, llm.Request{Model: "m", Messages: second})

	text, err := r.Script("talk")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("the script shows a key:\n%s", text)
	}
	s, err := scripted.Parse("talk", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p := scripted.New(s, scripted.Options{})
	first[0] = llm.UserText("go (on) [key]", 1)
	second[0] = first[0]
	failed := llmtest.Last(t, p, llm.Request{Messages: first})
	if llm.Classify(failed.Err) != llm.ClassRetryable || llm.RetryAfter(failed.Err) != 2*time.Second {
		t.Errorf("first: %v\n%s", failed.Err, text)
	}
	again := llmtest.Last(t, p, llm.Request{Messages: first})
	if again.Err != nil || again.Message.Text() != call.Message.Text() || again.Message.Usage.Input != 9 || again.Message.Content[0].Thinking != "hm: [key]" ||
		string(again.Message.ToolCalls()[0].Arguments) != `{"z":"[key]","a":[1,{"b":null}],"n":12345678901234567}` {
		t.Errorf("again: %+v (%v)\n%s", again.Message, again.Err, text)
	}
	if cut := llmtest.Last(t, p, llm.Request{Messages: second}); llm.Classify(cut.Err) != llm.ClassRetryable {
		t.Errorf("cut: %v\n%s", cut.Err, text)
	}
	if whole := llmtest.Last(t, p, llm.Request{Messages: second}); whole.Err != nil || whole.Message.StopReason != llm.StopLength || !strings.HasSuffix(whole.Message.Text(), "second.") {
		t.Errorf("whole: %+v (%v)\n%s", whole.Message, whole.Err, text)
	}
}
