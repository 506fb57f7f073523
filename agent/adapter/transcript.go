package adapter

import (
	"encoding/json"
	"strings"
	"time"
)

// A Format names how a CLI writes its conversations down: JSON, an object a
// line. All of them are the CLIs' own affair and grow, so what is not known is
// passed over.
type Format string

// The formats that can be read.
const (
	FormatClaude Format = "claude"
	FormatCodex  Format = "codex"
	FormatPi     Format = "pi"
	FormatGemini Format = "gemini"
	FormatQwen   Format = "qwen"
	// FormatRecords is a Record a line: what a plugin of ours writes, and what
	// anybody's may.
	FormatRecords Format = "records"
)

// A RecordKind says what a record of a transcript is.
type RecordKind string

// The kinds of records.
const (
	RecordPrompt RecordKind = "prompt" // what a person said
	RecordText   RecordKind = "text"   // what the agent said
	RecordTool   RecordKind = "tool"   // a tool that it called
	RecordUsage  RecordKind = "usage"  // what a request to the model used
	RecordTurn   RecordKind = "turn"   // a turn has begun or ended: Means says how
)

// A Record is one thing that stands in a transcript.
type Record struct {
	Kind  RecordKind    `json:"kind"`
	Text  string        `json:"text,omitempty"` // of prompts and answers; the error of a turn; what a tool was called with
	Tool  string        `json:"tool,omitempty"` // its name
	Means Meaning       `json:"means,omitempty"`
	Usage *Tokens       `json:"usage,omitempty"`
	Took  time.Duration `json:"took,omitempty"`
}

// Tokens counts what was used. Input is what was neither read from a cache nor
// written to one. Cost is in US dollars, 0 where the CLI does not tell.
type Tokens struct {
	Input      int     `json:"input"`
	Output     int     `json:"output"`
	CacheRead  int     `json:"cache_read,omitempty"`
	CacheWrite int     `json:"cache_write,omitempty"`
	Cost       float64 `json:"cost,omitempty"`
}

// Add adds u to t.
func (t *Tokens) Add(u Tokens) {
	t.Input += u.Input
	t.Output += u.Output
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.Cost += u.Cost
}

// A Reader reads a transcript line by line. The zero value knows no format and
// gives nothing.
type Reader struct {
	Format Format
	Later  bool // the first line that it is given is not the file's first

	last string  // id of the last message whose usage was counted: it may stand on several lines
	cost float64 // total so far, where totals are written
}

// Line gives what stands in one line. What is no JSON object gives nothing.
func (r *Reader) Line(line []byte) []Record {
	switch r.Format {
	case FormatClaude:
		return r.claude(line)
	case FormatCodex:
		return r.codex(line)
	case FormatPi:
		return r.pi(line)
	case FormatGemini:
		return r.gemini(line)
	case FormatQwen:
		return r.qwen(line)
	case FormatRecords:
		return records(line)
	}
	return nil
}

// object decodes leniently: a field of another type than is expected is left
// empty, and the rest still counts.
func object[T any](data []byte) (v T, ok bool) {
	err := json.Unmarshal(data, &v)
	var wrong *json.UnmarshalTypeError
	return v, err == nil || asType(err, &wrong)
}

// A block is a part of a message, in the names that the CLIs give to its fields.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thought   any             `json:"thought"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`     // Claude Code
	Arguments json.RawMessage `json:"arguments"` // Pi
	Call      *struct {       // Qwen Code
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// blocks reads content that is a text or a list of blocks.
func blocks(content json.RawMessage) []block {
	if text, ok := object[string](content); ok && text != "" {
		return []block{{Type: "text", Text: text}}
	}
	list, _ := object[[]block](content)
	return list
}

// said gives the texts and tools of a message of the agent's.
func said(list []block) (out []Record) {
	for _, b := range list {
		switch {
		case b.Call != nil:
			out = append(out, tool(b.Call.Name, b.Call.Args))
		case b.Type == "tool_use" || b.Type == "toolCall":
			args := b.Input
			if args == nil {
				args = b.Arguments
			}
			out = append(out, tool(b.Name, args))
		case b.Text != "" && b.Thought != true && (b.Type == "text" || b.Type == ""):
			out = append(out, Record{Kind: RecordText, Text: b.Text})
		}
	}
	return out
}

// plain joins the texts of a message.
func plain(list []block) string {
	var b strings.Builder
	for _, part := range list {
		if part.Type == "text" || part.Type == "Text" || part.Type == "" {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// tool is the record of a call, with the argument that tells most.
func tool(name string, args json.RawMessage) Record {
	r := Record{Kind: RecordTool, Tool: name}
	if text, ok := object[string](args); ok && text != "" { // JSON in a string, or free text
		args = json.RawMessage(text)
	}
	fields, ok := object[map[string]json.RawMessage](args)
	if !ok {
		return r
	}
	for _, key := range []string{"command", "cmd", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url", "prompt"} {
		if text, _ := object[string](fields[key]); text != "" {
			r.Text = clip(strings.Join(strings.Fields(text), " "), maxToolText)
			break
		}
	}
	return r
}

const maxToolText = 200 // bytes

func turn(means Meaning, text string) Record {
	return Record{Kind: RecordTurn, Means: means, Text: text}
}

// failure is the meaning of a turn that ended with that error.
func failure(text string) Meaning {
	if _, limit := LimitOf(text, time.Time{}); limit {
		return MeansLimited
	}
	return MeansError
}

// records reads a line that is a Record itself.
func records(line []byte) []Record {
	rec, ok := object[Record](line)
	switch rec.Kind {
	case RecordPrompt, RecordText, RecordTool, RecordTurn:
	case RecordUsage:
		ok = ok && rec.Usage != nil
	default:
		ok = false
	}
	if !ok {
		return nil
	}
	if rec.Kind == RecordTool {
		rec.Text = clip(rec.Text, maxToolText)
	}
	return []Record{rec}
}
