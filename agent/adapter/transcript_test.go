package adapter_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent/adapter"
)

// TestReader reads a conversation of each CLI, as it wrote it down, and checks
// what comes of it: testdata/<format>.jsonl and what is wanted beside it.
func TestReader(t *testing.T) {
	t.Parallel()
	for _, format := range []adapter.Format{adapter.FormatClaude, adapter.FormatCodex, adapter.FormatPi, adapter.FormatGemini, adapter.FormatQwen} {
		data, err := os.ReadFile(filepath.Join("testdata", string(format)+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", string(format)+".want"))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		r := adapter.Reader{Format: format}
		for line := range strings.Lines(string(data)) {
			for _, rec := range r.Line([]byte(line)) {
				text, err := json.Marshal(rec)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(append(text, '\n'))
			}
		}
		if got.String() != string(want) {
			t.Errorf("%s: got\n%swant\n%s", format, got.String(), want)
		}
	}
}

func TestReaderOfLaterPart(t *testing.T) {
	t.Parallel()
	r := adapter.Reader{Format: adapter.FormatClaude, Later: true}
	if got := r.Line([]byte(`{"type":"cost-state","totalCostUSD":5}`)); got != nil {
		t.Errorf("the cost of what was not read is told: %+v", got)
	}
	got := r.Line([]byte(`{"type":"cost-state","totalCostUSD":5.5}`))
	if len(got) != 1 || got[0].Usage.Cost != 0.5 {
		t.Errorf("got %+v, want a cost of 0.5", got)
	}
}

func FuzzReader(f *testing.F) {
	formats := []adapter.Format{adapter.FormatClaude, adapter.FormatCodex, adapter.FormatPi, adapter.FormatGemini, adapter.FormatQwen}
	for _, format := range formats {
		data, err := os.ReadFile(filepath.Join("testdata", string(format)+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			f.Add([]byte(line))
		}
	}
	f.Add([]byte(`{"type":"assistant","message":{"content":7,"usage":{"input_tokens":"x"}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, format := range formats {
			r := adapter.Reader{Format: format}
			for _, rec := range r.Line(line) {
				if rec.Kind == adapter.RecordUsage && rec.Usage == nil {
					t.Fatalf("%s: a usage without one", format)
				}
				if _, err := json.Marshal(rec); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
