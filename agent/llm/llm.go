// Package llm is the provider-neutral contract between an agent and a model:
// messages, tools, one stream of events, and the classes of failure. Each wire
// dialect is a package below it that imports this one and nothing else of ours.
//
// A stream never fails by panic or by a second error path: whatever goes wrong
// arrives as its last event. Every stream has exactly one terminal event,
// EventDone or EventError, and nothing after it.
package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// A Role says who speaks in a message.
type Role string

// The roles of a conversation.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "toolResult"
)

// A BlockType says what a block of content is.
type BlockType string

// The blocks a message is made of.
const (
	BlockText     BlockType = "text"
	BlockThinking BlockType = "thinking"
	BlockToolCall BlockType = "toolCall"
	BlockImage    BlockType = "image"
)

// A Block is one piece of a message's content. Which fields count is told by
// Type. The JSON is Pi's session format, version 3.
type Block struct {
	Type BlockType `json:"type"`

	Text          string `json:"text,omitempty"`
	TextSignature string `json:"textSignature,omitempty"`

	Thinking          string `json:"thinking,omitempty"`
	ThinkingSignature string `json:"thinkingSignature,omitempty"`
	Redacted          bool   `json:"redacted,omitempty"`

	// A tool call. Arguments is the JSON object exactly as the model wrote it;
	// when it is no valid object, Arguments is {} and ArgumentsError says why.
	ID             string          `json:"id,omitempty"`
	Name           string          `json:"name,omitempty"`
	Arguments      json.RawMessage `json:"arguments,omitempty"`
	ArgumentsError string          `json:"argumentsError,omitempty"`

	// ThoughtSignature is what a provider wants back with the call (Gemini).
	ThoughtSignature string `json:"thoughtSignature,omitempty"`

	Data     string `json:"data,omitempty"` // base64
	MimeType string `json:"mimeType,omitempty"`
}

// A StopReason says why a response ended.
type StopReason string

// Why a response ended. A response that stops by StopLength was cut off by its
// token limit: none of its tool calls may be run.
const (
	StopEnd     StopReason = "stop"
	StopLength  StopReason = "length"
	StopToolUse StopReason = "toolUse"
	StopError   StopReason = "error"
	StopAborted StopReason = "aborted"
)

// Usage counts the tokens of one response. Input excludes cached tokens;
// CacheWrite1h is a part of CacheWrite, and Reasoning of Output.
type Usage struct {
	Input        int  `json:"input"`
	Output       int  `json:"output"`
	CacheRead    int  `json:"cacheRead"`
	CacheWrite   int  `json:"cacheWrite"`
	CacheWrite1h int  `json:"cacheWrite1h,omitempty"`
	Reasoning    int  `json:"reasoning,omitempty"`
	Total        int  `json:"totalTokens"`
	Cost         Cost `json:"cost"` // zero when the price is not known
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:        u.Input + v.Input,
		Output:       u.Output + v.Output,
		CacheRead:    u.CacheRead + v.CacheRead,
		CacheWrite:   u.CacheWrite + v.CacheWrite,
		CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h,
		Reasoning:    u.Reasoning + v.Reasoning,
		Total:        u.Total + v.Total,
		Cost:         u.Cost.Add(v.Cost),
	}
}

// A Message is one entry of a conversation. The JSON is Pi's session format,
// version 3; Timestamp is in Unix milliseconds.
type Message struct {
	Role      Role    `json:"role"`
	Content   []Block `json:"content"`
	Timestamp int64   `json:"timestamp"`

	// An assistant's message.
	API           string     `json:"api,omitempty"`
	Provider      string     `json:"provider,omitempty"`
	Model         string     `json:"model,omitempty"`
	ResponseID    string     `json:"responseId,omitempty"`
	Usage         *Usage     `json:"usage,omitempty"`
	StopReason    StopReason `json:"stopReason,omitempty"`
	RawStopReason string     `json:"rawStopReason,omitempty"` // the provider's own word
	ErrorMessage  string     `json:"errorMessage,omitempty"`

	// A tool's result.
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"` // for people and sessions, never sent
	IsError    bool            `json:"isError,omitempty"`
}

// Text joins the text blocks of the message.
func (m Message) Text() string {
	var text string
	for _, b := range m.Content {
		if b.Type == BlockText {
			text += b.Text
		}
	}
	return text
}

// ToolCalls returns the tool-call blocks in their order.
func (m Message) ToolCalls() []Block {
	var calls []Block
	for _, b := range m.Content {
		if b.Type == BlockToolCall {
			calls = append(calls, b)
		}
	}
	return calls
}

// UserText makes a user's message of one text.
func UserText(text string, unixMilli int64) Message {
	return Message{Role: RoleUser, Content: []Block{{Type: BlockText, Text: text}}, Timestamp: unixMilli}
}

// A Tool tells the model of something it may call. Parameters is a JSON Schema.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// A Request is everything a model needs for one response.
type Request struct {
	Model     string // the id without the provider
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int    // 0: the provider's default
	SessionID string // for providers that keep a cache by conversation
	Thinking  Level  // "": the provider's default; a level that the model has not becomes the nearest
	Cache     Retention
}

// A Retention says how long a provider is asked to keep what it has read.
type Retention string

// How long the prompt stays in the provider's cache. The zero value is some
// minutes; CacheLong an hour or a day, which costs more to write.
const (
	CacheShort Retention = ""
	CacheLong  Retention = "long"
	CacheNone  Retention = "none" // for what is asked once, as a summary
)

// An EventType names an event of a stream.
type EventType string

// The events of a stream. Updates come between EventStart and the terminal
// event; a stream may end with EventError without EventStart.
const (
	EventStart         EventType = "start"
	EventTextStart     EventType = "text_start"
	EventTextDelta     EventType = "text_delta"
	EventTextEnd       EventType = "text_end"
	EventThinkingStart EventType = "thinking_start"
	EventThinkingDelta EventType = "thinking_delta"
	EventThinkingEnd   EventType = "thinking_end"
	EventToolStart     EventType = "toolcall_start"
	EventToolDelta     EventType = "toolcall_delta"
	EventToolEnd       EventType = "toolcall_end"
	EventDone          EventType = "done"
	EventError         EventType = "error"
)

// An Event is one step of a response. Index is the block's place in the
// message's content; Delta is the raw piece of text, thinking or argument JSON.
type Event struct {
	Type    EventType `json:"type"`
	Index   int       `json:"contentIndex,omitempty"`
	Delta   string    `json:"delta,omitempty"`
	Block   *Block    `json:"block,omitempty"`   // toolcall_start (id, name) and every *_end
	Message *Message  `json:"message,omitempty"` // done and error: the whole message; start: what is known of it
	Err     error     `json:"-"`                 // error: the cause; see Classify
}

// A Provider streams responses. Stream returns at once; the request goes out
// when the sequence is read. Stopping the iteration or ending ctx cancels the
// request. The sequence yields exactly one terminal event unless the reader
// stops before it. A Provider may be used from several goroutines.
type Provider interface {
	Stream(ctx context.Context, req Request) iter.Seq[Event]
}
