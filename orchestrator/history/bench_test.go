package history

import (
	"bytes"
	"os"
	"testing"

	"muntin/agent/pty"
)

// BenchmarkLoad reads a run whose logs are as long as those of a long day.
func BenchmarkLoad(b *testing.B) {
	run := recorded(b)
	path := run.Dir.Agent("ada").Events()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat(data, 500), 0o600); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n = len(load(b, run, nil))
	}
	b.ReportMetric(float64(n), "events")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/event")
}

// BenchmarkDecode is the least that reading the same log can cost: each line
// decoded, and nothing made of it.
func BenchmarkDecode(b *testing.B) {
	run := recorded(b)
	n := 0
	for b.Loop() {
		n = 0
		if _, err := pty.ReadEvents(run.Dir.Agent("ada"), 0, func(pty.Event, int64) error { n++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/event")
}
