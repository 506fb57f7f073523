package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http" //nolint:depguard // the SDK is given a client, for the headers of a server
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/internal/proc"
)

// a server is one server, connected to while it is needed.
type server struct {
	name string
	conf Server
	opts Options
	life context.Context // of the connection

	mu      sync.Mutex // guards session and end, and is held while a connection is made
	session *mcp.ClientSession
	end     func() // ends the program and waits for it; never nil with a session
}

// connected gives the connection, made if there is none.
func (s *server) connected(ctx context.Context) (*mcp.ClientSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		return s.session, nil
	}
	transport, end, err := s.transport() //nolint:contextcheck // the program outlives the call
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "muntin", Version: s.opts.Version}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		end()
		return nil, fmt.Errorf("connecting to it: %w", err)
	}
	s.session, s.end = session, end
	return session, nil
}

// drop forgets a connection that no longer works.
func (s *server) drop(session *mcp.ClientSession) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil || s.session != session {
		return nil
	}
	err := session.Close()
	s.end()
	s.session, s.end = nil, nil
	return err
}

func (s *server) close() error {
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	_ = s.drop(session) // its program is ended however it takes the farewell
	return nil
}

func (s *server) transport() (t mcp.Transport, end func(), err error) {
	if s.conf.URL != "" {
		return s.http()
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, in.Close(), stdin.Close())
	}
	log, err := s.log()
	if err != nil {
		return nil, nil, errors.Join(err, in.Close(), stdin.Close(), out.Close(), stdout.Close())
	}
	ctx, cancel := context.WithCancel(s.life)
	var done sync.WaitGroup
	done.Go(func() {
		_, err := proc.Run(ctx, proc.Spec{
			Argv: append([]string{s.conf.Command}, s.conf.Args...), Dir: s.dir(), Env: s.env(), Stdin: in, Stdout: out, Stderr: log, Reap: true,
		})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(log, "muntin:", err)
		}
		_, _, _ = in.Close(), out.Close(), log.Close()
	})
	return &mcp.IOTransport{Reader: stdout, Writer: stdin}, func() {
		_ = stdin.Close()
		cancel()
		done.Wait()
		_ = stdout.Close()
	}, nil
}

// log is where the server's standard error goes; the last start's only.
func (s *server) log() (*os.File, error) {
	if err := os.MkdirAll(s.opts.State, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(s.opts.State, hash(s.name, s.opts.Dir)[:16]+".log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (s *server) dir() string {
	if s.conf.Cwd != "" {
		return s.conf.Cwd
	}
	return s.opts.Dir
}

func (s *server) env() []string {
	env := slices.Clone(s.opts.Env)
	for k, v := range s.conf.Env {
		env = append(env, k+"="+v)
	}
	return env
}

func (s *server) http() (mcp.Transport, func(), error) {
	at, err := url.Parse(s.conf.URL)
	if err != nil {
		return nil, nil, err
	}
	own := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: headers{next: own, host: at.Host, all: s.conf.Headers}}
	return &mcp.StreamableClientTransport{Endpoint: s.conf.URL, HTTPClient: client, DisableStandaloneSSE: true}, own.CloseIdleConnections, nil
}

// headers adds headers to requests to one host, and to no other that it may redirect to.
type headers struct {
	next http.RoundTripper
	host string
	all  map[string]string
}

// RoundTrip implements http.RoundTripper.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(h.all) > 0 && r.URL.Host == h.host {
		r = r.Clone(r.Context())
		for k, v := range h.all {
			r.Header.Set(k, v)
		}
	}
	return h.next.RoundTrip(r)
}

// tools are those that the server has: as remembered, else it is asked.
func (s *server) tools(ctx context.Context) ([]llm.Tool, error) {
	if tools, ok := s.remembered(); ok {
		return tools, nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	session, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := list(ctx, session)
	if err != nil {
		return nil, errors.Join(err, s.drop(session))
	}
	return tools, s.remember(tools)
}

func list(ctx context.Context, session *mcp.ClientSession) ([]llm.Tool, error) {
	tools := []llm.Tool{}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("asking for its tools: %w", err)
		}
		schema, err := json.Marshal(t.InputSchema)
		if err != nil || string(schema) == "null" {
			schema = []byte(`{"type":"object","properties":{}}`)
		}
		tools = append(tools, llm.Tool{Name: t.Name, Description: t.Description, Parameters: schema})
	}
	return tools, nil
}

// a remote is one tool of a server.
type remote struct {
	server *server
	name   string // as the server has it
	spec   llm.Tool
}

// Spec implements agent.Tool.
func (r remote) Spec() llm.Tool { return r.spec }

// Run implements agent.Tool. A server that has gone is started again for the next call:
// whether this one was carried out is not known.
func (r remote) Run(ctx context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	session, err := r.server.connected(ctx)
	if err != nil {
		return agent.ToolResult{}, r.failed(err)
	}
	limited, cancel := context.WithTimeout(ctx, r.server.conf.timeout())
	defer cancel()
	res, err := session.CallTool(limited, &mcp.CallToolParams{Name: r.name, Arguments: args})
	switch {
	case ctx.Err() != nil:
		return agent.ToolResult{}, context.Cause(ctx)
	case limited.Err() != nil:
		return agent.ToolResult{}, r.failed(fmt.Errorf("no answer within %s", r.server.conf.timeout()))
	case err != nil:
		if errors.Is(err, mcp.ErrConnectionClosed) || session.Ping(limited, nil) != nil {
			_ = r.server.drop(session)
		}
		return agent.ToolResult{}, r.failed(err)
	}
	return result(res)
}

func (r remote) failed(err error) error { return fmt.Errorf("MCP server %s: %w", r.server.name, err) }

// result is what a server gave, as blocks that a model can take.
func result(res *mcp.CallToolResult) (agent.ToolResult, error) {
	out := agent.ToolResult{IsError: res.IsError}
	text := func(s string) { out.Content = append(out.Content, llm.Block{Type: llm.BlockText, Text: s}) }
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			text(c.Text)
		case *mcp.ImageContent:
			out.Content = append(out.Content, llm.Block{Type: llm.BlockImage, Data: base64.StdEncoding.EncodeToString(c.Data), MimeType: c.MIMEType})
		case *mcp.EmbeddedResource:
			switch {
			case c.Resource == nil:
			case c.Resource.Text != "":
				text(c.Resource.Text)
			default:
				text(fmt.Sprintf("[%s: %d bytes of %s]", c.Resource.URI, len(c.Resource.Blob), c.Resource.MIMEType))
			}
		case *mcp.ResourceLink:
			text(fmt.Sprintf("[%s: %s]", c.Name, c.URI))
		case *mcp.AudioContent:
			text(fmt.Sprintf("[%d bytes of sound, %s]", len(c.Data), c.MIMEType))
		}
	}
	if res.StructuredContent != nil {
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return out, err
		}
		if out.Details = raw; len(out.Content) == 0 {
			text(string(raw))
		}
	}
	return out, nil
}
