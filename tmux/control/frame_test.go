package control

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run feeds a stream to a framer and writes down what it makes of it.
func run(word string, stream []byte) (got []string) {
	f := framer{word: word}
	f.onBlock = func(b block) {
		got = append(got, fmt.Sprintf("block ours=%v failed=%v %q", b.ours, b.failed, b.text))
	}
	f.onLine = func(line []byte) {
		e, ok := parse(line)
		if !ok {
			got = append(got, fmt.Sprintf("unknown %q", line))
			return
		}
		got = append(got, fmt.Sprintf("event %d %s %s %q %q %v", e.Kind, e.Pane, e.Name, e.Text, e.Data, e.Age))
	}
	for line := range bytes.SplitSeq(bytes.TrimSuffix(stream, []byte("\n")), []byte("\n")) {
		f.feed(line)
	}
	f.finish()
	return got
}

// The streams in testdata were written by real servers.
func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		stream, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(run("no marker in it ", stream), "\n") + "\n"
		golden := strings.TrimSuffix(path, ".txt") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", path, err, got, want)
		}
	}
}

func TestFramer(t *testing.T) {
	t.Parallel()
	marker := func(n int) string {
		return fmt.Sprintf("%%begin 1 %d 1\nM 1 %d\n%%end 1 %d 1\n", n, n, n)
	}
	marked := func(n int) string { return fmt.Sprintf("block ours=true failed=false %q", fmt.Sprintf("M 1 %d\n", n)) }
	for name, tc := range map[string]struct {
		stream string
		want   []string
	}{
		"a reply that holds its own end": {
			"%begin 1 5 1\na\n%end 1 5 1\n%window-add @9\n%begin 1 6 1\nx\n%end 1 6 1\n%error 1 5 1\nb\n%end 1 5 1\n" + marker(7),
			[]string{
				`block ours=true failed=false "a\n%end 1 5 1\n%window-add @9\n%begin 1 6 1\nx\n%end 1 6 1\n%error 1 5 1\nb\n"`,
				marked(7),
			},
		},
		"notifications and a hook before the marker": {
			"%begin 1 5 1\na\n%end 1 5 1\n%window-add @9\n%begin 1 6 0\nhook\n%end 1 6 0\nstray\n" + marker(7),
			[]string{`block ours=true failed=false "a\n"`, `event 5  window-add "@9" "" 0s`, `block ours=false failed=false "hook\n"`, `unknown "stray"`, marked(7)},
		},
		"nested": {
			"%begin 1 5 1\n%end 1 5 1\n%begin 1 6 1\nin\n%end 1 6 1\n%begin 1 7 1\nno\n%error 1 7 1\n" + marker(8),
			[]string{`block ours=true failed=false ""`, `block ours=true failed=false "in\n"`, `block ours=true failed=true "no\n"`, marked(8)},
		},
		"other numbers end nothing": {
			"%begin 1 5 0\n%end 2 5 0\n%end 1 5 1\n%end 1 5\n%end 1 5 0\n",
			[]string{`block ours=false failed=false "%end 2 5 0\n%end 1 5 1\n%end 1 5\n"`},
		},
		"the end of the stream within a block": {"%begin 1 5 1\na\n%exit", nil},
		"the end of the stream before the marker": {
			"%begin 1 5 1\na\n%end 1 5 1\n%exit bye",
			[]string{`block ours=true failed=false "a\n"`, `event 6  exit "bye" "" 0s`},
		},
		"unknown lines": {
			"%begin 1 2\n%begin 1 2 x\n%begin 1 2 3 4\n%nosuch x\n%output\n%output x y\n%extended-output %1 x : y\nfree text\n%end 1 1 1\n%subscription-changed\n",
			[]string{
				`unknown "%begin 1 2"`, `unknown "%begin 1 2 x"`, `unknown "%begin 1 2 3 4"`, `unknown "%nosuch x"`, `unknown "%output"`,
				`unknown "%output x y"`, `unknown "%extended-output %1 x : y"`, `unknown "free text"`, `unknown "%end 1 1 1"`, `unknown "%subscription-changed"`,
			},
		},
		"future arguments, and an escape cut in two": {
			"%extended-output %12 250 new thing : a\\033 : b\\\\01\n%output %1 \\303\n%output %1 \\251\\400\\09\n",
			[]string{
				`event 1 %12  "" "a\x1b : b\\\\01" 250ms`, `event 1 %1  "" "\xc3" 0s`, `event 1 %1  "" "\xa9\\400\\09" 0s`,
			},
		},
	} {
		if got := run("M ", []byte(tc.stream)); !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}

// Whatever comes, the framer neither panics nor invents bytes.
func FuzzFramer(f *testing.F) {
	for _, path := range []string{"testdata/session-3.3a.txt", "testdata/kill-server-3.3a.txt"} {
		stream, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream)
	}
	f.Add([]byte("%begin 1 5 1\na\n%end 1 5 1\n%end 1 5 1\n%begin 1 7 1\nM 1 7\n%end 1 7 1\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		total := 0
		fr := framer{word: "M "}
		fr.onBlock = func(b block) { total += len(b.text) }
		fr.onLine = func(line []byte) {
			total += len(line)
			if e, ok := parse(line); ok && len(e.Data) > len(line) {
				t.Errorf("%q became longer: %q", line, e.Data)
			}
		}
		for line := range bytes.SplitSeq(stream, []byte("\n")) {
			fr.feed(line)
		}
		fr.finish()
		if fr.state == ended || len(fr.tail) > 0 || total > len(stream)+1 {
			t.Errorf("%q: state %d, %d bytes out of %d", stream, fr.state, total, len(stream))
		}
	})
}

// encode escapes as tmux does in %output.
func encode(data []byte) []byte {
	var out []byte
	for _, c := range data {
		if c < 0x20 || c == '\\' {
			out = fmt.Appendf(out, `\%03o`, c)
			continue
		}
		out = append(out, c)
	}
	return out
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("a\\033b\x1b\\\xff é"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := decode(encode(data)); !bytes.Equal(got, data) {
			t.Errorf("%q came back as %q", data, got)
		}
		decode(bytes.Clone(data)) // must not panic
	})
}

// A line is one line, and valid for tmux's reader: no control bytes, no bytes
// that are not UTF-8.
func FuzzLine(f *testing.F) {
	f.Add("a;", "-x ~ $HOME #{pid} #(id)\n\r\t\x7f\xff\"\\'")
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := Line(Cmd{"set-option", "-g", "@x", a}, Cmd{"display-message", b})
		if strings.Contains(a+b, "\x00") != (err != nil) {
			t.Fatalf("%q, %q: %v", a, b, err)
		}
		bad := strings.IndexFunc(line, func(r rune) bool { return r < 0x20 || r == 0x7f })
		if bad >= 0 || !utf8.ValidString(line) {
			t.Errorf("%q holds what tmux's reader may take for something else", line)
		}
	})
}
