// Package compact makes room in a model's context: it says when that is needed,
// where a conversation can be cut, and what stands in the place of what was cut
// off, a summary. It changes nothing: the caller keeps the summary as an entry of
// the session, of which the context is a projection.
//
// The summary is asked of a model, in pieces when the conversation is too long
// for one request. One that was cut off is a failure. Fallback makes one without
// a model. The form of the result is that of Pi's compaction entries.
package compact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"muntin/agent"
	"muntin/agent/llm"
)

// Errors that a caller may test for.
var (
	// ErrNothing: there is nothing that could be cut off.
	ErrNothing = errors.New("there is nothing to compact")
	// ErrCutOff: the summary was longer than the model may write.
	ErrCutOff = errors.New("the summary was cut off by the model's output limit")
	// ErrNoSummary: the model gave something else than a summary.
	ErrNoSummary = errors.New("the model gave no summary")
)

// Settings say when and how much is compacted. Numbers are tokens.
type Settings struct {
	Off     bool // never unasked; an overflow is still recovered from
	Window  int  // of the model; 0: not known, then only an overflow tells
	Reserve int  // room for the answer; default 16384, at most a quarter of the window
	Keep    int  // of the newest messages; default 20000, at most half of the rest
}

// WithDefaults fills in what is not said and fits it to the window.
func (s Settings) WithDefaults() Settings {
	if s.Reserve <= 0 {
		s.Reserve = 16384
	}
	if s.Keep <= 0 {
		s.Keep = 20000
	}
	if s.Window > 0 {
		s.Reserve = min(s.Reserve, s.Window/4)
		s.Keep = min(s.Keep, (s.Window-s.Reserve)/2)
	}
	return s
}

// Needed tells whether a context of so many tokens should be compacted first.
func (s Settings) Needed(tokens int) bool {
	s = s.WithDefaults()
	return !s.Off && s.Window > 0 && tokens > s.Window-s.Reserve
}

// An Item is a message of the context and the id of the entry it comes from.
type Item struct {
	ID      string
	Summary bool // it is an earlier compaction's
	Message llm.Message
}

// Files are what a conversation did to files. A file that was both read and
// changed is in Modified only.
type Files struct {
	Read     []string `json:"readFiles"`
	Modified []string `json:"modifiedFiles"`
}

// A Request says what to compact.
type Request struct {
	Items        []Item   // the whole context
	Previous     string   // text of the earlier summary, when there is one
	Files        Files    // of the earlier summary
	Changed      []string // files that changed otherwise, as by commands
	Keep         int      // tokens; see Settings
	Instructions string   // what the summary should heed
}

// A Result is a summary and where the kept part begins.
type Result struct {
	Summary      string
	FirstKept    string // id
	TokensBefore int    // estimated
	Files        Files
	Usage        llm.Usage
	Cause        error // why the summary was made without a model; nil when it was not
}

// Details are what a compaction entry holds beside the summary, in Pi's form.
func (r Result) Details() json.RawMessage {
	f := r.Files
	if f.Read == nil {
		f.Read = []string{}
	}
	if f.Modified == nil {
		f.Modified = []string{}
	}
	b, _ := json.Marshal(f) // lists of strings always encode
	return b
}

// A Model makes summaries.
type Model struct {
	Provider  llm.Provider
	ID        string // without the provider
	Window    int    // tokens; 0: not known
	MaxTokens int    // of one response; 0: the provider's default
	Retry     agent.RetryPolicy
	SessionID string
	OnRetry   func(agent.Event) // takes the events of a summary that is asked for again; may be nil
}

// Compact summarises what lies before the kept part. The error matches
// ErrNothing, ErrCutOff or ErrNoSummary, or is the model's.
func (m Model) Compact(ctx context.Context, r Request) (Result, error) {
	p, err := plan(r)
	if err != nil {
		return Result{}, err
	}
	text, usage, err := m.summarise(ctx, job{
		items: p.old, previous: withoutFiles(r.Previous), task: historyTask, instructions: r.Instructions,
	})
	if err != nil {
		return Result{}, fmt.Errorf("compacting: %w", err)
	}
	res := p.result(text)
	res.Usage = usage
	return res, nil
}

// Branch summarises a branch that is being left. FirstKept stays empty.
func (m Model) Branch(ctx context.Context, items []Item, instructions string) (Result, error) {
	if len(items) == 0 {
		return Result{}, ErrNothing
	}
	text, usage, err := m.summarise(ctx, job{items: items, task: branchTask, instructions: instructions})
	if err != nil {
		return Result{}, fmt.Errorf("summarising the branch: %w", err)
	}
	p := planned{old: items, files: filesOf(items, Files{}, nil)}
	res := p.result(text)
	res.Usage = usage
	return res, nil
}

// Fallback is Compact without a model: what was asked, what was answered and
// done, in the words that stand there, shortened. cause is why.
func Fallback(r Request, cause error) (Result, error) {
	p, err := plan(r)
	if err != nil {
		return Result{}, err
	}
	res := p.result(digest(p.old, withoutFiles(r.Previous)))
	res.Cause = cause
	return res, nil
}

// Written is Compact with a summary that somebody else wrote.
func Written(r Request, summary string) (Result, error) {
	p, err := plan(r)
	if err != nil {
		return Result{}, err
	}
	return p.result(summary), nil
}

// Old are the messages that a summary is to stand for; none when there is nothing to
// compact.
func Old(r Request) []llm.Message {
	p, err := plan(r)
	if err != nil {
		return nil
	}
	messages := make([]llm.Message, 0, len(p.old))
	for _, it := range p.old {
		messages = append(messages, it.Message)
	}
	return messages
}

// planned is what is cut off and what becomes of it.
type planned struct {
	old    []Item // without an earlier summary
	kept   string
	open   string // the request in whose midst the cut lies
	before int
	files  Files
}

func plan(r Request) (planned, error) {
	cut, split := Cut(r.Items, r.Keep)
	first := 0
	for first < len(r.Items) && r.Items[first].Summary {
		first++
	}
	if cut <= first || cut >= len(r.Items) {
		return planned{}, ErrNothing
	}
	p := planned{old: r.Items[first:cut], kept: r.Items[cut].ID, files: filesOf(r.Items[first:cut], r.Files, r.Changed)}
	for _, it := range r.Items {
		p.before += Estimate(it.Message)
	}
	if split {
		for _, it := range p.old {
			if it.Message.Role == llm.RoleUser {
				p.open = it.Message.Text()
			}
		}
	}
	return p, nil
}

// result puts the summary's parts together.
func (p planned) result(text string) Result {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(text))
	if p.open != "" {
		b.WriteString("\n\n## The request that is being worked on\n\n" + shorten(p.open, 4000))
	}
	for _, list := range []struct {
		name  string
		files []string
	}{{"read-files", p.files.Read}, {"modified-files", p.files.Modified}} {
		if len(list.files) > 0 {
			fmt.Fprintf(&b, "\n\n<%s>\n%s\n</%s>", list.name, strings.Join(list.files, "\n"), list.name)
		}
	}
	return Result{Summary: b.String(), FirstKept: p.kept, TokensBefore: p.before, Files: p.files}
}

// withoutFiles takes the lists of files off a summary: they are made anew.
func withoutFiles(summary string) string {
	for _, mark := range []string{"\n\n<read-files>\n", "\n\n<modified-files>\n"} {
		if i := strings.LastIndex(summary, mark); i >= 0 {
			summary = summary[:i]
		}
	}
	return summary
}

// filesOf adds what the calls among items did to files. Calls that failed did
// nothing.
func filesOf(items []Item, before Files, changed []string) Files {
	failed := map[string]bool{}
	for _, it := range items {
		if it.Message.Role == llm.RoleTool && it.Message.IsError {
			failed[it.Message.ToolCallID] = true
		}
	}
	read, modified := set(before.Read), set(append(slices.Clone(before.Modified), changed...))
	for _, it := range items {
		for _, call := range it.Message.ToolCalls() {
			var args struct {
				Path string `json:"path"`
			}
			if json.Unmarshal(call.Arguments, &args) != nil || args.Path == "" || failed[call.ID] {
				continue
			}
			switch call.Name {
			case "read":
				read[path.Clean(args.Path)] = true
			case "write", "edit":
				modified[path.Clean(args.Path)] = true
			}
		}
	}
	for name := range modified {
		delete(read, name)
	}
	return Files{Read: sorted(read), Modified: sorted(modified)}
}

func set(names []string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[path.Clean(n)] = true
	}
	return m
}

func sorted(m map[string]bool) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
