package llmtest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"muntin/agent/llm"
)

// Collect reads a whole stream and fails the test when it breaks a rule of the
// contract.
func Collect(t testing.TB, stream func(func(llm.Event) bool)) []llm.Event {
	t.Helper()
	var events []llm.Event
	for e := range stream {
		events = append(events, e)
	}
	checkOrder(t, events)
	return events
}

func checkOrder(t testing.TB, events []llm.Event) {
	t.Helper()
	if err := CheckEvents(events); err != nil {
		t.Fatalf("the stream breaks the contract: %v", err)
	}
}

// CheckEvents tells whether the events of a whole stream keep the rules of the
// contract: exactly one terminal event, at the end; updates after the start;
// blocks that start once, grow, and end once with what they grew to; and a message
// that is made of those blocks.
func CheckEvents(events []llm.Event) error {
	if len(events) == 0 {
		return errors.New("it is empty")
	}
	c := &eventChecker{}
	for i, e := range events {
		terminal := e.Type == llm.EventDone || e.Type == llm.EventError
		if terminal != (i == len(events)-1) {
			return fmt.Errorf("event %d of %d is %s", i, len(events), e.Type)
		}
		if err := c.event(e); err != nil {
			return fmt.Errorf("event %d, %s: %w", i, e.Type, err)
		}
	}
	return nil
}

type eventChecker struct {
	started bool
	partial llm.Partial
	blocks  []checkedBlock
}

type checkedBlock struct {
	kind  llm.BlockType
	raw   bytes.Buffer
	ended bool
}

func (c *eventChecker) event(e llm.Event) error {
	c.partial.Add(e)
	switch e.Type {
	case llm.EventStart:
		if c.started {
			return errors.New("a second start")
		}
		c.started = true
		return nil
	case llm.EventDone, llm.EventError:
		return c.terminal(e)
	}
	if !c.started {
		return errors.New("before the start")
	}
	kind, step, _ := strings.Cut(string(e.Type), "_")
	block := map[string]llm.BlockType{"text": llm.BlockText, "thinking": llm.BlockThinking, "toolcall": llm.BlockToolCall}[kind]
	if step == "start" {
		if e.Index != len(c.blocks) {
			return fmt.Errorf("block %d starts, want %d", e.Index, len(c.blocks))
		}
		c.blocks = append(c.blocks, checkedBlock{kind: block})
		return nil
	}
	if e.Index < 0 || e.Index >= len(c.blocks) || c.blocks[e.Index].kind != block || c.blocks[e.Index].ended {
		return fmt.Errorf("block %d is not an open %s", e.Index, block)
	}
	b := &c.blocks[e.Index]
	if step == "delta" {
		if e.Delta == "" {
			return errors.New("an empty delta")
		}
		b.raw.WriteString(e.Delta)
		return nil
	}
	b.ended = true
	return b.matches(e.Block)
}

func (b *checkedBlock) matches(got *llm.Block) error {
	if got == nil {
		return errors.New("no block")
	}
	want := llm.Block{Type: b.kind, ID: got.ID, Name: got.Name, TextSignature: got.TextSignature, ThoughtSignature: got.ThoughtSignature}
	switch b.kind {
	case llm.BlockText:
		want.Text = b.raw.String()
	case llm.BlockThinking:
		want.Thinking, want.ThinkingSignature, want.Redacted = b.raw.String(), got.ThinkingSignature, got.Redacted
	case llm.BlockToolCall:
		want.Arguments, want.ArgumentsError = llm.Arguments(b.raw.Bytes())
	}
	if !reflect.DeepEqual(*got, want) {
		return fmt.Errorf("the block is %+v, its deltas make %+v", *got, want)
	}
	return nil
}

func (c *eventChecker) terminal(e llm.Event) error {
	if e.Message == nil {
		return errors.New("no message")
	}
	failed := e.Message.StopReason == llm.StopError || e.Message.StopReason == llm.StopAborted
	if failed != (e.Type == llm.EventError) || failed != (e.Err != nil) {
		return fmt.Errorf("stop reason %s, error %v", e.Message.StopReason, e.Err) //nolint:errorlint // it is no cause, and may be nil
	}
	if e.Message.Content == nil {
		return errors.New("the content is nil, which is null in JSON")
	}
	if len(e.Message.Content) != len(c.blocks) {
		return fmt.Errorf("%d blocks in the message, %d in the stream", len(e.Message.Content), len(c.blocks))
	}
	for i, b := range c.blocks {
		if !failed && !b.ended {
			return fmt.Errorf("block %d has no end", i)
		}
		if b.ended && !reflect.DeepEqual(c.partial.Message().Content[i], e.Message.Content[i]) {
			return fmt.Errorf("block %d of the message is not the one of the stream", i)
		}
	}
	return nil
}
