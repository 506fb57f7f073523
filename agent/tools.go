package agent

import (
	"context"
	"encoding/json"

	"muntin/agent/llm"
)

// A Tool is something the model may call. Run may be called from several
// goroutines at once unless Sequential is true for it.
type Tool interface {
	// Spec is what the model is told.
	Spec() llm.Tool
	// Run carries out one call. args is a JSON object that fits the schema. An
	// error becomes an error result with its text; Run returns soon after ctx
	// ends, whatever its children do. update may be called, from one goroutine,
	// with the output so far; calls after Run returned are ignored.
	Run(ctx context.Context, args json.RawMessage, update func(ToolResult)) (ToolResult, error)
}

// A SequentialTool never runs beside another: a batch that holds one runs in
// order.
type SequentialTool interface {
	Tool
	Sequential() bool
}

// A ToolResult is what a call gives back. Details are for people and the
// session, never for the model.
type ToolResult struct {
	Content []llm.Block     `json:"content"`
	Details json.RawMessage `json:"details,omitempty"`
	IsError bool            `json:"isError,omitempty"`
}

// TextResult makes a result of one text.
func TextResult(text string) ToolResult {
	return ToolResult{Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}
