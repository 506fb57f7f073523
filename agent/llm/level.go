package llm

import (
	"context"
	"iter"
)

// WithLevel gives a provider whose requests ask for a level of thinking where they
// do not say one themselves.
func WithLevel(p Provider, level Level) Provider {
	if level == "" {
		return p
	}
	return leveled{provider: p, level: level}
}

type leveled struct {
	provider Provider
	level    Level
}

// Stream implements Provider.
func (l leveled) Stream(ctx context.Context, req Request) iter.Seq[Event] {
	if req.Thinking == "" {
		req.Thinking = l.level
	}
	return l.provider.Stream(ctx, req)
}
