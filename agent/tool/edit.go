package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"muntin/agent"
	"muntin/agent/llm"
)

// maxEdit is the largest file that edit takes: it is held in memory.
const maxEdit = 32 << 20

type editTool struct{ set *Set }

type editArgs struct {
	Path  string   `json:"path"`
	Edits []change `json:"edits"`
}

type editDetails struct {
	Diff      string `json:"diff"`
	FirstLine int    `json:"firstChangedLine"`
}

// Spec implements agent.Tool.
func (t editTool) Spec() llm.Tool {
	return llm.Tool{
		Name: "edit",
		Description: "Change parts of a file. Each oldText must be in the file exactly once, with its spaces and line ends, and the edits must not overlap. " +
			"All edits are matched against the file as it is before the call. Keep oldText as short as it can be while unique.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"File to change, relative to the working folder or absolute"},` +
			`"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{` +
			`"oldText":{"type":"string","description":"Text in the file"},` +
			`"newText":{"type":"string","description":"Text to put in its place"}},` +
			`"required":["oldText","newText"],"additionalProperties":false}}},` +
			`"required":["path","edits"],"additionalProperties":false}`),
	}
}

// Run implements agent.Tool.
func (t editTool) Run(ctx context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	a, err := decodeEdit(args)
	if err != nil {
		return agent.ToolResult{}, err
	}
	details, err := t.edit(ctx, a)
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("editing %s: %w", a.Path, err)
	}
	return textResult(fmt.Sprintf("Successfully replaced %d block(s) in %s", len(a.Edits), a.Path), details), nil
}

func (t editTool) edit(ctx context.Context, a editArgs) (editDetails, error) {
	path, err := t.set.path(a.Path)
	if err != nil {
		return editDetails{}, err
	}
	real, err := realPath(path)
	if err != nil {
		return editDetails{}, plainError(err)
	}
	leave, err := t.set.queue.enter(ctx, real)
	if err != nil {
		return editDetails{}, err
	}
	defer leave()
	f, info, err := openRegular(real, os.O_RDWR)
	if err != nil {
		return editDetails{}, err
	}
	defer f.Close()
	content, err := readWhole(f, maxEdit)
	if err != nil {
		return editDetails{}, err
	}
	if isBinary(content) {
		return editDetails{}, errors.New("it is a binary file")
	}
	if t.set.seen.stale(real, sha256.Sum256(content)) {
		return editDetails{}, errors.New("the file changed since you last read or wrote it: read it again first")
	}
	result, spans, err := applyChanges(string(content), a.Edits)
	if err != nil {
		return editDetails{}, err
	}
	diff, first := diffOf(string(content), spans)
	if ctx.Err() != nil {
		return editDetails{}, context.Cause(ctx)
	}
	if !unchanged(real, info) {
		return editDetails{}, errors.New("the file changed while it was edited: read it again first")
	}
	if err := t.set.replace(real, []byte(result), info); err != nil {
		return editDetails{}, err
	}
	return editDetails{Diff: diff, FirstLine: first}, nil
}

// unchanged reports whether the file is still the one that was read. What is
// left is the moment between this look and the rename.
func unchanged(real string, info fs.FileInfo) bool {
	now, err := os.Stat(real)
	return err == nil && os.SameFile(info, now) && now.Size() == info.Size() && now.ModTime().Equal(info.ModTime())
}

// decodeEdit reads the arguments and mends what models get wrong: edits as a
// string of JSON, as one object, or as oldText and newText beside path.
func decodeEdit(args json.RawMessage) (editArgs, error) {
	var raw struct {
		Path    string          `json:"path"`
		Edits   json.RawMessage `json:"edits"`
		OldText *string         `json:"oldText"`
		NewText *string         `json:"newText"`
	}
	if err := decode(args, &raw); err != nil {
		return editArgs{}, err
	}
	a := editArgs{Path: raw.Path}
	edits := bytes.TrimSpace(raw.Edits)
	if len(edits) > 0 && edits[0] == '"' {
		var inner string
		if err := json.Unmarshal(edits, &inner); err == nil {
			edits = bytes.TrimSpace([]byte(inner))
		}
	}
	if len(edits) > 0 && edits[0] == '{' {
		edits = append(append([]byte{'['}, edits...), ']')
	}
	if len(edits) > 0 {
		if err := json.Unmarshal(edits, &a.Edits); err != nil {
			return editArgs{}, fmt.Errorf("reading the arguments: edits: %w", err)
		}
	}
	if raw.OldText != nil && raw.NewText != nil {
		a.Edits = append(a.Edits, change{*raw.OldText, *raw.NewText})
	}
	if len(a.Edits) == 0 {
		return editArgs{}, errors.New("edits is empty: want at least one {oldText, newText}")
	}
	return a, nil
}
