package llmtest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post sends a body and gives status and answer.
func post(t *testing.T, client *http.Client, url, body string) (*http.Response, string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return resp, string(text)
}

const ask = `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"user","content":[{"type":"text"}]}]}`

func TestServer(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(llmtest.Script{Replies: []llmtest.Reply{
		{Text: "é", Wire: llmtest.Wire{CRLF: true, Comments: true}},
		{Fail: &llmtest.Failure{Status: 429, Message: "slow", RetryAfter: "2"}},
		{Text: "half", Cut: true},
	}})
	client := &http.Client{}
	defer client.CloseIdleConnections()
	defer server.Close()
	endpoint := server.URL + "/chat/completions"

	resp, text := post(t, client, endpoint, ask)
	if resp.StatusCode != 200 || !strings.Contains(text, ": keep-alive\r\n\r\ndata: {") || !strings.HasSuffix(text, "data: [DONE]\r\n\r\n") ||
		!strings.Contains(text, `"content":"é"`) || !strings.Contains(text, `"finish_reason":"stop"`) {
		t.Errorf("%d %q", resp.StatusCode, text)
	}
	resp, text = post(t, client, endpoint, ask)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "2" || !strings.Contains(text, "slow") {
		t.Errorf("%d %v %q", resp.StatusCode, resp.Header, text)
	}
	if _, text = post(t, client, endpoint, ask); !strings.Contains(text, "half") || strings.Contains(text, "finish_reason\":\"") {
		t.Errorf("%q", text)
	}
	if resp, text = post(t, client, endpoint, ask); resp.StatusCode != 400 || !strings.Contains(text, "no reply 4") {
		t.Errorf("%d %q", resp.StatusCode, text)
	}
	if resp, _ = post(t, client, server.URL+"/models", ask); resp.StatusCode != 404 {
		t.Errorf("another endpoint: %d", resp.StatusCode)
	}
	if resp, _ = post(t, client, endpoint, "{}"); resp.StatusCode != 400 {
		t.Errorf("no messages: %d", resp.StatusCode)
	}
	got := server.Requests()
	if len(got) != 5 || got[0].Model != "m" || got[0].Messages[0].Text() != "hi" || got[0].Messages[1].Text() != "" ||
		!bytes.Equal(got[0].Body, []byte(ask)) {
		t.Errorf("requests %+v", got)
	}
	select {
	case <-server.Arrived():
	default:
		t.Error("Arrived has nothing")
	}
}

// TestHold: a reply on hold ends when the server is closed.
func TestHold(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(llmtest.Script{Choose: func(int, llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "first", Hold: true}
	}})
	client := &http.Client{}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/chat/completions", strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "first") {
	}
	server.Close()
	server.Close() // twice does no harm
	for lines.Scan() {
	}
	if ctx.Err() != nil {
		t.Error("the reply went on after Close")
	}
}

// TestCheckEvents: each of these breaks one rule of the contract.
func TestCheckEvents(t *testing.T) {
	t.Parallel()
	var good []llm.Event
	b := llm.NewBuilder(llm.Message{}, func(e llm.Event) bool { good = append(good, e); return true })
	b.Thinking("t")
	b.Text("a")
	i, j := b.Tool("1", "n"), b.Tool("2", "n")
	b.ToolArguments(j, `{"a":1}`)
	b.ToolArguments(i, `{"b":1}`)
	b.Done(llm.StopEnd, nil)
	b.Text("late")
	b.Fail(errors.New("late"), nil)
	if err := llmtest.CheckEvents(good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		without := append(append([]llm.Event{}, good[:i]...), good[i+1:]...)
		if err := llmtest.CheckEvents(without); err == nil {
			t.Errorf("without event %d, %s: no error", i, good[i].Type)
		}
		twice := append(append([]llm.Event{}, good[:i+1]...), good[i:]...)
		if err := llmtest.CheckEvents(twice); err == nil {
			t.Errorf("with event %d, %s, twice: no error", i, good[i].Type)
		}
	}
	done := *good[len(good)-1].Message
	for name, change := range map[string]func(*llm.Message){
		"nil content":   func(m *llm.Message) { m.Content = nil },
		"another block": func(m *llm.Message) { m.Content = append([]llm.Block{{Type: llm.BlockText}}, m.Content[1:]...) },
		"failed":        func(m *llm.Message) { m.StopReason = llm.StopError },
	} {
		m := done
		change(&m)
		bad := append(append([]llm.Event{}, good[:len(good)-1]...), llm.Event{Type: llm.EventDone, Message: &m})
		if err := llmtest.CheckEvents(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
