package tool

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/internal/durable"
)

const newFileMode = 0o666 // before the umask, as every program has it

type writeTool struct{ set *Set }

type writeArgs struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

type writeDetails struct {
	Lines   int  `json:"lines"`
	Bytes   int  `json:"bytes"`
	Created bool `json:"created"`
}

// Spec implements agent.Tool.
func (t writeTool) Spec() llm.Tool {
	return llm.Tool{
		Name: "write",
		Description: "Write a whole file. Makes the file and its folders if needed, else replaces what the file holds. " +
			"To change a part of a file, use edit.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"File to write, relative to the working folder or absolute"},` +
			`"content":{"type":"string","description":"All that the file will hold"}},` +
			`"required":["path","content"],"additionalProperties":false}`),
	}
}

// Run implements agent.Tool.
func (t writeTool) Run(ctx context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	var a writeArgs
	if err := decode(args, &a); err != nil {
		return agent.ToolResult{}, err
	}
	if a.Content == nil {
		return agent.ToolResult{}, errors.New("content is missing")
	}
	created, err := t.write(ctx, a.Path, []byte(*a.Content))
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("writing %s: %w", a.Path, err)
	}
	details := writeDetails{Lines: countLines(*a.Content), Bytes: len(*a.Content), Created: created}
	return textResult(fmt.Sprintf("Successfully wrote %s to %s", size(details.Bytes), a.Path), details), nil
}

func (t writeTool) write(ctx context.Context, name string, content []byte) (created bool, err error) {
	path, err := t.set.path(name)
	if err != nil {
		return false, err
	}
	real, err := realPath(path)
	if err != nil {
		return false, plainError(err)
	}
	leave, err := t.set.queue.enter(ctx, real)
	if err != nil {
		return false, err
	}
	defer leave()
	f, info, err := openRegular(real, os.O_WRONLY) // may the file be written at all?
	switch {
	case err == nil:
		defer f.Close()
	case errors.Is(err, fs.ErrNotExist):
		created = true
		if err := os.MkdirAll(filepath.Dir(real), 0o777); err != nil {
			return false, err
		}
	default:
		return false, err
	}
	return created, t.set.replace(real, content, info)
}

// replace puts content in the place of the file, which keeps its mode, and
// remembers it as known to the agent. info is nil for a new file.
func (s *Set) replace(real string, content []byte, info fs.FileInfo) error {
	mode := fs.FileMode(newFileMode)
	if info != nil {
		mode = info.Mode().Perm()
	}
	if err := durable.WriteFile(real, content, mode); err != nil {
		return err
	}
	s.seen.set(real, sha256.Sum256(content))
	return nil
}
