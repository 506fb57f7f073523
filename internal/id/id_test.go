package id

import (
	"strings"
	"testing"
	"time"
)

func TestNewSortsByTime(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_795_000_000_000)
	a, b := New(now), New(now.Add(time.Millisecond))
	if a >= b || !Valid(a) || Valid(a+"x") || Valid("") {
		t.Errorf("%s, %s", a, b)
	}
	if got, err := Time(a); err != nil || !got.Equal(now) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"a", "0", "ada-1", strings.Repeat("x", MaxName)} {
		if err := CheckName("agent", ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", "-a", "A", "a b", "a_b", "ä", "a/b", "..", "a\n", "#{x}", strings.Repeat("x", MaxName+1)} {
		if err := CheckName("agent", bad); err == nil || !strings.HasPrefix(err.Error(), "agent name ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
