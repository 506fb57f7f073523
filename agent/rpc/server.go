package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/internal/term"
)

// A Place says where a conversation is held, and with which model it begins.
type Place struct {
	File     string // "": in memory
	Parent   string // the file that a new conversation comes from; "": none
	Model    string // provider/id of a new conversation; "": what the file says
	Thinking llm.Level
}

// A Scope is a model that cycle_model goes through.
type Scope struct {
	Name     string    // provider/id
	Thinking llm.Level // "": it stays as it is
}

// Options say what a Server serves with. All functions are needed; they are called
// by one goroutine at a time.
type Options struct {
	In  io.Reader // see term.NewSource for how a read that waits is ended
	Out io.Writer

	// Open opens the coding agent at a place. onEvent takes its events.
	Open func(ctx context.Context, at Place, onEvent func(agent.Event)) (*harness.Harness, error)
	// NewFile names the file of a new conversation; "" when they are in memory.
	NewFile func() (string, error)
	// OpenModel makes a model that can be asked, of its full name.
	OpenModel func(ctx context.Context, name string) (harness.Model, error)
	// Models are the models that can be asked.
	Models func() []llm.Model
	// Export writes a session as a page for people. path "" chooses one; it returns
	// the file's path.
	Export func(path string, s *session.Session) (string, error)

	Scope []Scope // empty: cycle_model goes through Models
}

// A Server is an agent that another program drives: commands come in as one JSON
// object a line, responses and events go out in the same way. Commands and events
// are Pi's. What a command sets holds for the session that is open, and for those
// opened after it, and is written into no file of the user's.
type Server struct {
	opts Options
	out  lineWriter
	ctx  context.Context // of the serving; ends when nobody reads any more
	work sync.WaitGroup

	events sync.Mutex // guards enc and held; taken last
	enc    encoder
	held   *agent.Event // an agent_settled that may not be the last word

	compacting atomic.Bool
	dialogs    dialogs

	mu        sync.Mutex // guards all below
	agent     *harness.Harness
	run       chan struct{}              // closed when the present run or compaction has ended; nil: none goes on
	closing   bool                       // no run follows the present one
	commands  map[int]context.CancelFunc // of bash
	lastKey   int
	modes     struct{ steering, followUp agent.QueueMode }
	noRetry   bool
	noCompact bool
}

// NewServer makes a server.
func NewServer(o Options) *Server {
	s := &Server{opts: o, out: lineWriter{out: o.Out}, commands: map[int]context.CancelFunc{}}
	s.modes.steering, s.modes.followUp = agent.OneAtATime, agent.OneAtATime
	return s
}

// Serve opens the agent at a place and serves until In ends or ctx does, which both
// are an orderly end: what runs is aborted and waited for, and the session closed.
// The error is that of opening, of writing to Out or of reading In.
func (s *Server) Serve(ctx context.Context, at Place) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	s.out.onError(cancel)
	h, err := s.opts.Open(ctx, at, s.onEvent)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.agent = h
	s.mu.Unlock()
	s.Waiting() // for what an extension said before
	lines, stop := s.read()
	err = s.serve(ctx, lines)
	stop()
	s.endCommands()
	s.pause()
	cancel()
	s.work.Wait()
	return errors.Join(err, s.out.failed(), s.agent.Close())
}

// a line of the input, or why there are no more.
type input struct {
	line []byte
	err  error
}

// read starts to read lines. stop ends that and waits for it.
func (s *Server) read() (lines <-chan input, stop func()) {
	source := term.NewSource(s.opts.In)
	in := make(chan input)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(in)
		r := newLineReader(source, maxLine)
		for {
			line, err := r.next()
			select {
			case in <- input{line, err}:
			case <-done:
				return
			}
			if err != nil && !errors.Is(err, errLong) {
				return
			}
		}
	})
	return in, func() {
		close(done)
		source.Cancel()
		wg.Wait()
		source.Close()
	}
}

func (s *Server) serve(ctx context.Context, lines <-chan input) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case in := <-lines:
			switch {
			case in.err == nil:
				s.line(ctx, in.line)
			case errors.Is(in.err, errLong):
				s.out.write(refusal(nil, "parse", in.err))
			case errors.Is(in.err, io.EOF):
				return nil
			default:
				return fmt.Errorf("reading commands: %w", in.err)
			}
		}
	}
}

// a response answers one command.
type response struct {
	ID      json.RawMessage `json:"id,omitempty"`
	Type    string          `json:"type"`
	Command string          `json:"command"`
	Success bool            `json:"success"`
	Data    any             `json:"data,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func refusal(id json.RawMessage, command string, err error) response {
	return response{ID: id, Type: "response", Command: command, Error: err.Error()}
}

// a command as it came in.
type command struct {
	id   json.RawMessage
	name string
	raw  []byte
}

// params reads what a command says beside its name.
func (c command) params(into any) error {
	if err := json.Unmarshal(c.raw, into); err != nil {
		return fmt.Errorf("reading the command: %w", err)
	}
	return nil
}

// null is the data of an answer that is null; without it there is no data.
func null() json.RawMessage { return json.RawMessage("null") }

// line carries out one command.
func (s *Server) line(ctx context.Context, line []byte) {
	var head struct {
		ID   json.RawMessage `json:"id"`
		Type string          `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		s.out.write(refusal(head.ID, "parse", said(fmt.Sprintf("Failed to parse command: %v", err))))
		return
	}
	c := command{id: head.ID, name: head.Type, raw: line}
	if c.name == "extension_ui_response" {
		s.answerDialog(line)
		return
	}
	do, ok := verbs()[c.name]
	if !ok {
		s.out.write(refusal(c.id, c.name, said(fmt.Sprintf("Unknown command: %s", c.name))))
		return
	}
	a := do(s, ctx, c)
	if a.later != nil {
		s.work.Go(func() { s.answer(c, a.later()) })
		return
	}
	s.answer(c, a)
	if a.then != nil {
		s.work.Go(a.then)
	}
}

// an answer is what comes of a command.
type answer struct {
	data  any
	err   error
	then  func()        // begun in a goroutine of its own once the answer is out
	later func() answer // gives the answer, in a goroutine of its own
}

func (s *Server) answer(c command, a answer) {
	if a.err != nil {
		s.out.write(refusal(c.id, c.name, a.err))
		return
	}
	s.out.write(response{ID: c.id, Type: "response", Command: c.name, Success: true, Data: a.data})
}

// onEvent writes an event. Whether an agent_settled is the last word of a run is
// known when the run has returned.
func (s *Server) onEvent(e agent.Event) {
	s.events.Lock()
	defer s.events.Unlock()
	switch e.Type {
	case agent.EventSettled:
		s.held = &e
		return
	case agent.EventCompaction, agent.EventCompactionEnd:
		s.compacting.Store(e.Type == agent.EventCompaction)
	}
	s.writeEvent(e)
}

// writeEvent needs the events lock.
func (s *Server) writeEvent(e agent.Event) {
	o, err := s.enc.encode(e)
	if err != nil {
		o = object{"type": e.Type, "errorMessage": err.Error()}
	}
	s.out.write(o)
}

// settle writes the agent_settled that was held back, with why the run failed where
// no message says it.
func (s *Server) settle(failure error) {
	s.events.Lock()
	defer s.events.Unlock()
	if s.held == nil {
		return
	}
	e := *s.held
	s.held = nil
	var model *agent.ModelError
	if failure != nil && !errors.As(failure, &model) && !errors.Is(failure, harness.ErrAborted) {
		e.Error = failure.Error()
	}
	s.writeEvent(e)
}
