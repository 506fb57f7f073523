package pty

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"muntin/internal/cast"
)

const (
	recordCap   = 64 << 20
	recordPause = 100 * time.Millisecond
	redacted    = "•••"
)

// A recorder writes what the child prints as an asciicast v3:
// https://docs.asciinema.org/manual/asciicast/v3/. Its methods may be called
// from several goroutines. An error ends the recording, never the session;
// close returns it.
type recorder struct {
	path   string
	limit  int64
	secret *redactor

	mu    sync.Mutex // guards all below
	file  *os.File
	w     *bufio.Writer
	size  int64
	last  time.Time
	cols  int
	rows  int
	buf   []byte // of the line that is written
	tail  []byte // the start of a character whose rest has not come yet
	flush *time.Timer
	armed bool // flush will come
	files int  // that were begun
	err   error

	recent recent // of what is recorded
}

// openRecorder goes on with the recording at path or begins it. At limit bytes
// (0: 64 MiB) the file becomes screen.1.cast and a new one is begun. The
// secrets are left out of it, wherever the output holds them as they are.
func openRecorder(path string, limit int64, secrets []string) (*recorder, error) {
	r := &recorder{path: path, limit: limit, secret: newRedactor(secrets), last: time.Now()}
	if r.limit <= 0 {
		r.limit = recordCap
	}
	r.flush = time.AfterFunc(time.Hour, r.pause)
	r.flush.Stop()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the recording: %w", err)
	}
	if r.size, err = wholeLines(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("opening the recording %s: %w", path, err)
	}
	r.use(f)
	err = cast.ReadFile(path, func(ev cast.Event) error {
		r.recent.total, r.last = ev.Offset, ev.Time
		if ev.Code == cast.Output {
			r.recent.total += int64(len(ev.Data))
		}
		return nil
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("opening the recording %s: %w", path, err)
	}
	return r, nil
}

// wholeLines cuts off a last line that a crash left unfinished, and returns
// the length of the file.
func wholeLines(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return 0, err
	}
	const chunk = 64 << 10
	for end := size; end > 0; {
		start := max(end-chunk, 0)
		buf := make([]byte, end-start)
		if _, err := f.ReadAt(buf, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			whole := start + int64(i) + 1
			return whole, f.Truncate(whole)
		}
		end = start
	}
	return 0, f.Truncate(0)
}

func (r *recorder) use(f *os.File) {
	r.file = f
	r.w = bufio.NewWriterSize(f, 64<<10)
}

// resize records the size of the screen. The first call begins the recording.
func (r *recorder) resize(cols, rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cols == cols && r.rows == rows {
		return
	}
	first := r.cols == 0
	r.cols, r.rows = cols, rows
	if r.size == 0 {
		r.header()
		return
	}
	if first {
		// The interval before it is that of the pause, so that other players
		// keep the time too, and the label has it to the nanosecond.
		r.event("m", []byte(cast.Again+time.Now().UTC().Format(time.RFC3339Nano)))
	}
	r.event("r", []byte(strconv.Itoa(cols)+"x"+strconv.Itoa(rows)))
}

// output records what the child printed.
func (r *recorder) output(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b = r.secret.pass(b)
	if len(r.tail) > 0 {
		b = append(r.tail, b...)
	}
	whole := len(b) - partialRune(b)
	r.tail = append(r.tail[:0:0], b[whole:]...)
	if whole > 0 {
		r.text(b[:whole])
	}
}

// text records whole characters of output.
func (r *recorder) text(b []byte) {
	b = validText(b)
	r.event("o", b)
	r.recent.add(b) // behind the event: a file that is begun with it says where
}

// close records the exit status, writes everything out and gives back the
// first error there was. Only the first call does something.
func (r *recorder) close(code int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recent.end {
		return nil
	}
	if rest := append(r.tail, r.secret.rest()...); len(rest) > 0 {
		r.text(rest)
	}
	r.recent.end = true
	r.recent.wake()
	r.event("x", strconv.AppendInt(nil, int64(code), 10))
	r.flush.Stop()
	r.armed = true // nothing is to be written any more
	return errors.Join(r.err, r.w.Flush(), r.file.Close())
}

// pause writes out what came in the last moment.
func (r *recorder) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed = false
	if r.err == nil {
		r.err = r.w.Flush()
	}
}

func (r *recorder) header() {
	begin := r.last.UTC()
	line, err := json.Marshal(cast.Header{
		Version: 3, Term: cast.Term{Cols: r.cols, Rows: r.rows}, Timestamp: begin.Unix(), Offset: r.recent.total, Time: &begin,
	})
	if err != nil {
		r.err = err
		return
	}
	r.line(append(line, '\n'))
}

// event writes one event with the time since the one before.
func (r *recorder) event(code string, data []byte) {
	now := time.Now()
	line := strconv.AppendFloat(append(r.buf[:0], '['), max(now.Sub(r.last), 0).Seconds(), 'f', 6, 64)
	line = append(line, `, "`...)
	line = append(line, code...)
	line = append(line, `", `...)
	line = appendJSON(line, data)
	r.buf = append(line, "]\n"...)
	r.line(r.buf) // it may begin a file, whose time is that of the event before
	r.last = now
	if !r.armed {
		r.armed = true
		r.flush.Reset(recordPause)
	}
}

func (r *recorder) line(line []byte) {
	if r.err != nil {
		return
	}
	if r.size > 0 && r.size+int64(len(line)) > r.limit {
		if r.rotate(); r.err != nil {
			return
		}
	}
	n, err := r.w.Write(line)
	r.size += int64(n)
	r.err = err
}

// rotate sets the full file aside and begins a new one.
func (r *recorder) rotate() {
	if r.err = errors.Join(r.w.Flush(), r.file.Close(), os.Rename(r.path, cast.Aside(r.path))); r.err != nil {
		return
	}
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_APPEND|os.O_TRUNC, 0o600)
	if err != nil {
		r.err = err
		return
	}
	r.use(f)
	r.size = 0
	r.files++
	r.header()
}

// partialRune is how many bytes at the end of b begin a character that is not
// complete.
func partialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		c := b[len(b)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// appendJSON appends text as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func appendJSON(line, text []byte) []byte {
	const hex = "0123456789abcdef"
	text = validText(text)
	line = append(line, '"')
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] >= 0x20 && text[n] != '"' && text[n] != '\\' && text[n] != 0x7f {
			n++
		}
		line = append(line, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			break
		}
		switch c := text[0]; c {
		case '"', '\\':
			line = append(line, '\\', c)
		case '\n':
			line = append(line, `\n`...)
		case '\r':
			line = append(line, `\r`...)
		default:
			line = append(line, `\u00`...)
			line = append(line, hex[c>>4], hex[c&15])
		}
		text = text[1:]
	}
	return append(line, '"')
}
