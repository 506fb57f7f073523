// The parrot says what it was told, word by word. Put your own service's request in
// its place: the conversation is in request.messages, and what comes back is given by
// Update, as text_delta, thinking_delta, or toolcall_start, toolcall_delta, toolcall_end.
package main

import "strings"

type request struct {
	Provider string
	Request  struct {
		Model, System string
		Messages      []struct {
			Role    string
			Content []struct{ Type, Text string }
		}
	}
}

func main() {
	ext := NewExtension()
	ext.Gate("provider", func(r *Request) (any, error) {
		var req request
		if err := r.Read(&req); err != nil {
			return nil, err
		}
		words, input := 0, 0
		last := ""
		for _, m := range req.Request.Messages {
			for _, b := range m.Content {
				input += len(b.Text) / 4
				if m.Role == "user" {
					last = b.Text
				}
			}
		}
		for _, word := range strings.SplitAfter(last, " ") {
			if r.Err() != nil {
				return nil, r.Err()
			}
			r.Update(map[string]any{"type": "text_delta", "delta": word})
			words++
		}
		usage := map[string]int{"input": input, "output": words, "totalTokens": input + words}
		return map[string]any{"stopReason": "stop", "usage": usage}, nil
	})
	ext.Run()
}
