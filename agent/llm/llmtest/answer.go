package llmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"muntin/agent/llm"
)

// an answer is one stream on its way out.
type answer struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	reply Reply
	model string
}

type object = map[string]any

// a format is the wire format of one API. Each method sends what its name says;
// pieces are JSON strings.
type format interface {
	head()
	thinking(pieces []string)
	text(pieces []string)
	tools(pieces [][]string)
	fail(message string) // an error object in the stream
	finish()
}

func (a *answer) send(f format) {
	kind := "text/event-stream"
	if f, ok := f.(interface{ kind() string }); ok {
		kind = f.kind()
	}
	a.w.Header().Set("Content-Type", kind)
	a.w.WriteHeader(http.StatusOK)
	f.head()
	if a.reply.Thinking != "" {
		f.thinking(a.pieces(a.reply.Thinking))
	}
	if a.reply.Text != "" {
		f.text(a.pieces(a.reply.Text))
	}
	pieces := make([][]string, len(a.reply.Tools))
	for i, t := range a.reply.Tools {
		pieces[i] = a.pieces(t.Arguments)
	}
	f.tools(pieces)
	switch {
	case a.reply.StreamError != "":
		f.fail(a.reply.StreamError)
	case !a.reply.Cut && !a.reply.NoFinish && !a.reply.Hold:
		f.finish()
	}
}

// stop is the reason that the reply ends with.
func (a *answer) stop() llm.StopReason {
	switch {
	case a.reply.Stop != "":
		return a.reply.Stop
	case len(a.reply.Tools) > 0:
		return llm.StopToolUse
	}
	return llm.StopEnd
}

// eachPiece calls head for each tool and piece for each piece of its arguments,
// one tool after the other, or with the pieces taking turns.
func (a *answer) eachPiece(pieces [][]string, head func(i int), piece func(i int, json string), end func(i int)) {
	if !a.reply.Wire.Parallel {
		for i := range pieces {
			head(i)
			for _, p := range pieces[i] {
				piece(i, p)
			}
			end(i)
		}
		return
	}
	longest := 0
	for i := range pieces {
		head(i)
		longest = max(longest, len(pieces[i]))
	}
	for j := range longest {
		for i := range pieces {
			if j < len(pieces[i]) {
				piece(i, pieces[i][j])
			}
		}
	}
	for i := range pieces {
		end(i)
	}
}

// pieces cuts text and encodes each piece as JSON. JSON cannot carry half a
// character, so no piece ends within one; Flush splits the bytes on the network.
func (a *answer) pieces(text string) []string {
	size := a.reply.Wire.Split
	if size <= 0 {
		size = len(text)
	}
	var out []string
	for text != "" {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		out = append(out, string(encode(text[:n])))
		text = text[n:]
	}
	return out
}

// event writes one event in the form that the reply asks for.
func (a *answer) event(data []byte) { a.named("", data) }

// named writes one event that has a name.
func (a *answer) named(name string, data []byte) {
	text := "data: " + string(data) + "\n\n"
	if name != "" {
		text = "event: " + name + "\n" + text
	}
	if a.reply.Wire.Comments {
		text = ": keep-alive\n\n" + text
	}
	if a.reply.Wire.CRLF {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	a.write(text)
}

// write sends bytes in the pieces that the reply asks for.
func (a *answer) write(text string) {
	size := a.reply.Wire.Flush
	if size <= 0 {
		size = len(text)
	}
	for text != "" {
		n := min(size, len(text))
		if _, err := a.w.Write([]byte(text[:n])); err != nil {
			return // the client is gone
		}
		_ = a.flush.Flush()
		text = text[n:]
	}
}

// encode is for values that can always be encoded.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("llmtest: encoding JSON: " + err.Error())
	}
	return bytes.TrimSpace(buf.Bytes())
}
