// Package mcp gives the agent the tools of servers that speak the Model Context
// Protocol (https://modelcontextprotocol.io), over standard input and output or
// streamable HTTP. Nothing happens where no server is configured, and a server whose
// tools are known from before is connected to when one of them is first called.
package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// DefaultTimeout bounds one call of a tool, where a server names none.
const DefaultTimeout = time.Minute

// A Server is one of an mcp.json. It has a command or a URL.
type Server struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // added to those that every server gets
	Cwd     string            `json:"cwd,omitempty"` // default: the agent's working folder

	Type    string            `json:"type,omitempty"` // stdio, http or streamable-http; may be left out
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	Disabled bool     `json:"disabled,omitempty"`
	Timeout  int      `json:"timeout,omitempty"` // milliseconds, of a call
	Tools    []string `json:"tools,omitempty"`   // names or patterns with *; none: all
}

// A Config is the servers by name.
type Config map[string]Server

// Load reads mcp.json files, in the form that others have: {"mcpServers": {name:
// server}}. Files that are not there are left out; a server of a later file takes the
// place of one with its name. $NAME, ${NAME} and ${NAME:-default} in values are taken
// from getenv.
func Load(getenv func(string) string, files ...string) (Config, error) {
	all := Config{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the MCP servers: %w", err)
		}
		c, err := Parse(data, getenv)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		maps.Copy(all, c)
	}
	maps.DeleteFunc(all, func(_ string, s Server) bool { return s.Disabled })
	return all, nil
}

// Parse reads the text of an mcp.json.
func Parse(data []byte, getenv func(string) string) (Config, error) {
	var file struct {
		Servers Config `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[name].expanded(getenv)
		errs = append(errs, s.check(name))
		file.Servers[name] = s
	}
	return file.Servers, errors.Join(errs...)
}

func (s Server) check(name string) error {
	switch {
	case name == "":
		return errors.New("a server needs a name")
	case s.Disabled:
		return nil
	case (s.Command == "") == (s.URL == ""):
		return fmt.Errorf("server %s: want a command or a url", name)
	case s.URL != "" && s.Type != "" && s.Type != "http" && s.Type != "streamable-http":
		return fmt.Errorf("server %s: type %q is not spoken: only stdio and http (streamable HTTP)", name, s.Type)
	case s.URL != "" && !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://"):
		return fmt.Errorf("server %s: the url is no http or https", name)
	}
	for _, p := range s.Tools {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("server %s: tools %q: %w", name, p, err)
		}
	}
	return nil
}

func (s Server) expanded(getenv func(string) string) Server {
	with := func(text string) string {
		return os.Expand(text, func(name string) string {
			name, other, _ := strings.Cut(name, ":-")
			if v := getenv(name); v != "" {
				return v
			}
			return other
		})
	}
	each := func(m map[string]string) map[string]string {
		n := make(map[string]string, len(m))
		for k, v := range m {
			n[k] = with(v)
		}
		return n
	}
	s.Command, s.URL, s.Cwd = with(s.Command), with(s.URL), with(s.Cwd)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = with(a)
	}
	s.Env, s.Headers = each(s.Env), each(s.Headers)
	return s
}

func (s Server) timeout() time.Duration {
	if s.Timeout > 0 {
		return time.Duration(s.Timeout) * time.Millisecond
	}
	return DefaultTimeout
}

func (s Server) wants(tool string) bool {
	return len(s.Tools) == 0 || slices.ContainsFunc(s.Tools, func(p string) bool {
		ok, err := path.Match(p, tool)
		return ok && err == nil
	})
}
