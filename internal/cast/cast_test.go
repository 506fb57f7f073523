package cast

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const recording = "../../orchestrator/history/testdata/run/agents/ada/screen.cast"

// printed decodes what a recording's file says was printed, without the package.
func printed(t *testing.T, data []byte) string {
	t.Helper()
	var b strings.Builder
	for line := range bytes.Lines(data) {
		var e [3]any
		if json.Unmarshal(line, &e) == nil && e[1] == "o" {
			b.WriteString(e[2].(string))
		}
	}
	return b.String()
}

// TestReplayExact reads a real recording: every byte, at times that agree with
// the supervisor's own log, across a new start.
func TestReplayExact(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	want := printed(t, data)
	var got strings.Builder
	var last time.Time
	marks := 0
	err = Read(recording, func(e Event) error {
		if e.Time.Before(last) {
			t.Errorf("time goes back: %s after %s", e.Time, last)
		}
		last = e.Time
		switch e.Code {
		case Output:
			if e.Offset != int64(got.Len()) {
				t.Errorf("offset %d, want %d", e.Offset, got.Len())
			}
			got.WriteString(e.Data)
		case Marker:
			marks++
			if want := "2026-11-30T20:36:50.789653142Z"; e.Time.Format(time.RFC3339Nano) != want {
				t.Errorf("started again at %s, want %s", e.Time, want)
			}
		case Begin, Resize, Exit, Other:
		}
		return nil
	})
	if err != nil || got.String() != want || marks != 1 || want == "" {
		t.Errorf("%d bytes, want %d; %d marks; %v", got.Len(), len(want), marks, err)
	}
}

// TestCopy writes a recording in both versions and reads the same bytes back,
// and at the same times.
func TestCopy(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	var times [2][]float64
	for i, version := range []int{2, 3} {
		var out bytes.Buffer
		if err := Copy(&out, recording, version, "ada"); err != nil {
			t.Fatal(err)
		}
		if got := printed(t, out.Bytes()); got != printed(t, data) {
			t.Errorf("version %d: other bytes", version)
		}
		sum := 0.0
		for line := range bytes.Lines(out.Bytes()) {
			var e [3]any
			if json.Unmarshal(line, &e) != nil {
				var h map[string]any
				if err := json.Unmarshal(line, &h); err != nil || h["version"] != float64(version) {
					t.Errorf("version %d: header %s", version, line)
				}
				continue
			}
			if sum += e[0].(float64); version == 2 {
				sum = e[0].(float64)
			}
			if e[1] == "o" {
				times[i] = append(times[i], sum)
			}
		}
	}
	if len(times[0]) != len(times[1]) {
		t.Fatalf("%d and %d events", len(times[0]), len(times[1]))
	}
	for i := range times[0] {
		if d := times[0][i] - times[1][i]; d > 0.001 || d < -0.001 {
			t.Errorf("event %d: %f and %f", i, times[0][i], times[1][i])
		}
	}
	if err := Copy(&bytes.Buffer{}, filepath.Join(t.TempDir(), "none"), 3, ""); !errors.Is(err, ErrNothing) {
		t.Errorf("no recording: %v", err)
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "screen.cast")
	text := `{"version":3,"term":{"cols":20,"rows":3},"timestamp":1000}
[1, "o", "one\r\n"]
nonsense
[1, "r", "30x4"]
[1, "o", "\u001b[31mtwo\u001b[m\r\n"]
[1, "o", "\u001b[2J\u001b[Hthree"]
[1, "x", "0"]
[1, "o", "torn`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		lines []string
		cols  int
	}{
		{time.Second, []string{"one", "", ""}, 20},
		{1999 * time.Millisecond, []string{"one", "", ""}, 20},
		{3 * time.Second, []string{"one", "two", "", ""}, 30},
		{time.Hour, []string{"three", "", "", ""}, 30},
	} {
		sc, err := At(path, time.Unix(1000, 0).Add(c.after))
		if err != nil || !slices.Equal(sc.Lines, c.lines) || sc.Cols != c.cols {
			t.Errorf("after %s: %+v, %v", c.after, sc, err)
		}
	}
	if _, err := At(path, time.Unix(999, 0)); !errors.Is(err, ErrNothing) {
		t.Errorf("before: %v", err)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	var text Text
	var got []string
	add := func(line string) error { got = append(got, line); return nil }
	for _, part := range []string{"\x1b[1mhel", "lo\x1b[", "0m wörld\r\n\x1b[5;1Hmenu\x1b[6;1", "Hitem\x1b]0;title", "\x07 x\x1b[3Cy", "\n\x1b"} {
		if err := text.Add(part, add); err != nil {
			t.Fatal(err)
		}
	}
	if err := text.Flush(add); err != nil {
		t.Fatal(err)
	}
	if want := []string{"hello wörld", "menu", "item x y"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte(`{"version":3,"term":{"cols":20,"rows":3},"timestamp":1000}`), []byte(`[1, "o", "x\u001b[2J"]`))
	f.Add([]byte(`[1e300, "r", "-1x99999999"]`), []byte(`[0.5, "m", "started again at 2026-01-01T00:00:00Z"]`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var d Decoder
		var text Text
		for _, line := range [][]byte{a, b} {
			e, ok := d.Line(line)
			if !ok {
				continue
			}
			if e.Cols < 0 || e.Cols > maxSize || e.Rows > maxSize {
				t.Errorf("%s: size %dx%d", line, e.Cols, e.Rows)
			}
			if err := text.Add(e.Data, func(string) error { return nil }); err != nil {
				t.Error(err)
			}
		}
	})
}
