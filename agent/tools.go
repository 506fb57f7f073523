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
	// error becomes an error result with its text, behind the content that was
	// returned with it; a panic becomes one too. Run returns soon after ctx
	// ends, whatever its children do: a Run that does not is abandoned, that is,
	// its goroutine is left alone and its result is ignored. update may be
	// called with the output so far and blocks until the event was handled; calls
	// after Run returned are ignored.
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
	// Terminate asks to stop the run after this batch. It counts only when every
	// result of the batch asks for it.
	Terminate bool `json:"-"`
}

// TextResult makes a result of one text.
func TextResult(text string) ToolResult {
	return ToolResult{Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}
