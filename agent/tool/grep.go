package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"muntin/agent"
	"muntin/agent/llm"
)

const (
	grepLimit   = 100
	grepLine    = 500 // characters shown of a line
	grepContext = 50  // lines on each side, at most
	grepHold    = 4 * grepLine
)

type grepTool struct{ set *Set }

type grepArgs struct {
	Pattern    string  `json:"pattern"`
	Path       string  `json:"path"`
	Glob       string  `json:"glob"`
	IgnoreCase bool    `json:"ignoreCase"`
	Literal    bool    `json:"literal"`
	Context    *number `json:"context"`
	Limit      *number `json:"limit"`
}

// Spec implements agent.Tool.
func (t grepTool) Spec() llm.Tool {
	return llm.Tool{
		Name: "grep",
		Description: fmt.Sprintf("Search the contents of files for a regular expression. Returns paths, line numbers and lines, without what .gitignore leaves out. "+
			"At most %d matches or %s; lines are cut to %d characters.", grepLimit, size(MaxBytes), grepLine),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"Regular expression, or plain text with literal"},` +
			`"path":{"type":"string","description":"Folder or file to search, the working folder if not given"},` +
			`"glob":{"type":"string","description":"Only files that fit, as '*.go' or 'src/**/*.{ts,tsx}'"},` +
			`"ignoreCase":{"type":"boolean","description":"Take upper and lower case as the same"},` +
			`"literal":{"type":"boolean","description":"Take the pattern as plain text"},` +
			`"context":{"type":"number","description":"Lines to show before and after each match"},` +
			`"limit":{"type":"number","description":"Most matches to return"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

// Run implements agent.Tool.
func (t grepTool) Run(ctx context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	var a grepArgs
	if err := decode(args, &a); err != nil {
		return agent.ToolResult{}, err
	}
	q, err := t.query(a)
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("searching for %q: %w", a.Pattern, err)
	}
	found := newMatches(q.limit)
	if err := t.search(ctx, q, found); err != nil {
		return agent.ToolResult{}, fmt.Errorf("searching for %q: %w", a.Pattern, err)
	}
	return found.result(), nil
}

// search uses ripgrep where it is installed and works, and else looks itself.
func (t grepTool) search(ctx context.Context, q query, found *matches) error {
	if t.set.ripgrep != "" {
		err := q.ripgrep(ctx, t.set, found)
		if err == nil || ctx.Err() != nil {
			return err
		}
		*found = *newMatches(q.limit)
	}
	return q.own(ctx, t.set, found)
}

// A query is a search as the model wants it.
type query struct {
	grepArgs
	re      *regexp.Regexp
	picks   *glob  // nil: every file
	root    string // a folder or a file
	isDir   bool
	context int
	limit   int
}

func (t grepTool) query(a grepArgs) (query, error) {
	q := query{grepArgs: a}
	if a.Pattern == "" {
		return q, errors.New("the pattern is empty")
	}
	if strings.ContainsAny(a.Pattern, "\x00\n") {
		return q, errors.New("the pattern holds a line break or a NUL byte, and lines are searched one by one")
	}
	var err error
	if q.limit, err = limitOf(a.Limit, grepLimit); err != nil {
		return q, err
	}
	if a.Context != nil && *a.Context > 0 {
		q.context = int(min(*a.Context, grepContext))
	}
	if q.re, err = compile(a); err != nil {
		return q, err
	}
	if a.Glob != "" {
		g, err := parseGlob(a.Glob, globOptions{negate: true})
		if err != nil {
			return q, err
		}
		q.picks = &g
	}
	q.root, q.isDir, err = t.set.searchRoot(a.Path)
	return q, err
}

// compile checks the pattern with Go's syntax (RE2), which is ripgrep's but for
// details; so an answer does not depend on what is installed.
func compile(a grepArgs) (*regexp.Regexp, error) {
	expr := a.Pattern
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("%w (for plain text, set literal)", err)
	}
	return re, nil
}

// own searches without any other program.
func (q query) own(ctx context.Context, s *Set, found *matches) error {
	if !q.isDir {
		return q.file(ctx, entry{rel: filepath.Base(q.root), path: q.root}, found)
	}
	return s.walk(ctx, q.root, func(e entry) error {
		if !e.kind.IsRegular() || q.picks != nil && !q.picks.match(e.rel, false) {
			return nil
		}
		return q.file(ctx, e, found)
	})
}

// file searches one file. What cannot be opened, and what is binary, holds nothing.
func (q query) file(ctx context.Context, e entry, found *matches) error {
	f, _, err := openRegular(e.path, os.O_RDONLY)
	if err != nil {
		return nil //nolint:nilerr // as with every search program
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	if head, _ := in.Peek(sniffSize); isBinary(head) {
		return nil
	}
	found.startFile(e.rel, q.context)
	for n := 1; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := readLine(in)
		if err != nil {
			return nil //nolint:nilerr // the end, or what cannot be read further
		}
		if !found.line(n, line, q.re.Match(line)) {
			return errStop
		}
	}
}

// maxMatchLine is how much of one line is searched; the rest is skipped.
const maxMatchLine = 1 << 20

// readLine gives a line without its end. It holds no more of it than is searched.
// The slice is good until the next call.
func readLine(in *bufio.Reader) ([]byte, error) {
	piece, err := in.ReadSlice('\n')
	if err == nil || errors.Is(err, io.EOF) && len(piece) > 0 {
		return bytes.TrimRight(piece, "\r\n"), nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	line := bytes.Clone(piece)
	for errors.Is(err, bufio.ErrBufferFull) {
		piece, err = in.ReadSlice('\n')
		if len(line) < maxMatchLine {
			line = append(line, piece...)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
