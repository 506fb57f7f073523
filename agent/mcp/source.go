package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/internal/durable"
)

const (
	connectWithin = 15 * time.Second // a start and the first words
	maxName       = 64               // characters of a tool's name that all providers take
)

// Options say how servers are reached.
type Options struct {
	Config  Config
	Dir     string   // the working folder
	Env     []string // of servers that are started
	State   string   // the folder of what is known of their tools, and of their logs
	Version string   // of muntin
}

// A Source is the tools of all servers. It is closed when the agent is.
type Source struct {
	servers []*server
	tools   []agent.Tool
	cancel  context.CancelFunc
}

// a known is what is remembered of a server, so that it need not be started to know
// its tools.
type known struct {
	Server string     `json:"server"` // a hash of how it is configured
	Tools  []llm.Tool `json:"tools"`
}

// Open makes a source. Servers whose tools are not known from before are asked now, all
// at the same time. Problems are of servers that could not be asked, and whose tools
// are missing. The servers outlive ctx, until Close.
func Open(ctx context.Context, o Options) (s *Source, problems []string) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s = &Source{cancel: cancel}
	for _, name := range slices.Sorted(maps.Keys(o.Config)) {
		s.servers = append(s.servers, &server{name: name, conf: o.Config[name], opts: o, life: life})
	}
	specs := make([][]llm.Tool, len(s.servers))
	errs := make([]error, len(s.servers))
	var wg sync.WaitGroup
	for i, v := range s.servers {
		wg.Go(func() { specs[i], errs[i] = v.tools(ctx) })
	}
	wg.Wait()
	taken := map[string]bool{}
	for i, v := range s.servers {
		if errs[i] != nil {
			problems = append(problems, fmt.Sprintf("MCP server %s: %v", v.name, errs[i]))
		}
		for _, spec := range specs[i] {
			if !v.conf.wants(spec.Name) {
				continue
			}
			t := remote{server: v, name: spec.Name, spec: spec}
			t.spec.Name = toolName(v.name, spec.Name)
			if taken[t.spec.Name] {
				problems = append(problems, fmt.Sprintf("MCP server %s: its tool %s has another's name", v.name, spec.Name))
				continue
			}
			taken[t.spec.Name] = true
			s.tools = append(s.tools, t)
		}
	}
	return s, problems
}

// Tools are the tools of all servers, named mcp__SERVER__TOOL.
func (s *Source) Tools() []agent.Tool { return slices.Clone(s.tools) }

// Close ends all connections and the servers that were started.
func (s *Source) Close() error {
	errs := make([]error, len(s.servers))
	var wg sync.WaitGroup
	for i, v := range s.servers {
		wg.Go(func() { errs[i] = v.close() })
	}
	wg.Wait()
	s.cancel()
	return errors.Join(errs...)
}

// toolName is a name that providers take; one that is too long ends with a hash of
// all of it.
func toolName(server, tool string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, "mcp__"+server+"__"+tool)
	if len(name) <= maxName {
		return name
	}
	return name[:maxName-9] + "_" + hash(server, tool)[:8]
}

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// file is where what is known of the server is kept.
func (s *server) file() string {
	return filepath.Join(s.opts.State, hash(s.name, s.opts.Dir)[:16]+".json")
}

// print tells one configuration from another. It is a hash: headers may hold keys.
func (s *server) print() string {
	text, err := json.Marshal(s.conf)
	if err != nil {
		return "" // strings and numbers always encode
	}
	return hash(string(text))
}

func (s *server) remembered() ([]llm.Tool, bool) {
	data, err := os.ReadFile(s.file())
	if err != nil {
		return nil, false
	}
	var k known
	if json.Unmarshal(data, &k) != nil || k.Server != s.print() {
		return nil, false
	}
	return k.Tools, true
}

func (s *server) remember(tools []llm.Tool) error {
	data, err := json.Marshal(known{Server: s.print(), Tools: tools})
	if err == nil {
		err = os.MkdirAll(s.opts.State, 0o700)
	}
	if err == nil {
		err = durable.WriteFile(s.file(), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keeping what is known of it: %w", err)
	}
	return nil
}
