package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// ErrorText gives what the body of an error says, in one line of bounded length.
// It knows the shapes that providers use: an error object, an error text, a
// message or a detail, each also in a list.
func ErrorText(body []byte) string {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &shape) != nil {
		return oneLine(string(body))
	}
	for _, part := range []json.RawMessage{shape.Error, shape.Detail} {
		if text := errorPart(part); text != "" {
			return oneLine(text)
		}
	}
	if shape.Message != "" {
		return oneLine(shape.Message)
	}
	return oneLine(string(body))
}

// errorPart reads a text, or an object with a message and what names the error.
func errorPart(part json.RawMessage) string {
	if len(part) == 0 || string(part) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(part, &text) == nil {
		return text
	}
	var object struct {
		Message string `json:"message"`
		Type    any    `json:"type"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(part, &object) != nil {
		return string(part)
	}
	name, _ := object.Code.(string)
	if name == "" {
		name, _ = object.Type.(string)
	}
	switch {
	case object.Message == "" && name == "":
		return string(part)
	case object.Message == "":
		return name
	case name == "" || strings.Contains(object.Message, name):
		return object.Message
	}
	return object.Message + " (" + name + ")"
}

// oneLine makes text fit for an error message.
func oneLine(text string) string {
	const limit = 600
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + " …"
	}
	return text
}

func size(bytes int) string { return strconv.Itoa(bytes) + " bytes" }

// redact hides secrets in a text. A secret of a few letters, such as those that
// local servers are given, is none.
func redact(text string, secrets []string) string {
	const shortest = 6
	for _, s := range secrets {
		if len(s) >= shortest {
			text = strings.ReplaceAll(text, s, "[key]")
		}
	}
	return text
}

// ErrorText gives what an error object says, with no secret in it.
func (s *Stream) ErrorText(body []byte) string {
	// Before, so that shortening cannot leave a part; and after, for what JSON had escaped.
	clean := redact(string(body), s.secrets)
	return redact(ErrorText([]byte(clean)), s.secrets)
}

// retryDelay reads how long an error object asks to wait, as Google's do
// (google.rpc.RetryInfo); 0 when it does not say.
func retryDelay(body []byte) time.Duration {
	type failure struct {
		Error struct {
			Details []struct {
				Delay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	var list []failure
	var one failure
	if json.Unmarshal(body, &list) != nil {
		if json.Unmarshal(body, &one) != nil {
			return 0
		}
		list = []failure{one}
	}
	for _, f := range list {
		for _, d := range f.Error.Details {
			if delay, err := time.ParseDuration(d.Delay); err == nil && delay > 0 {
				return delay
			}
		}
	}
	return 0
}

// retryAfter reads what the server asks for: retry-after-ms, or Retry-After in
// seconds or as a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	const longest = 365 * 24 * time.Hour
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, float64(longest/time.Millisecond)) * float64(time.Millisecond))
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return time.Duration(min(s, longest.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(longest, max(0, at.Sub(now)))
	}
	return 0
}
