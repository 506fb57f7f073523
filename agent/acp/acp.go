// Package acp lets an editor drive the agent by the Agent Client Protocol
// (https://agentclientprotocol.com), version 1, over standard input and output. Tools
// work on the files themselves, not through the editor's buffers.
package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
)

// Options say what a Server serves with. All are needed.
type Options struct {
	In      io.Reader
	Out     io.Writer
	Version string // of muntin

	// Open opens a new conversation in a folder. onEvent takes its events, ui is for
	// what extensions say and ask.
	Open func(ctx context.Context, dir string, onEvent func(agent.Event), ui harness.UI) (*harness.Harness, error)
}

// A Server is the agent's side of a connection.
type Server struct {
	opts Options
	ctx  context.Context // of the serving
	conn *acp.AgentSideConnection

	mu    sync.Mutex // guards all below
	talks map[acp.SessionId]*talk
	asked int
}

// a talk is one conversation.
type talk struct {
	server *Server
	id     acp.SessionId // set before the first prompt
	agent  *harness.Harness

	mu    sync.Mutex // guards all below
	known bool       // the client has the id
	early []acp.SessionUpdate
}

// Serve serves until the input or ctx ends. All conversations are closed then.
func Serve(ctx context.Context, o Options) error {
	s := &Server{opts: o, ctx: ctx, talks: map[acp.SessionId]*talk{}}
	s.conn = acp.NewAgentSideConnection(s, o.Out, o.In)
	select {
	case <-s.conn.Done():
	case <-ctx.Done():
	}
	s.mu.Lock()
	talks := s.talks
	s.talks = nil
	s.mu.Unlock()
	var errs []error
	for _, t := range talks {
		errs = append(errs, t.agent.Close())
	}
	return errors.Join(errs...)
}

// Initialize implements acp.Agent.
func (s *Server) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber, AuthMethods: []acp.AuthMethod{},
		AgentInfo: &acp.Implementation{Name: "muntin", Version: s.opts.Version},
		AgentCapabilities: acp.AgentCapabilities{
			PromptCapabilities:  acp.PromptCapabilities{Image: true, EmbeddedContext: true},
			SessionCapabilities: acp.SessionCapabilities{Close: &acp.SessionCloseCapabilities{}},
		},
	}, nil
}

// NewSession implements acp.Agent.
func (s *Server) NewSession(_ context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	t := &talk{server: s}
	h, err := s.opts.Open(s.ctx, p.Cwd, t.onEvent, t) //nolint:contextcheck // the conversation outlives the request
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	t.agent, t.id = h, acp.SessionId(h.Header().ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talks == nil {
		return acp.NewSessionResponse{}, errors.Join(errors.New("the connection has ended"), h.Close())
	}
	s.talks[t.id] = t
	return acp.NewSessionResponse{SessionId: t.id}, nil
}

func (s *Server) talk(id acp.SessionId) (*talk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.talks[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("there is no session %q", id)
}

// Prompt implements acp.Agent. It returns when the agent has settled.
func (s *Server) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	t, err := s.talk(p.SessionId)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	t.flush()
	out, err := t.agent.PromptWith(ctx, input(p.Prompt))
	switch {
	case errors.Is(err, harness.ErrAborted):
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case err == nil && out.Stop == llm.StopLength:
		return acp.PromptResponse{StopReason: acp.StopReasonMaxTokens}, nil
	case out.Failure(err) != nil:
		return acp.PromptResponse{}, out.Failure(err)
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// input makes a prompt of blocks.
func input(blocks []acp.ContentBlock) harness.Input {
	var in harness.Input
	var texts []string
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			texts = append(texts, b.Text.Text)
		case b.Image != nil:
			in.Images = append(in.Images, llm.Block{Type: llm.BlockImage, Data: b.Image.Data, MimeType: b.Image.MimeType})
		case b.ResourceLink != nil:
			texts = append(texts, "@"+strings.TrimPrefix(b.ResourceLink.Uri, "file://"))
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			texts = append(texts, fmt.Sprintf("<file name=%q>\n%s\n</file>", strings.TrimPrefix(r.Uri, "file://"), r.Text))
		}
	}
	in.Text = strings.Join(texts, "\n")
	return in
}

// Cancel implements acp.Agent.
func (s *Server) Cancel(_ context.Context, p acp.CancelNotification) error {
	t, err := s.talk(p.SessionId)
	if err == nil {
		t.agent.Abort()
	}
	return err
}

// CloseSession implements acp.Agent.
func (s *Server) CloseSession(_ context.Context, p acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	t, err := s.talk(p.SessionId)
	if err != nil {
		return acp.CloseSessionResponse{}, err
	}
	s.mu.Lock()
	delete(s.talks, p.SessionId)
	s.mu.Unlock()
	return acp.CloseSessionResponse{}, t.agent.Close()
}

// Authenticate implements acp.Agent: keys are muntin's own affair.
func (s *Server) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

// The methods below are of capabilities that Initialize does not name.

// ListSessions implements acp.Agent.
func (s *Server) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound("session/list")
}

// ResumeSession implements acp.Agent.
func (s *Server) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, acp.NewMethodNotFound("session/resume")
}

// SetSessionConfigOption implements acp.Agent.
func (s *Server) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound("session/set_config_option")
}

// SetSessionMode implements acp.Agent.
func (s *Server) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound("session/set_mode")
}

// flush sends what was said before the client could know of the session.
func (t *talk) flush() {
	t.mu.Lock()
	early := t.early
	t.known, t.early = true, nil
	t.mu.Unlock()
	for _, u := range early {
		t.tell(u)
	}
}

// tell sends an update. That the client has gone ends the serving elsewhere.
func (t *talk) tell(u acp.SessionUpdate) {
	t.mu.Lock()
	if !t.known {
		t.early = append(t.early, u)
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	_ = t.server.conn.SessionUpdate(t.server.ctx, acp.SessionNotification{SessionId: t.id, Update: u})
}

// onEvent tells the client what happens in a run.
func (t *talk) onEvent(e agent.Event) {
	id := acp.ToolCallId(e.ToolCallID)
	switch e.Type {
	case agent.EventMessageUpdate:
		switch e.Stream.Type {
		case llm.EventTextDelta:
			t.tell(acp.UpdateAgentMessageText(e.Stream.Delta))
		case llm.EventThinkingDelta:
			t.tell(acp.UpdateAgentThoughtText(e.Stream.Delta))
		default: // calls are told of when they run
		}
	case agent.EventToolStart:
		t.tell(acp.StartToolCall(id, e.ToolName, acp.WithStartKind(kind(e.ToolName)), acp.WithStartRawInput(e.Args), acp.WithStartStatus(acp.ToolCallStatusInProgress)))
	case agent.EventToolUpdate:
		t.tell(acp.UpdateToolCall(id, acp.WithUpdateContent(content(e.Partial))))
	case agent.EventToolEnd:
		status := acp.ToolCallStatusCompleted
		if e.IsError {
			status = acp.ToolCallStatusFailed
		}
		t.tell(acp.UpdateToolCall(id, acp.WithUpdateStatus(status), acp.WithUpdateContent(content(e.Result))))
	default: // the protocol has no word for it
	}
}

func kind(tool string) acp.ToolKind {
	switch tool {
	case "read", "ls":
		return acp.ToolKindRead
	case "edit", "write":
		return acp.ToolKindEdit
	case "grep", "find":
		return acp.ToolKindSearch
	case "bash":
		return acp.ToolKindExecute
	}
	return acp.ToolKindOther
}

func content(r *agent.ToolResult) []acp.ToolCallContent {
	all := []acp.ToolCallContent{}
	for _, b := range r.Content {
		switch b.Type {
		case llm.BlockText:
			all = append(all, acp.ToolContent(acp.TextBlock(b.Text)))
		case llm.BlockImage:
			all = append(all, acp.ToolContent(acp.ImageBlock(b.Data, b.MimeType)))
		default: // results hold no others
		}
	}
	return all
}

// Ask implements harness.UI. The protocol asks for permissions only: a question for a
// text is not answered.
func (t *talk) Ask(ctx context.Context, q harness.Question) harness.Answer {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	if !known {
		return harness.Answer{}
	}
	options := []acp.PermissionOption{}
	switch q.Kind {
	case harness.AskConfirm:
		options = append(options, acp.PermissionOption{OptionId: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
			acp.PermissionOption{OptionId: "no", Name: "No", Kind: acp.PermissionOptionKindRejectOnce})
	case harness.AskSelect:
		for i, o := range q.Options {
			options = append(options, acp.PermissionOption{OptionId: acp.PermissionOptionId(strconv.Itoa(i)), Name: o, Kind: acp.PermissionOptionKindAllowOnce})
		}
	default:
		return harness.Answer{}
	}
	s := t.server
	s.mu.Lock()
	s.asked++
	call := acp.ToolCallUpdate{ToolCallId: acp.ToolCallId("question-" + strconv.Itoa(s.asked)), Title: &q.Title}
	s.mu.Unlock()
	if q.Text != "" {
		call.Content = []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(q.Text))}
	}
	res, err := s.conn.RequestPermission(ctx, acp.RequestPermissionRequest{SessionId: t.id, ToolCall: call, Options: options})
	if err != nil || res.Outcome.Selected == nil {
		return harness.Answer{}
	}
	id := string(res.Outcome.Selected.OptionId)
	if q.Kind == harness.AskConfirm {
		return harness.Answer{Answered: true, Confirmed: id == "yes"}
	}
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= len(q.Options) {
		return harness.Answer{}
	}
	return harness.Answer{Answered: true, Value: q.Options[i]}
}

// Notify implements harness.UI.
func (t *talk) Notify(n harness.Notice) {
	text := n.Text
	if n.Extension != "" {
		text = n.Extension + ": " + text
	}
	t.tell(acp.UpdateAgentMessageText(text + "\n"))
}

// Status implements harness.UI: the protocol has no place for it.
func (t *talk) Status(harness.Status) {}
