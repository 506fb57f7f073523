package agent

import (
	"encoding/json"

	"muntin/agent/llm"
)

// An EventType names an event of a run.
type EventType string

// The events of a run, in the order of Pi 1.6: agent_start, then turns of
// messages and tool executions, agent_end, and settled exactly once per run
// when nothing automatic will follow.
const (
	EventAgentStart    EventType = "agent_start"
	EventTurnStart     EventType = "turn_start"
	EventMessageStart  EventType = "message_start"
	EventMessageUpdate EventType = "message_update"
	EventMessageEnd    EventType = "message_end"
	EventToolStart     EventType = "tool_execution_start"
	EventToolUpdate    EventType = "tool_execution_update"
	EventToolEnd       EventType = "tool_execution_end"
	EventTurnEnd       EventType = "turn_end"
	EventAgentEnd      EventType = "agent_end"
	EventQueue         EventType = "queue_update"
	EventRetry         EventType = "auto_retry_start"
	EventRetryEnd      EventType = "auto_retry_end"
	EventSettled       EventType = "agent_settled"

	// Of whoever makes room in the context in a hook, or while no run goes on.
	EventCompaction    EventType = "compaction_start"
	EventCompactionEnd EventType = "compaction_end"

	// Of a request for a summary that failed for a passing reason.
	EventSummaryRetry     EventType = "summarization_retry_scheduled"
	EventSummaryAttempt   EventType = "summarization_retry_attempt_start"
	EventSummaryRetryDone EventType = "summarization_retry_finished"

	// Of what was changed in an agent's session.
	EventThinkingLevel EventType = "thinking_level_changed"
	EventSessionInfo   EventType = "session_info_changed"
)

// An Event is one thing that happened in a run. Which fields count is told by
// Type. What its pointers and slices lead to must not be changed.
//
// A message_update carries only the step (Stream); an llm.Partial puts the steps
// together. queue_update tells what is waiting after a change during a run.
type Event struct {
	Type EventType `json:"type"`

	Message *llm.Message `json:"message,omitempty"`               // message_start, message_end, turn_end
	Stream  *llm.Event   `json:"assistantMessageEvent,omitempty"` // message_update

	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Partial    *ToolResult     `json:"partialResult,omitempty"`
	Result     *ToolResult     `json:"result,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	DurationMS int64           `json:"durationMs,omitempty"`

	ToolResults []llm.Message `json:"toolResults,omitempty"` // turn_end
	Messages    []llm.Message `json:"messages,omitempty"`    // agent_end: what this run added
	WillRetry   bool          `json:"willRetry,omitempty"`   // agent_end

	Steering []string `json:"steering,omitempty"` // queue_update
	FollowUp []string `json:"followUp,omitempty"`

	Attempt     int    `json:"attempt,omitempty"` // auto_retry_start, auto_retry_end; 1 is the first retry
	MaxAttempts int    `json:"maxAttempts,omitempty"`
	DelayMS     int64  `json:"delayMs,omitempty"`
	Error       string `json:"errorMessage,omitempty"` // auto_retry_end: why it was given up; compaction_end: why there was none, or none by a model
	Success     bool   `json:"success,omitempty"`      // auto_retry_end

	Aborted bool `json:"aborted,omitempty"` // agent_settled, compaction_end

	Reason     string      `json:"reason,omitempty"`     // compaction_*: manual, threshold, overflow
	Compaction *Compaction `json:"compaction,omitempty"` // compaction_end, when there was one

	Level llm.Level `json:"level,omitempty"` // thinking_level_changed
	Name  string    `json:"name,omitempty"`  // session_info_changed
}

// A Compaction tells what an earlier part of the transcript was replaced by.
// Tokens are estimates.
type Compaction struct {
	Summary      string `json:"summary"`
	FirstKept    string `json:"firstKeptEntryId"`
	TokensBefore int    `json:"tokensBefore"`
	TokensAfter  int    `json:"estimatedTokensAfter"`

	Details json.RawMessage `json:"details,omitempty"` // the files that were read and changed
}
