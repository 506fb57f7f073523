package llm_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"reflect"
	"syscall"
	"testing"
	"time"

	"muntin/agent/llm"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	opError := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}
	tests := map[string]struct {
		err  error
		want llm.Class
	}{
		"nothing":           {nil, llm.ClassOther},
		"own class":         {fmt.Errorf("x: %w", &llm.Error{Class: llm.ClassQuota, Message: "rate limit"}), llm.ClassQuota},
		"own class first":   {&llm.Error{Class: llm.ClassRetryable, Err: context.Canceled}, llm.ClassRetryable},
		"canceled":          {fmt.Errorf("x: %w", context.Canceled), llm.ClassAborted},
		"deadline":          {context.DeadlineExceeded, llm.ClassAborted},
		"reset":             {&url.Error{Op: "Post", Err: syscall.ECONNRESET}, llm.ClassRetryable},
		"cut":               {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), llm.ClassRetryable},
		"no such host":      {opError, llm.ClassRetryable},
		"bad certificate":   {&url.Error{Op: "Post", Err: x509.UnknownAuthorityError{}}, llm.ClassInvalid},
		"text: retry":       {errors.New("upstream connect error"), llm.ClassRetryable},
		"text: overflow":    {errors.New("This model's maximum context length is 8192 tokens"), llm.ClassOverflow},
		"text: quota first": {errors.New("rate limit: insufficient_quota"), llm.ClassQuota},
		"text: throttled":   {errors.New("Too many tokens, please wait before trying again."), llm.ClassRetryable}, //nolint:revive // a server's words
		"text: key":         {errors.New("Incorrect API key provided"), llm.ClassAuth},
		"unknown":           {errors.New("boo"), llm.ClassOther},
	}
	for name, tt := range tests {
		if got := llm.Classify(tt.err); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestClassifyStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		text   string
		want   llm.Class
	}{
		{400, "bad field", llm.ClassInvalid}, {400, "prompt is too long: 9 > 8", llm.ClassOverflow},
		{400, "Your credit balance is too low", llm.ClassQuota}, {401, "", llm.ClassAuth}, {403, "", llm.ClassAuth},
		{403, "insufficient balance", llm.ClassQuota}, {402, "", llm.ClassQuota}, {404, "no such model", llm.ClassInvalid},
		{408, "", llm.ClassRetryable}, {413, "", llm.ClassOverflow}, {422, "", llm.ClassInvalid},
		{429, "", llm.ClassRetryable}, {429, "too many tokens per minute, context length", llm.ClassRetryable},
		{429, "You exceeded your current quota", llm.ClassQuota}, {500, "", llm.ClassRetryable}, {501, "", llm.ClassInvalid},
		{500, "the request exceeds the available context size", llm.ClassOverflow},
		{503, "", llm.ClassRetryable}, {529, "", llm.ClassRetryable}, {418, "", llm.ClassInvalid}, {0, "odd", llm.ClassOther},
	}
	for _, tt := range tests {
		if got := llm.ClassifyStatus(tt.status, tt.text); got != tt.want {
			t.Errorf("%d %q: %s, want %s", tt.status, tt.text, got, tt.want)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for want, err := range map[string]*llm.Error{
		"HTTP 500: m":     {Status: 500, Message: "m", Err: cause},
		"cause":           {Err: cause},
		"no reason given": {},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
	if got := llm.RetryAfter(fmt.Errorf("x: %w", &llm.Error{RetryAfter: time.Second})); got != time.Second {
		t.Errorf("%s, want 1s", got)
	}
}

func user(text string) llm.Message { return llm.UserText(text, 1) }

func calls(ids ...string) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopToolUse, Timestamp: 5}
	for _, id := range ids {
		m.Content = append(m.Content, llm.Block{Type: llm.BlockToolCall, ID: id, Name: "t" + id, Arguments: []byte("{}")})
	}
	return m
}

func result(id string) llm.Message {
	return llm.Message{Role: llm.RoleTool, ToolCallID: id, Content: []llm.Block{{Type: llm.BlockText, Text: "r" + id}}}
}

func failed(m llm.Message, stop llm.StopReason) llm.Message {
	m.StopReason = stop
	return m
}

// outline gives a transcript in short: u, a and the answered ids, with ! for stand-ins.
func outline(ms []llm.Message) (out []string) {
	for _, m := range ms {
		switch {
		case m.Role == llm.RoleUser:
			out = append(out, "u:"+m.Text())
		case m.Role == llm.RoleAssistant:
			out = append(out, "a")
		case m.IsError && m.Text() == llm.NoResult:
			out = append(out, "!"+m.ToolCallID)
		default:
			out = append(out, m.ToolCallID)
		}
	}
	return out
}

func TestSendable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in         []llm.Message
		want       []string
		unanswered int
	}{
		"plain":              {[]llm.Message{user("x"), calls("1"), result("1")}, []string{"u:x", "a", "1"}, 0},
		"nothing":            {nil, nil, 0},
		"source order":       {[]llm.Message{calls("1", "2"), result("2"), result("1")}, []string{"a", "1", "2"}, 0},
		"cut at the end":     {[]llm.Message{calls("1", "2"), result("1")}, []string{"a", "1", "!2"}, 1},
		"cut in the middle":  {[]llm.Message{calls("1"), user("x"), calls("2"), result("2")}, []string{"a", "!1", "u:x", "a", "2"}, 0},
		"user in between":    {[]llm.Message{calls("1"), user("x"), result("1")}, []string{"a", "1", "u:x"}, 0},
		"result without one": {[]llm.Message{user("x"), result("9"), user("y")}, []string{"u:x", "u:y"}, 0},
		"second result":      {[]llm.Message{calls("1"), result("1"), result("1")}, []string{"a", "1"}, 0},
		"failed response":    {[]llm.Message{user("x"), failed(calls("1"), llm.StopError), user("y")}, []string{"u:x", "u:y"}, 0},
		"aborted at the end": {[]llm.Message{user("x"), failed(calls("1"), llm.StopAborted)}, []string{"u:x"}, 0},
		"failed with result": {[]llm.Message{failed(calls("1"), llm.StopError), result("1"), user("y")}, []string{"u:y"}, 0},
		"empty response":     {[]llm.Message{user("x"), {Role: llm.RoleAssistant}}, []string{"u:x"}, 0},
		"same id twice":      {[]llm.Message{calls("1"), result("1"), calls("1")}, []string{"a", "1", "a", "!1"}, 1},
	}
	for name, tt := range tests {
		before := fmt.Sprintf("%+v", tt.in)
		got := outline(llm.Sendable(tt.in))
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if again := outline(llm.Sendable(llm.Sendable(tt.in))); !reflect.DeepEqual(again, got) {
			t.Errorf("%s: the second time %v, want %v", name, again, got)
		}
		if n := len(llm.Unanswered(tt.in)); n != tt.unanswered {
			t.Errorf("%s: %d unanswered, want %d", name, n, tt.unanswered)
		}
		if before != fmt.Sprintf("%+v", tt.in) {
			t.Errorf("%s: the transcript was changed", name)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		raw, want string
		wrong     bool
	}{
		"exact":      {`{"a" : 1.0e2}`, `{"a" : 1.0e2}`, false},
		"spaces":     {"\n {}\t", "{}", false},
		"nothing":    {"  ", "{}", false},
		"cut":        {`{"a":`, "{}", true},
		"a list":     {`[1]`, "{}", true},
		"two values": {`{}{}`, "{}", true},
		"null":       {"null", "{}", true},
	}
	for name, tt := range tests {
		got, wrong := llm.Arguments([]byte(tt.raw))
		if string(got) != tt.want || (wrong != "") != tt.wrong {
			t.Errorf("%s: %s %q, want %s", name, got, wrong, tt.want)
		}
	}
}

func TestPartial(t *testing.T) {
	t.Parallel()
	var p llm.Partial
	for _, e := range []llm.Event{
		{Type: llm.EventTextDelta, Index: 3, Delta: "ignored"},
		{Type: llm.EventStart, Message: &llm.Message{Model: "m"}},
		{Type: llm.EventThinkingStart}, {Type: llm.EventThinkingDelta, Delta: "h"}, {Type: llm.EventThinkingDelta, Delta: "m"},
		{Type: llm.EventTextStart, Index: 1}, {Type: llm.EventTextDelta, Index: 1, Delta: "hello"},
		{Type: llm.EventToolStart, Index: 2, Block: &llm.Block{ID: "1", Name: "n"}}, {Type: llm.EventToolDelta, Index: 2, Delta: `{"a`},
		{Type: llm.EventTextStart, Index: -1}, {Type: llm.EventTextStart, Index: 1 << 30}, {Type: llm.EventToolEnd, Index: 2},
	} {
		p.Add(e)
	}
	want := llm.Message{Role: llm.RoleAssistant, Model: "m", Content: []llm.Block{
		{Type: llm.BlockThinking, Thinking: "hm"}, {Type: llm.BlockText, Text: "hello"},
		{Type: llm.BlockToolCall, ID: "1", Name: "n", Arguments: []byte("{}"), ArgumentsError: `the call was cut off: {"a`},
	}}
	if got := p.Message(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	got := llm.Deadlines{Idle: -1}.WithDefaults()
	if want := (llm.Deadlines{Connect: 30 * time.Second, FirstEvent: 5 * time.Minute, Idle: -1, Whole: time.Hour}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
