package difftest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
)

// model answers a prompt "call NAME ARGUMENTS" with that call, and its result, or any
// other prompt, with a text.
func model() llmtest.Script {
	return llmtest.Script{Choose: func(_ int, r llmtest.Request) llmtest.Reply {
		last := r.Messages[len(r.Messages)-1]
		usage := &llm.Usage{Input: 100, Output: 10, Total: 110}
		said := textOf(last)
		text, isCall := strings.CutPrefix(said, "call ")
		switch {
		case last.Role == "tool":
			return llmtest.Reply{Text: "It is done.", Usage: usage}
		case strings.HasPrefix(said, "fail"):
			return llmtest.Reply{Fail: &llmtest.Failure{Status: 401, Message: "bad key"}}
		case !isCall:
			return llmtest.Reply{Text: "An answer.", Usage: usage}
		}
		var calls []llmtest.ToolCall
		for line := range strings.Lines(text) {
			name, args, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "call "), " ")
			calls = append(calls, llmtest.ToolCall{Name: name, Arguments: args})
		}
		return llmtest.Reply{Text: "I call.", Tools: calls, Usage: usage}
	}}
}

// textOf is the text of a message, which Pi sends in a list of parts.
func textOf(m llmtest.Message) string {
	var parts []struct{ Text string }
	if json.Unmarshal(m.Content, &parts) != nil {
		return m.Text()
	}
	text := ""
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// a driver drives one agent in RPC mode.
type driver struct {
	t     testing.TB
	who   string
	cmd   *exec.Cmd
	begun time.Time
	in    io.WriteCloser
	lines chan map[string]any
}

// launch starts an agent; program is muntin's.
func launch(t testing.TB, who, program, url string) *driver {
	t.Helper()
	modules, node := os.Getenv("MUNTIN_PI"), os.Getenv("MUNTIN_NODE")
	if node == "" {
		node = "node"
	}
	home, dir := t.TempDir(), t.TempDir()
	fill(t, dir)
	config := fmt.Sprintf(`{"providers":{"loop":{"baseUrl":%q,"api":"openai-completions","apiKey":"k-loopback","models":[{"id":"m","contextWindow":100000,"maxTokens":4000}]}}}`, url)
	place := map[string]string{"Pi": filepath.Join(home, "pi"), "muntin": filepath.Join(home, ".config", "muntin")}[who]
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "models.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--mode", "rpc", "--no-session", "--model", "loop/m", "--tools", "read,bash,edit,write,grep,find,ls"}
	var cmd *exec.Cmd
	if who == "Pi" {
		args = append([]string{filepath.Join(modules, "@earendil-works/pi-coding-agent/dist/cli.js"), "--offline", "-ne", "-ns", "-np", "-nc"}, args...)
		cmd = exec.CommandContext(t.Context(), node, args...)
	} else {
		cmd = exec.CommandContext(t.Context(), program, append([]string{"agent"}, args...)...)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "PI_OFFLINE=1", "PI_CODING_AGENT_DIR="+place, "XDG_STATE_HOME="+home, "XDG_CONFIG_HOME=", "TMPDIR="+home)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, who: who, cmd: cmd, begun: begun, in: in, lines: make(chan map[string]any, 10_000)}
	go func() {
		defer close(d.lines)
		scan := bufio.NewScanner(out)
		scan.Buffer(nil, 16<<20)
		for scan.Scan() {
			text := strings.ReplaceAll(scan.Text(), dir, "DIR")
			var o map[string]any
			if err := json.Unmarshal([]byte(text), &o); err == nil {
				d.lines <- o
			}
		}
	}()
	t.Cleanup(d.close)
	return d
}

func (d *driver) close() {
	d.in.Close()
	for range d.lines {
	}
	_ = d.cmd.Wait() // again at the end of the test, which is no harm
}

func (d *driver) settled() []map[string]any {
	d.t.Helper()
	return d.until(func(o map[string]any) bool { return o["type"] == "agent_settled" })
}

// muntin builds the program.
func muntin(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "muntin")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "muntin/cmd/muntin").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// fill makes the files that the tools work on.
func fill(t testing.TB, dir string) {
	t.Helper()
	long := strings.Repeat("a line of text\n", 3000)
	for name, text := range map[string]string{
		"a.txt": "one\ntwo\nthree\n", "long.txt": long, "wide.txt": strings.Repeat("x", 60_000) + "\nend\n", "crlf.txt": "a\r\nb\r\n",
		"same.txt": "x\nx\n", "sub/b.txt": "two again\n", "sub/.hidden": "two hidden\n", "ignored.log": "two ignored\n", ".gitignore": "*.log\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func (d *driver) until(fits func(map[string]any) bool) []map[string]any {
	d.t.Helper()
	var all []map[string]any
	for timeout := time.After(60 * time.Second); ; {
		select {
		case o, ok := <-d.lines:
			if !ok {
				d.t.Fatalf("%s has ended: %v", d.who, all)
			}
			if all = append(all, o); fits(o) {
				return all
			}
		case <-timeout:
			d.t.Fatalf("%s does not answer; its last words: %.2000v", d.who, all[max(0, len(all)-3):])
		}
	}
}

func (d *driver) send(o map[string]any) {
	d.t.Helper()
	o["id"] = "1"
	b, err := json.Marshal(o)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.in.Write(append(b, '\n')); err != nil {
		d.t.Fatal(err)
	}
}

// ask gives the response to a command.
func (d *driver) ask(o map[string]any) map[string]any {
	d.t.Helper()
	d.send(o)
	all := d.until(func(o map[string]any) bool { return o["type"] == "response" })
	return all[len(all)-1]
}

// prompt gives what comes of a prompt: the kinds of events with their keys, and the
// results of tools.
func (d *driver) prompt(text string) (events, results []string) {
	d.t.Helper()
	if r := d.ask(map[string]any{"type": "prompt", "message": text}); r["success"] != true {
		d.t.Fatalf("%s: %v", d.who, r)
	}
	for _, o := range d.settled() {
		name, _ := o["type"].(string)
		switch name {
		case "tool_execution_update":
			continue // as many as there is time for
		case "tool_execution_end":
			results = append(results, resultText(o))
			delete(o, "durationMs") // Pi has none for a call that did not run
		case "message_update":
			e, _ := o["assistantMessageEvent"].(map[string]any)
			if e["type"] == "text_end" {
				continue // with this API, Pi ends a text with the whole answer, and we with the next block
			}
			name += ":" + fmt.Sprint(e["type"]) + keys(e)
		case "message_start", "message_end":
			m, _ := o["message"].(map[string]any)
			if m["role"] == "system" {
				continue // Pi keeps its system prompt in the transcript
			}
			name += ":" + fmt.Sprint(m["role"])
		}
		name += keys(o)
		if len(events) == 0 || events[len(events)-1] != name {
			events = append(events, name)
		}
	}
	return events, results
}

func keys(o map[string]any) string {
	var names []string
	for k := range o {
		names = append(names, k)
	}
	slices.Sort(names)
	return "{" + strings.Join(names, ",") + "}"
}

var spill = regexp.MustCompile(`/\S*bash-[0-9a-f]+\.(log|txt)|/\S*blobs/\S+`)

func resultText(o map[string]any) string {
	r, _ := o["result"].(map[string]any)
	blocks, _ := r["content"].([]any)
	text := fmt.Sprintf("error=%v ", o["isError"])
	for _, b := range blocks {
		b, _ := b.(map[string]any)
		text += fmt.Sprint(b["text"])
	}
	text = spill.ReplaceAllString(text, "SPILL")
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n\n\n", "\n\n") // we leave the last line end out
	if len(text) > 600 {
		text = text[:200] + fmt.Sprintf("…%d…", len(text)) + text[len(text)-300:]
	}
	return text
}

// prompts are what both are asked, in turn. With kept, the results differ on
// purpose; docs/pi.md says why.
func prompts() []struct{ text, kept string } {
	const (
		words = "the text is our own"
		lines = "a line end is not the start of a line"
		order = "our results are sorted"
	)
	return []struct{ text, kept string }{
		{"hello", ""},
		{`call read {"path":"a.txt"}`, ""},
		{`call read {"path":"long.txt"}`, lines},
		{`call read {"path":"long.txt","offset":10,"limit":2}`, lines},
		{`call read {"path":"a.txt","offset":99}`, words},
		{`call read {"path":"wide.txt"}`, words},
		{`call read {"path":"nosuch.txt"}`, words},
		{`call read {"path":"sub"}`, words},
		{`call read {}`, ""},
		{`call read {"path":"a.txt","limit":"2"}`, lines},
		{`call bash {"command":"echo out; echo err >&2"}`, ""},
		{`call bash {"command":"exit 3"}`, words},
		{`call bash {"command":"echo x; exit 3"}`, ""},
		{`call bash {"command":"true"}`, ""},
		{`call bash {"command":"seq 5000"}`, ""},
		{`call bash {"command":"head -c 70000 /dev/zero | tr '\\0' y"}`, ""},
		{`call bash {"command":"echo begun; sleep 10","timeout":1}`, ""},
		{`call bash {"command":"kill -9 $$"}`, words},
		{`call write {"path":"new/c.txt","content":"c\n"}`, words},
		{`call edit {"path":"a.txt","edits":[{"oldText":"two","newText":"zwei"}]}`, words},
		{`call edit {"path":"a.txt","edits":[{"oldText":"nosuch","newText":"x"}]}`, words},
		{`call edit {"path":"same.txt","edits":[{"oldText":"x","newText":"y"}]}`, words},
		{`call edit {"path":"a.txt","edits":[{"oldText":"one","newText":"one"}]}`, words},
		{`call edit {"path":"a.txt","edits":[]}`, words},
		{`call edit {"path":"nosuch.txt","edits":[{"oldText":"a","newText":"b"}]}`, words},
		{`call edit {"path":"crlf.txt","edits":[{"oldText":"a\nb","newText":"a\nc"}]}`, words},
		{`call bash {"command":"od -c crlf.txt"}`, ""},
		{`call ls {}`, ""},
		{`call ls {"path":"sub"}`, ""},
		{`call ls {"limit":2}`, ""},
		{`call ls {"path":"nosuch"}`, words},
		{`call grep {"pattern":"two","path":"sub"}`, order},
		{`call grep {"pattern":"nosuch"}`, ""},
		{`call grep {"pattern":"three","context":1}`, ""},
		{`call grep {"pattern":"a line","limit":2}`, ""},
		{`call find {"pattern":"b.txt"}`, ""},
		{`call find {"pattern":"*.nosuch"}`, ""},
		{`call nosuch {}`, ""},
		{"call read {\"path\":\"a.txt\"}\ncall ls {\"path\":\"sub\"}", ""},
		{"fail please", ""},
	}
}

// without is what of a list is not in another; all of it when only the order differs.
func without(list, other []string) []string {
	left := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
	if len(left) == 0 {
		return list
	}
	return left
}

func TestRPCAsPi(t *testing.T) {
	if os.Getenv("MUNTIN_PI") == "" {
		t.Skip("MUNTIN_PI does not say where Pi is")
	}
	server := llmtest.NewServer(model())
	defer server.Close()
	program := muntin(t)
	pi, ours := launch(t, "Pi", program, server.URL), launch(t, "muntin", program, server.URL)
	for _, p := range prompts() {
		piEvents, piResults := pi.prompt(p.text)
		events, results := ours.prompt(p.text)
		if !slices.Equal(events, piEvents) {
			t.Errorf("%s\nPi's events %q\nours        %q", p.text, without(piEvents, events), without(events, piEvents))
		}
		for i := range min(len(results), len(piResults)) {
			ours, pis := results[i], piResults[i]
			if p.kept != "" {
				ours, pis = ours[:len("error=true")], pis[:len("error=true")]
			}
			if ours != pis {
				t.Errorf("%s\nPi:   %q\nours: %q", p.text, piResults[i], results[i])
			}
		}
	}
	if a, b := pi.tree(), ours.tree(); !slices.Equal(a, b) {
		t.Errorf("Pi's session is\n%q\nours\n%q", a, b)
	}
}

// tree is the messages of the session, each with how deep it lies below others.
func (d *driver) tree() (all []string) {
	d.t.Helper()
	data, _ := d.ask(map[string]any{"type": "get_entries"})["data"].(map[string]any)
	entries, _ := data["entries"].([]any)
	depth := map[any]int{nil: 0}
	for _, e := range entries {
		e, _ := e.(map[string]any)
		m, _ := e["message"].(map[string]any)
		depth[e["id"]] = depth[e["parentId"]]
		if m["role"] == nil || m["role"] == "system" {
			continue
		}
		depth[e["id"]]++
		all = append(all, fmt.Sprint(depth[e["id"]], m["role"], m["stopReason"], m["isError"]))
	}
	return all
}
