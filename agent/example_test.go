package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/agent/llm/scripted"
)

// A clock is a tool that tells the time.
type clock struct{}

func (clock) Spec() llm.Tool {
	return llm.Tool{
		Name:        "clock",
		Description: "Tells the time in a city.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}
}

func (clock) Run(_ context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	var in struct{ City string }
	if err := json.Unmarshal(args, &in); err != nil {
		return agent.ToolResult{}, err
	}
	return agent.TextResult("12:00 in " + in.City), nil
}

// The model here is a script; a real one is another llm.Provider.
const conversation = `
version: 1
steps:
  - text: Let me look.
    tools:
      - name: clock
        arguments: {city: Oslo}
  - text: It is noon in Oslo.
`

func Example() {
	script, err := scripted.Parse("conversation", []byte(conversation))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	a, err := agent.New(agent.Options{
		Provider: scripted.New(script, scripted.Options{}),
		Model:    "scripted",
		System:   "You tell the time.",
		Tools:    []agent.Tool{clock{}},
		OnEvent: func(_ context.Context, e agent.Event) error {
			switch e.Type {
			case agent.EventMessageEnd:
				if text := e.Message.Text(); text != "" {
					fmt.Printf("%s: %s\n", e.Message.Role, text)
				}
			case agent.EventToolStart:
				fmt.Printf("runs %s %s\n", e.ToolName, e.Args)
			case agent.EventSettled:
				fmt.Println("settled")
			}
			return nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	if err := a.Prompt(context.Background(), llm.UserText("What time is it in Oslo?", 1)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	// Output:
	// user: What time is it in Oslo?
	// assistant: Let me look.
	// runs clock {"city":"Oslo"}
	// toolResult: 12:00 in Oslo
	// assistant: It is noon in Oslo.
	// settled
}
