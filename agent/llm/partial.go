package llm

import "strings"

// A Partial is a response as far as it has come, made from the events of its
// stream. The zero value is ready. It is for one goroutine.
type Partial struct {
	head   Message
	blocks []*partialBlock
}

type partialBlock struct {
	block Block
	text  strings.Builder
	ended bool
}

// maxBlocks bounds what a wrong index can make a Partial allocate.
const maxBlocks = 10_000

// Add takes the next event of the stream. Events that make no sense are ignored.
func (p *Partial) Add(e Event) {
	switch e.Type {
	case EventStart:
		if e.Message != nil {
			p.head = *e.Message
		}
	case EventTextStart:
		p.open(e, BlockText)
	case EventThinkingStart:
		p.open(e, BlockThinking)
	case EventToolStart:
		p.open(e, BlockToolCall)
	case EventTextDelta, EventThinkingDelta, EventToolDelta:
		if b := p.at(e.Index); b != nil {
			b.text.WriteString(e.Delta)
		}
	case EventTextEnd, EventThinkingEnd, EventToolEnd:
		if b := p.at(e.Index); b != nil && e.Block != nil {
			b.block, b.ended = *e.Block, true
		}
	}
}

func (p *Partial) at(i int) *partialBlock {
	if i < 0 || i >= len(p.blocks) {
		return nil
	}
	return p.blocks[i]
}

func (p *Partial) open(e Event, t BlockType) {
	if e.Index < 0 || e.Index >= maxBlocks {
		return
	}
	for e.Index >= len(p.blocks) {
		p.blocks = append(p.blocks, &partialBlock{})
	}
	b := p.blocks[e.Index]
	if e.Block != nil {
		b.block = *e.Block
	}
	b.block.Type = t
}

// Message gives the response so far. A tool call that has not ended has the
// arguments {} and says so in ArgumentsError.
func (p *Partial) Message() Message {
	m := p.head
	m.Role = RoleAssistant
	m.Content = []Block{}
	for _, pb := range p.blocks {
		b := pb.block
		if !pb.ended {
			text := pb.text.String()
			switch b.Type {
			case BlockText:
				b.Text = text
			case BlockThinking:
				b.Thinking = text
			case BlockToolCall:
				b.Arguments, b.ArgumentsError = []byte("{}"), "the call was cut off: "+text
			}
		}
		if b.Type != "" {
			m.Content = append(m.Content, b)
		}
	}
	return m
}
