package tool

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"muntin/agent"
)

const (
	keepTail   = 2 * MaxBytes // the tail held in memory; twice that before it is cut
	spillLimit = 256 << 20    // bytes of output kept on disk for one command
	updateGap  = 100 * time.Millisecond
)

// output takes a command's output in the order it arrives. It holds a rolling
// tail; from the moment that the model cannot be shown everything, all of it
// goes to a file as well.
type output struct {
	dir string
	tee func(string) // takes what comes, in whole characters; may be nil

	mu       sync.Mutex // guards all below
	tail     []byte
	total    int64 // bytes
	newlines int
	partial  bool // the last byte is no newline
	lineLen  int  // bytes of the last line
	file     *os.File
	digest   hash.Hash // of what is in the file
	written  int64
	spillErr error
	half     []byte // the start of a character whose end has not come, for tee

	dirty chan struct{}
}

func newOutput(spillDir string) *output {
	return &output{dir: spillDir, dirty: make(chan struct{}, 1)}
}

// Write never fails: a command must not die because its output cannot be kept.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if o.tee != nil {
		o.pass(p)
	}
	o.total += int64(len(p))
	o.countLines(p)
	o.tail = append(o.tail, p...)
	if o.file == nil && o.spillErr == nil && (o.total > MaxBytes || o.lines() > MaxLines) {
		o.startSpill()
	} else if o.file != nil {
		o.spill(p)
	}
	if len(o.tail) > 2*keepTail {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-keepTail:]...)
	}
	select {
	case o.dirty <- struct{}{}:
	default:
	}
	return len(p), nil
}

// pass gives what came to tee; a character that is cut in two waits for its end.
func (o *output) pass(p []byte) {
	p = append(o.half, p...)
	whole := len(p)
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if c := p[len(p)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-back:]) {
				whole = len(p) - back
			}
			break
		}
	}
	o.half = append([]byte(nil), p[whole:]...)
	if whole > 0 {
		o.tee(strings.ToValidUTF8(string(p[:whole]), "\uFFFD"))
	}
}

func (o *output) countLines(p []byte) {
	for line := range bytes.Lines(p) {
		if !o.partial {
			o.lineLen = 0
		}
		o.lineLen += len(line)
		o.partial = line[len(line)-1] != '\n'
		if !o.partial {
			o.newlines++
			o.lineLen--
		}
	}
}

func (o *output) lines() int {
	if o.partial {
		return o.newlines + 1
	}
	return o.newlines
}

// startSpill opens the file and writes all there was so far: the tail was not
// cut yet, because it may grow larger than the limits.
func (o *output) startSpill() {
	if o.dir == "" {
		o.spillErr = errors.New("there is no folder for it")
		return
	}
	name := make([]byte, 8)
	_, _ = rand.Read(name) // never fails, see crypto/rand
	if o.spillErr = os.MkdirAll(o.dir, 0o700); o.spillErr != nil {
		return
	}
	path := filepath.Join(o.dir, "bash-"+hex.EncodeToString(name)+".log")
	o.file, o.spillErr = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	o.digest = sha256.New()
	if o.spillErr == nil {
		o.spill(o.tail)
	}
}

func (o *output) spill(p []byte) {
	if o.spillErr != nil {
		return
	}
	if o.written+int64(len(p)) > spillLimit {
		p = p[:spillLimit-o.written]
		o.spillErr = fmt.Errorf("only the first %s are in it", size(spillLimit))
	}
	n, err := o.file.Write(p)
	o.written += int64(n)
	o.digest.Write(p[:n])
	if err != nil {
		o.spillErr = plainError(err)
	}
}

// close ends the file and returns what the model is shown.
func (o *output) close() shown {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.snapshot()
	if o.file != nil {
		if err := o.file.Close(); err != nil && o.spillErr == nil {
			o.spillErr = plainError(err)
		}
		s.path = o.named()
	}
	s.err = o.spillErr
	return s
}

// named gives the file the name of its content, so that the same output is kept
// once. A file that cannot be renamed keeps the name it has.
func (o *output) named() string {
	path := filepath.Join(o.dir, "bash-"+hex.EncodeToString(o.digest.Sum(nil)[:16])+".log")
	if err := os.Rename(o.file.Name(), path); err != nil {
		return o.file.Name()
	}
	return path
}

// shown is an output as the model gets it.
type shown struct {
	text string
	cut  truncation
	path string // where all of it is
	err  error  // why not all of it is there
}

func (o *output) snapshot() shown {
	text, cut := tailOf(strings.ToValidUTF8(string(o.tail), "\uFFFD"))
	cut.TotalLines, cut.TotalBytes = o.lines(), o.total
	if o.total > int64(len(o.tail)) && !cut.Truncated { // the tail shrank, because it is no UTF-8
		cut.By, cut.Truncated = "bytes", true
		cut.LastPartial = o.lineLen > len(o.tail)
	}
	cut.lastLineLength = o.lineLen
	return shown{text: text, cut: cut}
}

// notice tells what is missing and where it is; empty when nothing is.
func (s shown) notice() string {
	c := s.cut
	if !c.Truncated {
		return ""
	}
	var b strings.Builder
	if c.LastPartial {
		fmt.Fprintf(&b, "[Showing last %s of line %d (line is %s).", size(c.OutputBytes), c.TotalLines, size(c.lastLineLength))
	} else {
		fmt.Fprintf(&b, "[Showing lines %d-%d of %d", c.TotalLines-c.OutputLines+1, c.TotalLines, c.TotalLines)
		if c.By == "bytes" {
			fmt.Fprintf(&b, " (%s limit)", size(MaxBytes))
		}
		b.WriteString(".")
	}
	switch {
	case s.path == "":
		fmt.Fprintf(&b, " Full output not kept: %v]", s.err)
	case s.err != nil:
		fmt.Fprintf(&b, " Output: %s (%v)]", s.path, s.err)
	default:
		fmt.Fprintf(&b, " Full output: %s]", s.path)
	}
	return b.String()
}

// follow calls update with the output so far, at most once in updateGap, until
// done is closed.
func (o *output) follow(update func(agent.ToolResult), done <-chan struct{}) {
	for {
		select {
		case <-o.dirty:
		case <-done:
			return
		}
		o.mu.Lock()
		s := o.snapshot()
		o.mu.Unlock()
		update(agent.TextResult(s.text))
		gap := time.NewTimer(updateGap)
		select {
		case <-gap.C:
		case <-done:
			gap.Stop()
			return
		}
	}
}
