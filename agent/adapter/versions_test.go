package adapter

import "testing"

func TestRange(t *testing.T) {
	t.Parallel()
	tests := []struct {
		r       Range
		version string
		want    bool
	}{
		{"2.1", "2.1.332 (Claude Code)", true}, {"2.1", "2.10.0", false}, {"2.1", "2.0.9", false}, {"2.1", "3.0", false}, {"2", "2.7.1", true},
		{"0.73, 1.6", "0.73.1", true}, {"0.73, 1.6", "1.6.0", true}, {"0.73, 1.6", "1.5.9", false},
		{"1.2-1.9", "codex-cli 1.9.99", true}, {"1.2-1.9", "1.10.0", false}, {"1.2-1.9", "1.1.9", false}, {"1.2-2", "2.99", true},
		{"", "1.0", true}, {"1.2", "unknown", true}, {"1.2", "", true},
	}
	for _, tt := range tests {
		if err := tt.r.Check(); err != nil {
			t.Error(err)
		}
		if got := tt.r.Has(tt.version); got != tt.want {
			t.Errorf("%q has %q: %v", tt.r, tt.version, got)
		}
	}
	for _, bad := range []Range{"x", "1.2-", "2-1", "1..2", "1-2-3"} {
		if bad.Check() == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzRange(f *testing.F) {
	f.Add("0.73, 1.6-1.9", "1.7.2")
	f.Fuzz(func(_ *testing.T, r, version string) {
		_ = Range(r).Check()
		_ = Range(r).Has(version)
	})
}
