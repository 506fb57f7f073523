package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Builder makes a stream's events and its message from the pieces that a
// dialect decodes, so that every dialect keeps the rules of the contract. It is
// for one goroutine. When the reader has stopped, its methods do nothing.
type Builder struct {
	yield   func(Event) bool
	message Message
	blocks  []*building
	open    int // the open text or thinking block, or -1
	started bool
	stopped bool
}

type building struct {
	block Block
	raw   bytes.Buffer
	ended bool
}

// NewBuilder makes a builder for one response. head is what is known before the
// response: API, Provider, Model, Timestamp.
func NewBuilder(head Message, yield func(Event) bool) *Builder {
	head.Role, head.Content = RoleAssistant, []Block{}
	return &Builder{yield: yield, message: head, open: -1}
}

// Start announces the response. It does nothing the second time.
func (b *Builder) Start() {
	if b.started {
		return
	}
	b.started = true
	head := b.message
	b.send(Event{Type: EventStart, Message: &head})
}

// Stopped tells whether the reader has stopped or the terminal event is out.
func (b *Builder) Stopped() bool { return b.stopped }

// Identify notes the id of the response. The first one given stays.
func (b *Builder) Identify(responseID string) {
	if b.message.ResponseID == "" {
		b.message.ResponseID = responseID
	}
}

// Text adds a piece of text.
func (b *Builder) Text(delta string) {
	b.add(delta, BlockText, Event{Type: EventTextDelta})
}

// Thinking adds a piece of thinking.
func (b *Builder) Thinking(delta string) {
	b.add(delta, BlockThinking, Event{Type: EventThinkingDelta})
}

func (b *Builder) add(delta string, kind BlockType, piece Event) {
	if delta == "" || b.stopped {
		return
	}
	if b.open < 0 || b.blocks[b.open].block.Type != kind {
		b.begin(kind)
	}
	b.blocks[b.open].raw.WriteString(delta)
	piece.Index, piece.Delta = b.open, delta
	b.send(piece)
}

// BeginText starts a block of text, also when one is open.
func (b *Builder) BeginText() { b.begin(BlockText) }

// BeginThinking starts a block of thinking, also when one is open.
func (b *Builder) BeginThinking() { b.begin(BlockThinking) }

// OpenThinking tells whether a block of thinking is open.
func (b *Builder) OpenThinking() bool { return b.isOpen(BlockThinking) }

// OpenText tells whether a block of text is open.
func (b *Builder) OpenText() bool { return b.isOpen(BlockText) }

func (b *Builder) isOpen(kind BlockType) bool {
	return b.open >= 0 && b.blocks[b.open].block.Type == kind
}

func (b *Builder) begin(kind BlockType) {
	if b.stopped {
		return
	}
	b.Start()
	b.closeText()
	b.open = b.append(Block{Type: kind})
	start := EventTextStart
	if kind == BlockThinking {
		start = EventThinkingStart
	}
	b.send(Event{Type: start, Index: b.open})
}

// Sign adds a piece of the signature of the open block of text or thinking. With
// none open it does nothing.
func (b *Builder) Sign(signature string) {
	if b.open < 0 {
		return
	}
	block := &b.blocks[b.open].block
	if block.Type == BlockThinking {
		block.ThinkingSignature += signature
	} else {
		block.TextSignature += signature
	}
}

// SignOver replaces the signature of the open block of text or thinking.
func (b *Builder) SignOver(signature string) {
	if b.open >= 0 {
		b.blocks[b.open].block.TextSignature, b.blocks[b.open].block.ThinkingSignature = "", ""
		b.Sign(signature)
	}
}

// Redacted adds thinking that only the provider can read.
func (b *Builder) Redacted(data string) {
	if b.stopped {
		return
	}
	b.BeginThinking()
	block := &b.blocks[b.open].block
	block.Redacted, block.ThinkingSignature = true, data
	b.closeText()
}

// SignTool notes the signature of the call at index.
func (b *Builder) SignTool(index int, signature string) {
	b.blocks[index].block.ThoughtSignature = signature
}

// Reason notes the provider's own word for why the response ended.
func (b *Builder) Reason(raw string) { b.message.RawStopReason = raw }

// Tool begins a tool call and gives its index. Several may be open at once.
func (b *Builder) Tool(id, name string) int {
	b.Start()
	b.closeText()
	block := Block{Type: BlockToolCall, ID: id, Name: name}
	i := b.append(block)
	b.send(Event{Type: EventToolStart, Index: i, Block: &block})
	return i
}

// NameTool adds what was not known when the call began. What is known stays.
func (b *Builder) NameTool(index int, id, name string) {
	block := &b.blocks[index].block
	if block.ID == "" {
		block.ID = id
	}
	if block.Name == "" {
		block.Name = name
	}
}

// ToolArguments adds a piece of the raw argument JSON of the call at index.
func (b *Builder) ToolArguments(index int, delta string) {
	if delta == "" || b.stopped || b.blocks[index].ended {
		return
	}
	b.blocks[index].raw.WriteString(delta)
	b.send(Event{Type: EventToolDelta, Index: index, Delta: delta})
}

// EndTool ends the call at index: its arguments are whole.
func (b *Builder) EndTool(index int) { b.end(index) }

// HasTools tells whether a tool call has begun.
func (b *Builder) HasTools() bool {
	for _, x := range b.blocks {
		if x.block.Type == BlockToolCall {
			return true
		}
	}
	return false
}

// Done ends the blocks and the stream. StopEnd and StopToolUse are set right by
// whether there are tool calls.
func (b *Builder) Done(stop StopReason, usage *Usage) {
	b.Start()
	for i := range b.blocks {
		b.end(i)
	}
	if stop == StopEnd && b.HasTools() {
		stop = StopToolUse
	} else if stop == StopToolUse && !b.HasTools() {
		stop = StopEnd
	}
	m := b.message
	m.StopReason, m.Usage = stop, usage
	for _, x := range b.blocks {
		m.Content = append(m.Content, x.block)
	}
	b.send(Event{Type: EventDone, Message: &m})
	b.stopped = true
}

// Fail ends the stream with what there is. Calls that were not whole say so.
func (b *Builder) Fail(err error, usage *Usage) {
	m := b.message
	m.StopReason, m.ErrorMessage, m.Usage = StopError, err.Error(), usage
	if Classify(err) == ClassAborted {
		m.StopReason = StopAborted
	}
	for _, x := range b.blocks {
		block := x.block
		if !x.ended {
			block = x.whole()
		}
		m.Content = append(m.Content, block)
	}
	b.send(Event{Type: EventError, Message: &m, Err: err})
	b.stopped = true
}

func (b *Builder) append(block Block) int {
	b.blocks = append(b.blocks, &building{block: block})
	return len(b.blocks) - 1
}

func (b *Builder) closeText() {
	if b.open >= 0 {
		b.end(b.open)
		b.open = -1
	}
}

func (b *Builder) end(i int) {
	x := b.blocks[i]
	if x.ended {
		return
	}
	x.ended, x.block = true, x.whole()
	block := x.block
	b.send(Event{Type: endOf(block.Type), Index: i, Block: &block})
}

func endOf(kind BlockType) EventType {
	switch kind {
	case BlockText:
		return EventTextEnd
	case BlockThinking:
		return EventThinkingEnd
	}
	return EventToolEnd
}

func (b *Builder) send(e Event) {
	if !b.stopped && !b.yield(e) {
		b.stopped = true
	}
}

// whole gives the block with what was collected.
func (x *building) whole() Block {
	block := x.block
	switch block.Type {
	case BlockText:
		block.Text = x.raw.String()
	case BlockThinking:
		block.Thinking = x.raw.String()
	case BlockToolCall:
		block.Arguments, block.ArgumentsError = Arguments(x.raw.Bytes())
	}
	return block
}

// Arguments gives raw argument JSON as it goes into a block: the same bytes when
// they are a JSON object, {} for nothing at all, else {} and what is wrong.
func Arguments(raw []byte) (json.RawMessage, string) {
	text := bytes.TrimSpace(raw)
	if len(text) == 0 {
		return json.RawMessage("{}"), ""
	}
	var probe json.RawMessage
	err := json.Unmarshal(text, &probe)
	if err == nil && text[0] == '{' {
		return json.RawMessage(bytes.Clone(text)), ""
	}
	reason := "the arguments are not a JSON object"
	if err != nil {
		reason = fmt.Sprintf("the arguments are not valid JSON: %v", err)
	}
	const limit = 2000
	if len(text) > limit {
		return json.RawMessage("{}"), fmt.Sprintf("%s; received: %s … (%d bytes in all)", reason, bytes.ToValidUTF8(text[:limit], nil), len(text))
	}
	return json.RawMessage("{}"), reason + "; received: " + string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
}
