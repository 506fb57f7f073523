package adapter

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

func asType(err error, wrong **json.UnmarshalTypeError) bool { return errors.As(err, wrong) }

// claude reads a line of ~/.claude/projects/<folder>/<id>.jsonl. A message of
// the model stands on as many lines as it has blocks, each with the usage of
// the whole.
func (r *Reader) claude(line []byte) (out []Record) {
	l, ok := object[struct {
		Type      string  `json:"type"`
		Subtype   string  `json:"subtype"`
		Meta      bool    `json:"isMeta"`
		Sidechain bool    `json:"isSidechain"`
		APIError  bool    `json:"isApiErrorMessage"`
		Error     string  `json:"error"`
		MS        int64   `json:"durationMs"`
		Cost      float64 `json:"totalCostUSD"`
		Message   struct {
			ID      string          `json:"id"`
			Content json.RawMessage `json:"content"`
			Stop    string          `json:"stop_reason"`
			Usage   *struct {
				Input      int `json:"input_tokens"`
				Output     int `json:"output_tokens"`
				CacheRead  int `json:"cache_read_input_tokens"`
				CacheWrite int `json:"cache_creation_input_tokens"`
			} `json:"usage"`
		} `json:"message"`
	}](line)
	if !ok || l.Sidechain { // a helper's own conversation
		return nil
	}
	list := blocks(l.Message.Content)
	switch l.Type {
	case "user":
		text := plain(list)
		switch {
		case strings.HasPrefix(text, "[Request interrupted by user"):
			return []Record{turn(MeansAborted, "")}
		case text != "" && !l.Meta:
			return []Record{{Kind: RecordPrompt, Text: text}}
		}
	case "assistant":
		if l.APIError {
			text := plain(list)
			return []Record{turn(failure(l.Error+" "+text), text)}
		}
		out = said(list)
		if u := l.Message.Usage; u != nil && (l.Message.ID == "" || l.Message.ID != r.last) {
			r.last = l.Message.ID
			out = append(out, Record{Kind: RecordUsage, Usage: &Tokens{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}})
		}
	case "system":
		if l.Subtype == "turn_duration" {
			end := turn(MeansDone, "")
			end.Took = time.Duration(l.MS) * time.Millisecond
			return []Record{end}
		}
	case "cost-state":
		return r.total(l.Cost)
	}
	return out
}

// total makes a usage of a running total of the cost.
func (r *Reader) total(cost float64) []Record {
	if cost <= r.cost {
		return nil
	}
	more, known := cost-r.cost, r.cost > 0 || !r.Later
	r.cost = cost
	if !known {
		return nil // what the part that was not read has cost is in it
	}
	return []Record{{Kind: RecordUsage, Usage: &Tokens{Cost: more}}}
}

// codex reads a line of $CODEX_HOME/sessions/<y>/<m>/<d>/rollout-<time>-<id>.jsonl.
func (r *Reader) codex(line []byte) []Record {
	l, ok := object[struct {
		Type    string `json:"type"`
		Payload struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Item    struct {
				Type    string          `json:"type"`
				Content json.RawMessage `json:"content"`
			} `json:"item"`
			Reason    string          `json:"reason"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Input     json.RawMessage `json:"input"`
			MS        int64           `json:"duration_ms"`
			Error     *codexError     `json:"error"`
			Info      *struct {
				Last struct {
					Input  int `json:"input_tokens"`
					Cached int `json:"cached_input_tokens"`
					Output int `json:"output_tokens"`
				} `json:"last_token_usage"`
			} `json:"info"`
		} `json:"payload"`
	}](line)
	if !ok {
		return nil
	}
	p := l.Payload
	switch l.Type + "/" + p.Type {
	case "event_msg/task_started":
		return []Record{turn(MeansWorking, "")}
	case "event_msg/task_complete":
		return []Record{p.Error.end(p.MS)}
	case "event_msg/turn_aborted":
		return []Record{turn(MeansAborted, p.Reason)}
	case "event_msg/user_message":
		return []Record{{Kind: RecordPrompt, Text: p.Message}}
	case "event_msg/agent_message":
		return []Record{{Kind: RecordText, Text: p.Message}}
	case "event_msg/item_completed":
		kind, known := map[string]RecordKind{"UserMessage": RecordPrompt, "AgentMessage": RecordText}[p.Item.Type]
		if known {
			return []Record{{Kind: kind, Text: plain(blocks(p.Item.Content))}}
		}
	case "event_msg/token_count":
		if p.Info != nil {
			u := p.Info.Last
			return []Record{{Kind: RecordUsage, Usage: &Tokens{Input: max(u.Input-u.Cached, 0), Output: u.Output, CacheRead: u.Cached}}}
		}
	case "response_item/function_call":
		return []Record{tool(p.Name, p.Arguments)}
	case "response_item/custom_tool_call":
		return []Record{tool(p.Name, p.Input)}
	}
	return nil
}

// A codexError is why a turn of Codex's has failed.
type codexError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codex_error_info"`
}

// end is the end of a turn of ms milliseconds; without an error it went well.
func (e *codexError) end(ms int64) Record {
	end := turn(MeansDone, "")
	if e != nil {
		end = turn(failure(string(e.Info)+" "+e.Message), e.Message)
	}
	end.Took = time.Duration(ms) * time.Millisecond
	return end
}

// pi reads a line of ~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl, version 3.
// A turn may go on behind an answer that has ended, or has failed and is tried
// again, so no end is concluded.
func (r *Reader) pi(line []byte) []Record {
	l, ok := object[struct {
		Type    string `json:"type"`
		Message struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Stop    string          `json:"stopReason"`
			Error   string          `json:"errorMessage"`
			Usage   *struct {
				Input      int `json:"input"`
				Output     int `json:"output"`
				CacheRead  int `json:"cacheRead"`
				CacheWrite int `json:"cacheWrite"`
				Cost       struct {
					Total float64 `json:"total"`
				} `json:"cost"`
			} `json:"usage"`
		} `json:"message"`
	}](line)
	if !ok || l.Type != "message" {
		return nil
	}
	m := l.Message
	switch m.Role {
	case "user":
		return []Record{{Kind: RecordPrompt, Text: plain(blocks(m.Content))}}
	case "assistant":
		out := said(blocks(m.Content))
		if u := m.Usage; u != nil {
			out = append(out, Record{Kind: RecordUsage, Usage: &Tokens{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost.Total}})
		}
		switch m.Stop {
		case "error":
			if _, limit := LimitOf(m.Error, time.Time{}); limit {
				out = append(out, turn(MeansLimit, m.Error))
			}
		case "aborted":
			out = append(out, turn(MeansAborted, ""))
		}
		return out
	}
	return nil
}

// gemini reads a line of ~/.gemini/tmp/<project>/chats/session-<time>-<id8>.jsonl.
// Lines that patch earlier ones ($set) are passed over.
func (r *Reader) gemini(line []byte) []Record {
	l, ok := object[struct {
		Type    string          `json:"type"`
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Calls   []struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"toolCalls"`
		Tokens *struct {
			Input  int `json:"input"`
			Output int `json:"output"`
			Cached int `json:"cached"`
		} `json:"tokens"`
	}](line)
	if !ok {
		return nil
	}
	text := plain(blocks(l.Content))
	var out []Record
	switch l.Type {
	case "user":
		return []Record{{Kind: RecordPrompt, Text: text}}
	case "error":
		return []Record{turn(failure(text), text)}
	case "gemini":
		if text != "" {
			out = append(out, Record{Kind: RecordText, Text: text})
		}
		for _, c := range l.Calls {
			out = append(out, tool(c.Name, c.Args))
		}
		if t := l.Tokens; t != nil && (l.ID == "" || l.ID != r.last) {
			r.last = l.ID
			out = append(out, Record{Kind: RecordUsage, Usage: &Tokens{Input: max(t.Input-t.Cached, 0), Output: t.Output, CacheRead: t.Cached}})
		}
	}
	return out
}

// qwen reads a line of ~/.qwen/projects/<folder>/chats/<id>.jsonl.
func (r *Reader) qwen(line []byte) []Record {
	l, ok := object[struct {
		Type    string `json:"type"`
		Message struct {
			Parts json.RawMessage `json:"parts"`
		} `json:"message"`
		Usage *struct {
			Prompt int `json:"promptTokenCount"`
			Output int `json:"candidatesTokenCount"`
			Cached int `json:"cachedContentTokenCount"`
		} `json:"usageMetadata"`
	}](line)
	if !ok {
		return nil
	}
	list := blocks(l.Message.Parts)
	switch l.Type {
	case "user":
		if text := plain(list); text != "" {
			return []Record{{Kind: RecordPrompt, Text: text}}
		}
	case "assistant":
		out := said(list)
		if u := l.Usage; u != nil {
			out = append(out, Record{Kind: RecordUsage, Usage: &Tokens{Input: max(u.Prompt-u.Cached, 0), Output: u.Output, CacheRead: u.Cached}})
		}
		return out
	}
	return nil
}
