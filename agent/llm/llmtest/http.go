package llmtest

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"muntin/agent/llm"
)

// A Maker makes the provider under test for an endpoint. A nil client means one of
// its own.
type Maker = func(e llm.Endpoint, h *http.Client) llm.Provider

// Secret is the key that the suites give to a provider.
const Secret = "sk-very-secret-0123456789"

// TestDialect runs the contract suite and what holds for all that speak HTTP:
// streams that break, deadlines, and keys that no error shows.
func TestDialect(t *testing.T, make Maker) {
	t.Helper()
	serve := func(t *testing.T, s Script, e llm.Endpoint) llm.Provider {
		t.Helper()
		server := NewServer(s)
		e.BaseURL, e.Key = server.URL+e.BaseURL, llm.StaticKey(Secret)
		p := make(e, nil)
		t.Cleanup(func() {
			server.Close()
			if c, ok := p.(interface{ CloseIdleConnections() }); ok {
				c.CloseIdleConnections()
			}
		})
		return p
	}
	TestProvider(t, func(t *testing.T, s Script) llm.Provider { return serve(t, s, llm.Endpoint{}) })
	t.Run("broken", func(t *testing.T) { testBroken(t, serve) })
	t.Run("keys", func(t *testing.T) { testKeys(t, make, serve) })
	t.Run("deadlines", func(t *testing.T) { testDeadlines(t, serve) })
	t.Run("tooLarge", func(t *testing.T) { testTooLarge(t, serve) })
	t.Run("cost", func(t *testing.T) {
		p := serve(t, Script{Replies: []Reply{{Text: "x", Usage: &llm.Usage{Input: 1000, Output: 100}}}}, llm.Endpoint{Model: llm.Model{
			Price: llm.Price{Input: 3, Output: 15},
		}})
		if e := Last(t, p, request()); e.Message.Usage == nil || math.Abs(e.Message.Usage.Cost.Total-0.0045) > 1e-9 {
			t.Errorf("usage %+v (%v), want a cost of 0.0045", e.Message.Usage, e.Err)
		}
	})
}

type server = func(t *testing.T, s Script, e llm.Endpoint) llm.Provider

func testBroken(t *testing.T, serve server) {
	call := []ToolCall{{ID: "a1", Name: "write", Arguments: `{"path":"x"}`}}
	tests := map[string]struct {
		reply Reply
		class llm.Class
		says  string
	}{
		"no finish":        {Reply{Text: "half", NoFinish: true}, llm.ClassRetryable, "without a finish reason"},
		"no finish, call":  {Reply{Tools: call, NoFinish: true}, llm.ClassRetryable, "without a finish reason"},
		"cut in a call":    {Reply{Tools: call, Cut: true, Wire: Wire{Split: 1}}, llm.ClassRetryable, "connection failed"},
		"error object":     {Reply{Text: "half", StreamError: "server overloaded"}, llm.ClassRetryable, "server overloaded"},
		"milliseconds":     {Reply{Fail: &Failure{Status: 429, Message: "slow down", Headers: map[string]string{"Retry-After-Ms": "22000"}}}, llm.ClassRetryable, "slow down"},
		"should not retry": {Reply{Fail: &Failure{Status: 503, Message: "gone", Headers: map[string]string{"X-Should-Retry": "false"}}}, llm.ClassOther, "gone"},
		"should retry":     {Reply{Fail: &Failure{Status: 400, Message: "odd", Headers: map[string]string{"X-Should-Retry": "true"}}}, llm.ClassRetryable, "odd"},
		"quota of a minute": {Reply{Fail: &Failure{
			Status: 429, Body: `{"error":{"code":429,"message":"You exceeded your current quota","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}}`,
		}}, llm.ClassRetryable, "current quota"},
		"a page": {Reply{Fail: &Failure{Status: 418, Body: "<h1>teapot</h1>"}}, llm.ClassInvalid, "teapot"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := Last(t, serve(t, Script{Replies: []Reply{tt.reply}}, llm.Endpoint{}), request())
			if e.Type != llm.EventError || llm.Classify(e.Err) != tt.class || !strings.Contains(e.Err.Error(), tt.says) {
				t.Fatalf("%s: %v (%s), want %s with %q", e.Type, e.Err, llm.Classify(e.Err), tt.class, tt.says)
			}
			const asked = 22 * time.Second // by those that say how long to wait
			if after := llm.RetryAfter(e.Err); after != 0 && after != asked || after == 0 && (name == "milliseconds" || name == "quota of a minute") {
				t.Errorf("retry after %s, want %s", after, asked)
			}
		})
	}
}

// testKeys has servers and transports that repeat what they were given.
func testKeys(t *testing.T, make Maker, serve server) {
	t.Parallel()
	const header = "other-secret-987654"
	echo := "Incorrect key: " + Secret + " and " + header
	long := strings.Repeat("x", 582) + Secret // where shortening would cut the key in two
	replies := map[string]Reply{
		"error object": {Fail: &Failure{Status: 401, Message: echo}},
		"page":         {Fail: &Failure{Status: 500, Body: "<html>" + echo}},
		"long":         {Fail: &Failure{Status: 400, Message: long}},
		"stream":       {StreamError: echo},
	}
	for name, reply := range replies {
		p := serve(t, Script{Replies: []Reply{reply}}, llm.Endpoint{Headers: map[string]string{"X-Other-Key": header}})
		noSecret(t, name, Last(t, p, request()))
	}
	repeats := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, errors.New("cannot send " + strings.Join(r.Header["Authorization"], "") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key"))
	})}
	for name, e := range map[string]llm.Endpoint{
		"transport": {BaseURL: "http://x.test"}, "base URL": {BaseURL: "http://" + Secret + "%zz\x7f"},
		"query": {BaseURL: "http://x.test/?key=" + Secret}, "password": {BaseURL: "http://u:" + Secret + "@x.test"},
	} {
		e.Key = llm.StaticKey(Secret)
		noSecret(t, name, Last(t, make(e, repeats), request()))
	}
	noSecret(t, "bad header", Last(t, make(llm.Endpoint{BaseURL: "http://127.0.0.1:1", Key: llm.StaticKey(Secret + "\n")}, nil), request()))
}

func noSecret(t *testing.T, name string, e llm.Event) {
	t.Helper()
	if e.Type != llm.EventError {
		t.Fatalf("%s: %s, want an error", name, e.Type)
	}
	for err := e.Err; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.Contains(text, "secret") {
			t.Errorf("%s: the error shows a key: %s", name, text)
		}
	}
	if strings.Contains(e.Message.ErrorMessage, "secret") {
		t.Errorf("%s: the message shows a key: %s", name, e.Message.ErrorMessage)
	}
}

// testTooLarge has a request that its server would not take: it is not sent.
func testTooLarge(t *testing.T, serve server) {
	p := serve(t, Script{Replies: []Reply{{Text: "x"}}}, llm.Endpoint{Model: llm.Model{InputLimits: llm.InputLimits{MaxRequestBytes: 50}}})
	if e := Last(t, p, request()); llm.Classify(e.Err) != llm.ClassOverflow {
		t.Errorf("%s: %v (%s), want an overflow", e.Type, e.Err, llm.Classify(e.Err))
	}
}

func testDeadlines(t *testing.T, serve server) {
	t.Parallel()
	const short = 40 * time.Millisecond
	hold := Script{Replies: []Reply{{Text: "a", Hold: true}}}
	for says, d := range map[string]llm.Deadlines{
		"silence for 40ms": {Idle: short}, "the response was not whole after 40ms": {Whole: short},
	} {
		e := Last(t, serve(t, hold, llm.Endpoint{Deadlines: d}), request())
		if e.Err == nil || e.Err.Error() != says || llm.Classify(e.Err) != llm.ClassRetryable {
			t.Errorf("error %v (%s), want %q, retryable", e.Err, llm.Classify(e.Err), says)
		}
	}
}

// Last gives the terminal event of one request.
func Last(t testing.TB, p llm.Provider, req llm.Request) llm.Event {
	t.Helper()
	events := Collect(t, p.Stream(t.Context(), req))
	return events[len(events)-1]
}

// Answering is a client whose every request gets this answer, without a network.
func Answering(body string) *http.Client {
	return &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	})}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A RawCase is a stream as some server was seen to send it: a JSON object a line,
// which becomes an event each.
type RawCase = struct {
	Stream string
	Want   string // the message's blocks as JSON, or what the error says after "error: "
	Stop   llm.StopReason
}

// TestRaw runs the cases with the clock at 1000 ms after 1970.
func TestRaw(t *testing.T, make Maker, cases map[string]RawCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sse strings.Builder
			for line := range strings.Lines(c.Stream) {
				sse.WriteString("data: " + strings.TrimSpace(line) + "\n\n")
			}
			p := make(llm.Endpoint{BaseURL: "http://x.test", Now: func() time.Time { return time.UnixMilli(1000) }}, Answering(sse.String()))
			e := Last(t, p, request())
			if e.Message.StopReason != c.Stop {
				t.Errorf("stop reason %s, want %s (%v)", e.Message.StopReason, c.Stop, e.Err)
			}
			if says, ok := strings.CutPrefix(c.Want, "error: "); ok {
				if e.Err == nil || !strings.Contains(e.Err.Error(), says) {
					t.Errorf("error %v, want one with %q", e.Err, says)
				}
				return
			}
			got, err := json.Marshal(e.Message.Content)
			if err != nil || string(got) != c.Want {
				t.Errorf("blocks\n%s, want\n%s (%v, %v)", got, c.Want, err, e.Err)
			}
		})
	}
}

// FuzzDialect checks that whatever a server sends, the events keep the contract
// and the message can be written.
func FuzzDialect(f *testing.F, make Maker, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := Last(t, make(llm.Endpoint{BaseURL: "http://x.test"}, Answering(string(body))), request())
		if _, err := json.Marshal(e.Message); err != nil {
			t.Fatal(err)
		}
		for _, call := range e.Message.ToolCalls() {
			if _, wrong := llm.Arguments(call.Arguments); wrong != "" || call.ID == "" {
				t.Fatalf("call %+v", call)
			}
		}
	})
}

// BenchmarkDialect streams a body over and over.
func BenchmarkDialect(b *testing.B, make Maker, body string) {
	p := make(llm.Endpoint{BaseURL: "http://x.test"}, Answering(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for e := range p.Stream(b.Context(), request()) {
			if n++; e.Type == llm.EventError {
				b.Fatal(e.Err)
			}
		}
		b.ReportMetric(float64(n), "events/op")
	}
}
