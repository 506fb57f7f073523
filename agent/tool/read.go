package tool

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"muntin/agent"
	"muntin/agent/llm"
)

type readTool struct{ set *Set }

type readArgs struct {
	Path   string  `json:"path"`
	Offset *number `json:"offset"`
	Limit  *number `json:"limit"`
}

type readDetails struct {
	Lines      int         `json:"lines"`
	Truncation *truncation `json:"truncation,omitempty"`
}

// Spec implements agent.Tool.
func (t readTool) Spec() llm.Tool {
	return llm.Tool{
		Name: "read",
		Description: fmt.Sprintf("Read a file. Returns at most %d lines or %s, whichever comes first; "+
			"for more, call again with offset. Pictures (PNG, JPEG, GIF, WebP, BMP) are shown; other binary files cannot be read.", MaxLines, size(MaxBytes)),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"File to read, relative to the working folder or absolute"},` +
			`"offset":{"type":"number","description":"Line to start at, counted from 1"},` +
			`"limit":{"type":"number","description":"Most lines to return"}},` +
			`"required":["path"],"additionalProperties":false}`),
	}
}

// Run implements agent.Tool.
func (t readTool) Run(ctx context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
	var a readArgs
	if err := decode(args, &a); err != nil {
		return agent.ToolResult{}, err
	}
	w := window{first: 1, max: MaxLines}
	if a.Offset != nil && *a.Offset > 1 {
		w.first = int(*a.Offset)
	}
	if a.Limit != nil {
		if *a.Limit < 1 {
			return agent.ToolResult{}, fmt.Errorf("limit %g: want at least 1", float64(*a.Limit))
		}
		w.max, w.asked = min(int(*a.Limit), MaxLines), *a.Limit <= MaxLines
	}
	picture, err := t.read(ctx, a.Path, &w)
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	if picture != nil {
		return *picture, nil
	}
	if w.first > w.total && w.first > 1 {
		return agent.ToolResult{}, fmt.Errorf("reading %s: offset %d is beyond end of file (%d lines total)", a.Path, w.first, w.total)
	}
	details := readDetails{Lines: w.lines}
	if cut := w.truncation(); cut.Truncated {
		details.Truncation = &cut
	}
	return textResult(w.text(a.Path), details), nil
}

// read fills the window with a text, or gives the result for a picture.
func (t readTool) read(ctx context.Context, name string, w *window) (picture *agent.ToolResult, err error) {
	path, err := t.set.path(name)
	if err != nil {
		return nil, err
	}
	real, err := realPath(path)
	if err != nil {
		return nil, plainError(err)
	}
	f, _, err := openRegular(real, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, sniffSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, plainError(err)
	}
	head = head[:n]
	if mime := imageType(head); mime != "" {
		res, err := imageResult(f, mime)
		return &res, err
	}
	if isBinary(head) {
		return nil, errors.New("it is a binary file")
	}
	digest := sha256.New()
	if err := w.fill(ctx, f, digest); err != nil {
		return nil, plainError(err)
	}
	t.set.seen.set(real, sum(digest.Sum(nil)))
	return nil, nil //nolint:nilnil // a text has no picture
}

// A window is the part of a file that is shown. It counts the whole file and
// holds only what fits the limits.
type window struct {
	first int  // line, from 1
	max   int  // lines
	asked bool // max is the caller's own

	body    strings.Builder
	lines   int   // in body
	total   int   // lines of the file
	bytes   int64 // of the file
	by      string
	tooLong int // length of the first line, when it alone is over the limit
}

// fill reads r to its end, because the model is told how much there is, and
// because the digest must stand for the whole file.
func (w *window) fill(ctx context.Context, r io.Reader, digest hash.Hash) error {
	in := bufio.NewReaderSize(io.TeeReader(r, digest), 64<<10)
	line, length, inLine := []byte(nil), 0, false
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		piece, err := in.ReadSlice('\n')
		w.bytes += int64(len(piece))
		if len(piece) > 0 {
			inLine = true
			length += len(piece)
			if w.wants(w.total+1) && len(line) <= MaxBytes+1 { // no longer line is ever shown
				line = append(line, piece...)
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if inLine {
			w.total++
			w.add(line, length)
			line, length, inLine = line[:0], 0, false
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// wants reports whether line n may be shown.
func (w *window) wants(n int) bool { return n >= w.first && w.by == "" }

// add takes the line with the number w.total.
func (w *window) add(line []byte, length int) {
	if !w.wants(w.total) {
		return
	}
	if w.lines == w.max {
		w.by = "lines"
		return
	}
	text, ended := strings.CutSuffix(string(line), "\n")
	grow := length
	if ended && w.lines == 0 {
		grow-- // newlines stand between lines only
	} else if !ended && w.lines > 0 {
		grow++
	}
	if w.body.Len()+grow > MaxBytes {
		w.by = "bytes"
		if w.lines == 0 {
			w.tooLong = length
		}
		return
	}
	if w.lines > 0 {
		w.body.WriteByte('\n')
	}
	w.body.WriteString(text)
	w.lines++
}

func (w *window) truncation() truncation {
	return truncation{
		Truncated: w.by != "" && (w.by == "bytes" || !w.asked), By: w.by, TotalLines: w.total, TotalBytes: w.bytes,
		OutputLines: w.lines, OutputBytes: w.body.Len(), FirstTooLong: w.tooLong > 0,
	}
}

// text is what the model gets: the lines and, where some are missing, how to
// get more.
func (w *window) text(name string) string {
	if w.total == 0 {
		return "(empty file)"
	}
	if w.tooLong > 0 {
		return fmt.Sprintf("[Line %d is %s, exceeds %s limit. Use bash: sed -n '%dp' %s | head -c %d]",
			w.first, size(w.tooLong), size(MaxBytes), w.first, shellQuote(name), MaxBytes)
	}
	body := strings.ToValidUTF8(w.body.String(), "\uFFFD")
	next := w.first + w.lines
	switch {
	case w.by == "":
		return body
	case w.by == "lines" && w.asked:
		return fmt.Sprintf("%s\n\n[%d more lines in file. Use offset=%d to continue.]", body, w.total-next+1, next)
	case w.by == "bytes":
		return fmt.Sprintf("%s\n\n[Showing lines %d-%d of %d (%s limit). Use offset=%d to continue.]", body, w.first, next-1, w.total, size(MaxBytes), next)
	}
	return fmt.Sprintf("%s\n\n[Showing lines %d-%d of %d. Use offset=%d to continue.]", body, w.first, next-1, w.total, next)
}

// shellQuote is only for a hint to the model; nothing here runs it.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
