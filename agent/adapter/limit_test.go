package adapter

import (
	"testing"
	"time"
)

func TestLimitOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	tests := []struct {
		text string
		kind LimitKind
		in   time.Duration // 0: no time
	}{
		{"the file is missing", "", 0},
		{"the error was on line 429 of the file", "", 0},
		{"API Error: Request rejected (429) · Rate limit exceeded", LimitRate, 0},
		{"You've hit your usage limit. Try again in 3 days 1 hour 5 minutes.", LimitQuota, 73*time.Hour + 5*time.Minute},
		{"You've hit your usage limit. Upgrade to Pro or try again at 3:05 PM.", LimitQuota, 65 * time.Minute},
		{"5-hour limit reached ∙ resets 3pm", LimitQuota, time.Hour},
		{"5-hour limit reached ∙ resets 1am", LimitQuota, 11 * time.Hour},
		{"Claude AI usage limit reached|1796052600", LimitQuota, 90 * time.Minute},
		{"quota exceeded [retrying in 9m 50s attempt #1]", LimitQuota, 9*time.Minute + 50*time.Second},
		{`429: {"type":"insufficient_quota"}`, LimitQuota, 0},
		{`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34s"}]}}`, LimitQuota, 34 * time.Second},
		{"Rate limit reached for gpt-5. Please try again in 1.5s.", LimitRate, 2 * time.Second},
		{"too many requests, retry-after: 120", LimitRate, 2 * time.Minute},
		{`usage_limit_reached "resets_in_seconds": 3600`, LimitQuota, time.Hour},
		{"usage limit reached, resets at 2026-12-01T00:00:00Z", LimitQuota, 10 * time.Hour},
		{"usage limit reached, resets at 2020-12-01T00:00:00Z", LimitQuota, 0},
		{"usage limit: try again in 99999999 days", LimitQuota, 0},
	}
	for _, tt := range tests {
		l, ok := LimitOf(tt.text, now)
		if ok != (tt.kind != "") || l.Kind != tt.kind {
			t.Errorf("%q is %q (%v), want %q", tt.text, l.Kind, ok, tt.kind)
		}
		var in time.Duration
		if !l.RetryAt.IsZero() {
			in = l.RetryAt.Sub(now)
		}
		if in != tt.in {
			t.Errorf("%q: again in %s, want %s", tt.text, in, tt.in)
		}
	}
}

func FuzzLimitOf(f *testing.F) {
	f.Add("usage limit, try again in 3 days 1 hour 5 minutes, resets at 3pm")
	f.Add("429: retry-after=99999999999h")
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
		if l, _ := LimitOf(text, now); !l.RetryAt.IsZero() && (l.RetryAt.Before(now) || l.RetryAt.Sub(now) > maxRetry+time.Second) {
			t.Fatalf("again at %s", l.RetryAt)
		}
	})
}
