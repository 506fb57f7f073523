// Package agent is the kernel of a coding agent: the loop between a model and
// its tools, the two queues of waiting messages, abort, and one ordered stream
// of events. It knows nothing of files, networks, terminals or sessions; those
// belong to the packages around it.
//
// The rules of use:
//   - An Agent makes one run at a time. Prompt and Continue run it in the caller's
//     goroutine until it has settled. All other methods may be called from any
//     goroutine at any time, also from OnEvent, hooks and tools.
//   - Events are the only way out. OnEvent is called by the run, one event at a
//     time, in order. A message counts as accepted when OnEvent has taken its
//     message_end: the user's message before the request leaves, the model's tool
//     calls before the first of them runs. An error from OnEvent stops the run.
//   - Every run that began ends with exactly one agent_settled.
//   - An abort settles within about 200 ms, even when a tool or a provider ignores
//     its context. Then its goroutine is left behind and what it gives is ignored.
package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"muntin/agent/llm"
)

// Options are what an Agent is made of. Provider and Model are needed.
type Options struct {
	Provider  llm.Provider
	Model     string // the id without the provider
	System    string // the system prompt
	Tools     []Tool
	MaxTokens int       // for one response; 0: the provider's default
	Thinking  llm.Level // "": the provider's default
	SessionID string    // for providers that keep a cache by conversation
	Messages  []llm.Message

	// OnEvent takes each event. The context does not end with an abort, so that
	// a session can still be written. It must not call Prompt or Continue.
	OnEvent func(ctx context.Context, e Event) error

	SteeringMode QueueMode // default OneAtATime
	FollowUpMode QueueMode // default OneAtATime
	Hooks        Hooks
	Retry        RetryPolicy
	Now          func() time.Time // for timestamps; default time.Now
}

// An Agent is a model, its tools and a transcript. New makes one.
type Agent struct {
	onEvent   func(ctx context.Context, e Event) error
	hooks     Hooks
	now       func() time.Time
	sessionID string
	kick      chan struct{} // holds one: the queues have changed

	mu       sync.Mutex // guards all below
	config   config
	retry    RetryPolicy
	giveUp   chan struct{} // closed by AbortRetry; nil while no retry is waited for
	messages []llm.Message // only ever appended to or replaced
	steering queue
	followUp queue
	abort    context.CancelCauseFunc // nil while no run goes on
}

// config is what a request is made of besides the transcript.
type config struct {
	provider  llm.Provider
	model     string
	system    string
	maxTokens int
	thinking  llm.Level
	tools     toolSet
}

// New makes an idle agent. It fails without a provider or model, when two tools
// have one name, and when a tool's parameters are not a JSON object.
func New(o Options) (*Agent, error) {
	if o.Provider == nil {
		return nil, errors.New("making an agent: no provider")
	}
	if o.Model == "" {
		return nil, errors.New("making an agent: no model")
	}
	tools, err := newToolSet(o.Tools)
	if err != nil {
		return nil, fmt.Errorf("making an agent: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnEvent == nil {
		o.OnEvent = func(context.Context, Event) error { return nil }
	}
	a := &Agent{
		onEvent:   o.OnEvent,
		hooks:     o.Hooks,
		retry:     o.Retry.withDefaults(rand.Float64),
		now:       o.Now,
		sessionID: o.SessionID,
		kick:      make(chan struct{}, 1),
		config: config{
			provider: o.Provider, model: o.Model, system: o.System, maxTokens: o.MaxTokens, thinking: o.Thinking, tools: tools,
		},
		messages: slices.Clone(o.Messages),
	}
	a.SetQueueModes(o.SteeringMode, o.FollowUpMode)
	return a, nil
}

// Prompt adds a user's message to the transcript and runs until the agent has
// settled. It returns nil when the run ended well, and otherwise
//   - ErrBusy while a run goes on; the message is not taken;
//   - an error that wraps ErrAborted after Abort or the end of ctx;
//   - a *ModelError when no response could be had;
//   - an *EventError when OnEvent failed.
//
// Except for ErrBusy and a ctx that had ended before, the message is in the
// transcript if and only if OnEvent has taken its message_end.
func (a *Agent) Prompt(ctx context.Context, m llm.Message) error {
	if m.Role == "" {
		m.Role = llm.RoleUser
	}
	if m.Role != llm.RoleUser {
		return fmt.Errorf("prompting: a message of role %s is not a prompt", m.Role)
	}
	r, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer a.end()
	return r.execute([]pending{{message: a.stamp(m)}})
}

// Continue runs on from the transcript as it is: after tool results, a message of
// the user, or a failed or aborted response. After a finished answer it needs a
// queued message, else it returns ErrNothingToContinue. Errors are as for Prompt.
func (a *Agent) Continue(ctx context.Context) error {
	r, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer a.end()
	var first []pending
	if !a.awaitsModel() {
		if first = a.take(&a.steering); len(first) == 0 {
			first = a.take(&a.followUp)
		}
		if len(first) == 0 {
			return ErrNothingToContinue
		}
	}
	return r.execute(first)
}

// Abort ends the present run, if there is one, and returns at once. The run then
// settles within about 200 ms. Queued messages stay queued.
func (a *Agent) Abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abort != nil {
		a.abort(ErrAborted)
	}
}

// Running tells whether a run goes on.
func (a *Agent) Running() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.abort != nil
}

// Messages gives the transcript so far. Its messages must not be changed.
func (a *Agent) Messages() []llm.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.messages)
}

// SetMessages replaces the transcript. It returns ErrBusy while a run goes on;
// within a run, hooks return a new transcript.
func (a *Agent) SetMessages(messages []llm.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abort != nil {
		return ErrBusy
	}
	a.messages = slices.Clone(messages)
	return nil
}

// Model gives the id of the model that the next request goes to.
func (a *Agent) Model() string { return a.settings().model }

// SetModel changes model and provider from the next request on. A nil provider
// keeps the present one.
func (a *Agent) SetModel(provider llm.Provider, model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if provider != nil {
		a.config.provider = provider
	}
	a.config.model = model
}

// SetThinking changes the level of thinking from the next request on; "" leaves
// it to the provider.
func (a *Agent) SetThinking(level llm.Level) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config.thinking = level
}

// SetRetry changes when failed requests are made again, from the next failure on.
func (a *Agent) SetRetry(p RetryPolicy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.retry = p.withDefaults(rand.Float64)
}

// AbortRetry ends the wait for a retry, if there is one: the run then ends with
// the failure that it would have been for. It returns at once.
func (a *Agent) AbortRetry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.giveUp != nil {
		close(a.giveUp)
		a.giveUp = nil
	}
}

// SetSystem changes the system prompt from the next request on.
func (a *Agent) SetSystem(system string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config.system = system
}

// SetTools changes the tools from the next request on. It fails as New does, and
// then changes nothing.
func (a *Agent) SetTools(tools []Tool) error {
	set, err := newToolSet(tools)
	if err != nil {
		return fmt.Errorf("setting the tools: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config.tools = set
	return nil
}

func (a *Agent) settings() config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config
}

// stamp gives a message its time when it has none.
func (a *Agent) stamp(m llm.Message) llm.Message {
	if m.Timestamp == 0 {
		m.Timestamp = a.now().UnixMilli()
	}
	if m.Content == nil {
		m.Content = []llm.Block{}
	}
	return m
}

// awaitsModel tells whether a request makes sense without a new message.
func (a *Agent) awaitsModel() bool {
	messages := a.Messages()
	if len(llm.Unanswered(messages)) > 0 {
		return true
	}
	sent := llm.Sendable(messages)
	return len(sent) > 0 && sent[len(sent)-1].Role != llm.RoleAssistant
}

func (a *Agent) begin(ctx context.Context) (*run, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAborted, context.Cause(ctx))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abort != nil {
		return nil, ErrBusy
	}
	runCtx, cancel := context.WithCancelCause(ctx)
	a.abort = cancel
	return &run{agent: a, ctx: runCtx, eventCtx: context.WithoutCancel(ctx), stop: cancel}, nil
}

func (a *Agent) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.abort(nil)
	a.abort = nil
}
