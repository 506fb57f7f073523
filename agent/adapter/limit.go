package adapter

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A LimitKind says what a provider has no more of.
type LimitKind string

// The kinds of limits.
const (
	LimitRate  LimitKind = "rate"  // too many requests in a short time: the same works again soon
	LimitQuota LimitKind = "quota" // what the plan or the purse allows is used up
)

// A Limit is what an error text says about a provider's limit.
type Limit struct {
	Kind    LimitKind
	RetryAt time.Time // zero where it does not say
}

// quotaWords are of a plan that is used up, rateWords of requests that came
// too fast: what the CLIs and the providers behind them are known to write.
func quotaWords() []string {
	return []string{
		"usage limit", "usage_limit", "quota", "-hour limit", "daily limit", "weekly limit", "credit balance", "billing", "insufficient_quota", "out of credits",
		"hit your limit", "exceeded your current", "resource_exhausted", "resource exhausted",
	}
}

func rateWords() []string {
	return []string{"rate limit", "rate_limit", "ratelimit", "(429)", "429:", "http 429", "status 429", "too many requests"}
}

// LimitOf reads an error text. now is the time at which it was said: the texts
// name hours of the day, and times from now. ok is false if it is about no
// limit.
func LimitOf(text string, now time.Time) (l Limit, ok bool) {
	low := strings.ToLower(text)
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has(quotaWords()):
		l.Kind = LimitQuota
	case has(rateWords()):
		l.Kind = LimitRate
	default:
		return Limit{}, false
	}
	l.RetryAt = RetryAt(text, now)
	return l, true
}

// maxRetry is how far ahead a time to try again may lie: what is further is
// no such time.
const maxRetry = 45 * 24 * time.Hour

var (
	retryField = regexp.MustCompile(`(?i)"?(?:retry[-_ ]?after|retry_?delay|resets?_(?:in|after)(?:_seconds)?|retry_after_seconds)"?\s*[:=]\s*"?(\d{1,9}(?:\.\d+)?)(ms|s|m|h)?\b`)
	resetStamp = regexp.MustCompile(`(?i)(?:resets?_at"?\s*[:=]\s*"?|limit reached\|)(\d{10}|\d{13})\b`)
	resetISO   = regexp.MustCompile(`(?i)(?:reset|retry|again|until)[^\d\n]{0,20}(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))`)
	retrySpan  = regexp.MustCompile(`(?i)(?:again|retry(?:ing)?|resets?|available|wait)(?: again)?(?: in| after| for)? ((?:\d{1,6}(?:\.\d+)?\s*(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|[dhms])\b[ ,]*(?:and )?)+)`)
	spanPart   = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(ms|[dhms])`)
	resetClock = regexp.MustCompile(`(?i)(?:resets?|again|until)(?: at| on)? (\d{1,2})(?::(\d\d))?\s*([ap])\.?m`)
	resetHours = regexp.MustCompile(`(?i)(?:resets?|again|until)(?: at)? (\d{1,2}):(\d\d)\b`)
)

// RetryAt is the time at which a text says that requests are taken again; zero
// if it names none. Hours of the day are taken to be of now's location, as the
// CLIs mean them.
func RetryAt(text string, now time.Time) time.Time {
	at := retryAt(text, now)
	if at.Before(now) || at.Sub(now) > maxRetry {
		return time.Time{}
	}
	return at.Round(time.Second)
}

func retryAt(text string, now time.Time) time.Time {
	if m := resetISO.FindStringSubmatch(text); m != nil {
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"} {
			if at, err := time.Parse(layout, m[1]); err == nil {
				return at
			}
		}
	}
	if m := resetStamp.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64) // digits
		if len(m[1]) == len("1700000000000") {
			return time.UnixMilli(n)
		}
		return time.Unix(n, 0)
	}
	if m := retryField.FindStringSubmatch(text); m != nil {
		return now.Add(span(m[1], m[2]))
	}
	if m := retrySpan.FindStringSubmatch(text); m != nil {
		var sum time.Duration
		for _, part := range spanPart.FindAllStringSubmatch(m[1], -1) {
			sum += span(part[1], strings.ToLower(part[2]))
		}
		return now.Add(sum)
	}
	if m := resetClock.FindStringSubmatch(text); m != nil {
		hour, minute := number(m[1])%12, number(m[2])
		if strings.EqualFold(m[3], "p") {
			hour += 12
		}
		return nextClock(now, hour, minute)
	}
	if m := resetHours.FindStringSubmatch(text); m != nil {
		return nextClock(now, number(m[1]), number(m[2]))
	}
	return time.Time{}
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // at most two
	return n
}

// span is a number of a unit, seconds if there is none. More than maxRetry is
// as good as maxRetry and a day.
func span(digits, unit string) time.Duration {
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	each := map[string]time.Duration{"ms": time.Millisecond, "": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[unit]
	return time.Duration(min(n*float64(each), float64(maxRetry+24*time.Hour)))
}

// nextClock is the next time that the clock shows that.
func nextClock(now time.Time, hour, minute int) time.Time {
	if hour > 23 || minute > 59 {
		return time.Time{}
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}
