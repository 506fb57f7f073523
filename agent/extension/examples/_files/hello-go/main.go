package main

import "strings"

func main() {
	ext := NewExtension()
	ext.Gate("tool_call", func(r *Request) (any, error) {
		var call struct{ Args struct{ Command string } }
		err := r.Read(&call)
		word, _ := ext.Hello.Flags["word"].(string)
		if err == nil && strings.Contains(call.Args.Command, word) {
			return map[string]any{"block": true, "reason": "the word is not allowed"}, nil
		}
		return nil, err
	})
	ext.Gate("input", func(r *Request) (any, error) {
		var prompt struct{ Text string }
		if err := r.Read(&prompt); err != nil || prompt.Text != "hi" {
			return nil, err
		}
		return map[string]string{"action": "transform", "text": "Hello there."}, nil
	})
	ext.Event("agent_settled", func(*Request) (any, error) {
		ext.Status("settled")
		return nil, nil
	})
	ext.Tool("hello", func(r *Request) (any, error) {
		var args struct{ Name string }
		if err := r.Read(&args); err != nil {
			return nil, err
		}
		r.Update("Hello…")
		return "Hello, " + args.Name + "!", nil
	})
	ext.Command("hello", func(r *Request) (any, error) {
		var text string
		if err := r.Read(&text); err != nil || text != "ask" {
			return "Hello.", err
		}
		a, err := ext.Ask(r, "confirm", "Say hello?")
		switch {
		case err != nil:
			return nil, err
		case !a.Answered:
			return "nobody answered", nil
		case a.Confirmed:
			return "yes", nil
		}
		return "no", nil
	})
	ext.Run()
}
