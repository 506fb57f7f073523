package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

type event struct{ Name, Data string }

func readAll(src io.Reader, limit int) (events []event, err error) {
	r := NewReader(src, limit)
	for {
		e, err := r.Next()
		if err != nil {
			if err == io.EOF { //nolint:errorlint // only the clean end, not one within an error
				err = nil
			}
			return events, err
		}
		events = append(events, event{e.Name, string(e.Data)})
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stream string
		want   []event
	}{
		"one":               {"data: a\n\n", []event{{"", "a"}}},
		"CRLF":              {"data: a\r\n\r\ndata: b\r\n\r\n", []event{{"", "a"}, {"", "b"}}},
		"CR":                {"data: a\r\rdata: b\r\r", []event{{"", "a"}, {"", "b"}}},
		"mixed ends":        {"data: a\r\n\ndata: b\n\r\n", []event{{"", "a"}, {"", "b"}}},
		"several lines":     {"data: a\ndata:\ndata:b\n\n", []event{{"", "a\n\nb"}}},
		"name":              {"event: x\ndata: a\n\ndata: b\n\n", []event{{"x", "a"}, {"", "b"}}},
		"name without data": {"event: x\n\ndata: b\n\n", []event{{"", "b"}}},
		"comments":          {": ping\n\n:\ndata: a\n: in between\ndata: b\n\n", []event{{"", "a\nb"}}},
		"other fields":      {"id: 7\nretry: 10\nfoo\ndata: a\n\n", []event{{"", "a"}}},
		"one space only":    {"data:  a\n\n", []event{{"", " a"}}},
		"no colon":          {"data\n\n", []event{{"", ""}}},
		"byte order mark":   {"\xef\xbb\xbfdata: a\n\n", []event{{"", "a"}}},
		"UTF-8":             {"data: é世😀\n\n", []event{{"", "é世😀"}}},
		"cut after line":    {"data: a\n\ndata: b\n", []event{{"", "a"}, {"", "b"}}},
		"cut in line":       {"data: a\n\ndata: b", []event{{"", "a"}, {"", "b"}}},
		"nothing":           {"", nil},
		"blank lines":       {"\n\r\n\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, src := range map[string]io.Reader{
				"whole": strings.NewReader(tt.stream), "bytes": iotest.OneByteReader(strings.NewReader(tt.stream)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(tt.stream)),
			} {
				if got, err := readAll(src, 0); err != nil || !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: %q, %v, want %q", how, got, err, tt.want)
				}
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	t.Parallel()
	reset := errors.New("reset")
	got, err := readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(reset)), 0)
	if !errors.Is(err, reset) || !reflect.DeepEqual(got, []event{{"", "a"}}) {
		t.Errorf("%q, %v, want the first event, then the source's error", got, err)
	}
	for name, stream := range map[string]string{
		"one line": "data: " + strings.Repeat("x", 200), "many lines": strings.Repeat("data: xxxxxxxxx\n", 20),
		"endless comment": ":" + strings.Repeat("x", 200),
	} {
		if _, err := readAll(strings.NewReader(stream), 100); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	if got, err := readAll(strings.NewReader(strings.Repeat("data: 0123456789\n\n", 50)), 100); err != nil || len(got) != 50 {
		t.Errorf("the limit holds for one event only: %d events, %v", len(got), err)
	}
}

// TestReaderIsPrompt checks that an event comes with the CR that ends it, before
// any further byte.
func TestReaderIsPrompt(t *testing.T) {
	t.Parallel()
	source, sink := io.Pipe()
	defer source.Close()
	go func() { _, _ = sink.Write([]byte("data: a\r\r")) }()
	if e, err := NewReader(source, 0).Next(); err != nil || string(e.Data) != "a" {
		t.Fatalf("%q, %v", e.Data, err)
	}
}

// FuzzReader checks that the events do not depend on how the bytes arrive, and
// compares with a reader that needs the whole stream.
func FuzzReader(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: a\r\n: c\r\ndata: b\r\n\r\ndata: c"), 3)
	f.Add([]byte("\xef\xbb\xbfdata: é\r\rdata\n\n"), 1)
	f.Add([]byte("data:\xff\n\n\n"), 2)
	f.Fuzz(func(t *testing.T, stream []byte, step int) {
		whole, err := readAll(bytes.NewReader(stream), 0)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := readAll(&stepReader{data: stream, step: 1 + max(0, step%7)}, 0)
		if err != nil || !reflect.DeepEqual(whole, steps) {
			t.Fatalf("whole %q, in steps %q, %v", whole, steps, err)
		}
		if want := simple(stream); !reflect.DeepEqual(whole, want) {
			t.Fatalf("%q, want %q", whole, want)
		}
	})
}

type stepReader struct {
	data []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.data[:min(r.step, len(r.data))])
	r.data = r.data[n:]
	return n, nil
}

func simple(stream []byte) (events []event) {
	text := strings.TrimPrefix(string(stream), "\xef\xbb\xbf")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var now event
	var data []string
	for _, line := range append(strings.Split(text, "\n"), "") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "":
			if data != nil {
				events = append(events, event{now.Name, strings.Join(data, "\n")})
			}
			now, data = event{}, nil
		case name == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		case name == "event":
			now.Name = strings.TrimPrefix(value, " ")
		}
	}
	return events
}

func BenchmarkReader(b *testing.B) {
	stream := []byte(strings.Repeat("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n", 1000))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		if events, err := readAll(bytes.NewReader(stream), 0); err != nil || len(events) != 1000 {
			b.Fatal(len(events), err)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"error":{"message":"Bad key","type":"invalid_request_error","code":"invalid_api_key"}}`: "Bad key (invalid_api_key)",
		`{"error":{"message":"too fast","type":"rate_limit"}}`:                                    "too fast (rate_limit)",
		`{"error":{"message":"m","code":400}}`:                                                    "m",
		`{"error":"plain"}`:                                                                       "plain",
		`{"error":null,"message":"outer"}`:                                                        "outer",
		`{"detail":[{"msg":"field required"}]}`:                                                   `[{"msg":"field required"}]`,
		`{"detail":"Not Found"}`:                                                                  "Not Found",
		`[{"error":{"message":"in a list"}}]`:                                                     "in a list",
		`{"other":1}`:                                                                             `{"other":1}`,
		"<html>\n <b>Bad   gateway</b>\x1b[31m":                                                   "<html> <b>Bad gateway</b> [31m",
		"":                                                                                        "",
		"\xff":                                                                                    "\uFFFD",
		strings.Repeat("x", 700):                                                                  strings.Repeat("x", 600) + " …",
		`{"error":{"type":"overloaded_error"}}`:                                                   "overloaded_error",
		`{"error":{"message":"x (bad)","code":""}}`:                                               "x (bad)",
	}
	for body, want := range tests {
		if got := ErrorText([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]time.Duration{
		"3": 3 * time.Second, "1.5": 1500 * time.Millisecond, "0": 0, "-4": 0, "": 0, "soon": 0, "NaN": 0, "1e300": 365 * 24 * time.Hour,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
	}
	for value, want := range tests {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	if got := retryAfter(http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"1"}}, now); got != 250*time.Millisecond {
		t.Errorf("%s, want 250ms", got)
	}
}
