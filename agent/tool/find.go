package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"muntin/agent"
	"muntin/agent/llm"
)

const (
	findLimit = 1000
	listLimit = 500
)

type searchDetails struct {
	Results      int         `json:"results"`
	LimitReached int         `json:"resultLimitReached,omitempty"`
	Truncation   *truncation `json:"truncation,omitempty"`
}

type findTool struct{ set *Set }

type findArgs struct {
	Pattern string  `json:"pattern"`
	Path    string  `json:"path"`
	Limit   *number `json:"limit"`
}

// Spec implements agent.Tool.
func (t findTool) Spec() llm.Tool {
	return llm.Tool{
		Name: "find",
		Description: fmt.Sprintf("Find files and folders by a glob. Returns paths relative to the searched folder, without what .gitignore leaves out. "+
			"At most %d results or %s.", findLimit, size(MaxBytes)),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"Glob, as '*.go' for names at any depth, 'src/**/*.{ts,tsx}' for paths"},` +
			`"path":{"type":"string","description":"Folder to search, the working folder if not given"},` +
			`"limit":{"type":"number","description":"Most results to return"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

// Run implements agent.Tool.
func (t findTool) Run(ctx context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	var a findArgs
	if err := decode(args, &a); err != nil {
		return agent.ToolResult{}, err
	}
	limit, err := limitOf(a.Limit, findLimit)
	if err != nil {
		return agent.ToolResult{}, err
	}
	g, err := parseGlob(a.Pattern, globOptions{fold: a.Pattern == strings.ToLower(a.Pattern)})
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("finding %s: %w", a.Pattern, err)
	}
	root, isDir, err := t.set.searchRoot(a.Path)
	if err == nil && !isDir {
		err = errors.New("it is a file, not a folder")
	}
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("finding in %s: %w", a.Path, err)
	}
	var found []string
	err = t.set.walk(ctx, root, func(e entry) error {
		if !g.match(e.rel, e.kind.IsDir()) {
			return nil
		}
		if len(found) == limit { // one more was seen: only now it is known that there is more
			found = append(found, "")
			return errStop
		}
		if e.kind.IsDir() {
			e.rel += "/"
		}
		found = append(found, e.rel)
		return nil
	})
	if err != nil {
		return agent.ToolResult{}, err
	}
	lines, more := firstOf(found, limit)
	return listing{
		lines: lines, found: len(lines), more: more, limit: limit,
		none: "No files found matching pattern", what: "results", advice: ", or refine pattern",
	}.result(), nil
}

type lsTool struct{ set *Set }

type lsArgs struct {
	Path  string  `json:"path"`
	Limit *number `json:"limit"`
}

// Spec implements agent.Tool.
func (t lsTool) Spec() llm.Tool {
	return llm.Tool{
		Name: "ls",
		Description: fmt.Sprintf("List a folder, hidden files too. Folders end with a slash. At most %d entries or %s.",
			listLimit, size(MaxBytes)),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Folder to list, the working folder if not given"},` +
			`"limit":{"type":"number","description":"Most entries to return"}},` +
			`"additionalProperties":false}`),
	}
}

// Run implements agent.Tool.
func (t lsTool) Run(ctx context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	var a lsArgs
	if err := decode(args, &a); err != nil {
		return agent.ToolResult{}, err
	}
	limit, err := limitOf(a.Limit, listLimit)
	if err != nil {
		return agent.ToolResult{}, err
	}
	root, isDir, err := t.set.searchRoot(a.Path)
	if err == nil && !isDir {
		err = errors.New("it is a file, not a folder")
	}
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("listing %s: %w", a.Path, err)
	}
	list, err := os.ReadDir(root)
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("listing %s: %w", a.Path, plainError(err))
	}
	slices.SortStableFunc(list, func(a, b os.DirEntry) int {
		return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name()))
	})
	var names []string
	for _, item := range list {
		if ctx.Err() != nil {
			return agent.ToolResult{}, context.Cause(ctx)
		}
		if len(names) > limit {
			break
		}
		name := item.Name()
		if info, err := os.Stat(root + "/" + name); err == nil && info.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	lines, more := firstOf(names, limit)
	return listing{lines: lines, found: len(lines), more: more, limit: limit, none: "(empty directory)", what: "entries"}.result(), nil
}

// limitOf is the caller's limit, or the usual one.
func limitOf(n *number, usual int) (int, error) {
	if n == nil {
		return usual, nil
	}
	if !(*n >= 1) {
		return 0, fmt.Errorf("limit %g: want at least 1", float64(*n))
	}
	return int(min(*n, 1e6)), nil
}

// firstOf cuts lines to the limit and tells whether there were more.
func firstOf(lines []string, limit int) (first []string, more bool) {
	return lines[:min(len(lines), limit)], len(lines) > limit
}

// A listing turns what a search found into a result within the limits.
type listing struct {
	lines  []string
	found  int  // results, matches, entries; lines may hold others beside them
	more   bool // than the limit
	limit  int
	none   string // said when nothing was found
	what   string // results, matches, entries
	advice string
	notes  []string // more to say
}

func (l listing) result() agent.ToolResult {
	if l.found == 0 {
		return textResult(l.none, searchDetails{})
	}
	details, notes := searchDetails{Results: l.found}, []string(nil)
	if l.more {
		details.LimitReached = l.limit
		notes = append(notes, fmt.Sprintf("%d %s limit reached. Use limit=%d for more%s", l.limit, l.what, 2*l.limit, l.advice))
	}
	text, cut := headOf(l.lines)
	if cut.Truncated {
		details.Truncation = &cut
		notes = append(notes, size(MaxBytes)+" limit reached")
	}
	return textResult(withNotes(text, append(notes, l.notes...)), details)
}

// withNotes puts what is to be said of a text behind it.
func withNotes(text string, notes []string) string {
	if len(notes) == 0 {
		return text
	}
	return text + "\n\n[" + strings.Join(notes, ". ") + "]"
}

// headOf is the first whole lines that fit the byte limit.
func headOf(lines []string) (string, truncation) {
	var b strings.Builder
	t := truncation{TotalLines: len(lines)}
	for i, line := range lines {
		line = strings.ToValidUTF8(line, "\uFFFD")
		t.TotalBytes += int64(len(line)) + 1
		if t.Truncated {
			continue
		}
		if b.Len()+len(line)+1 > MaxBytes {
			t.Truncated, t.By = true, "bytes"
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		t.OutputLines++
	}
	t.OutputBytes = b.Len()
	return b.String(), t
}
