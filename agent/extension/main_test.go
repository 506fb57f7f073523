package extension_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets the test binary be an extension: what it does is in MUNTIN_TEST_EXT.
func TestMain(m *testing.M) {
	if does := os.Getenv("MUNTIN_TEST_EXT"); does != "" {
		play(does)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type in struct {
	Type   string          `json:"type"`
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

// play is an extension with the habits that are named.
func play(does string) {
	has := func(word string) bool { return strings.Contains(" "+does+" ", " "+word+" ") }
	if has("no-start") {
		fmt.Fprintln(os.Stderr, "cannot work like this")
		os.Exit(3)
	}
	if has("count") {
		f, err := os.OpenFile(os.Getenv("MUNTIN_TEST_COUNT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, "started")
			f.Close()
		}
	}
	out := bufio.NewWriter(os.Stdout)
	say := func(text string) { fmt.Fprintln(out, text); out.Flush() }
	if has("noise") {
		say("this is no frame")
		say(`{"type":""}`)
		say("[1,2]")
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	asking := int64(0) // the request that waits for an answer
	for lines.Scan() {
		var f in
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			os.Exit(9)
		}
		answer := func(result string) { say(fmt.Sprintf(`{"type":"response","id":%d,"result":%s}`, f.ID, result)) }
		switch f.Type {
		case "hello":
			if has("mute") {
				continue
			}
			if has("old") {
				say(`{"type":"ready","params":{"protocol":99}}`)
				continue
			}
			say(`{"type":"ready","params":{"protocol":1}}`)
			if has("env") {
				say(fmt.Sprintf(`{"type":"event","method":"notify","params":{"text":%q}}`, strings.Join(os.Environ(), " ")))
			}
		case "event":
			if has("echo") {
				say(fmt.Sprintf(`{"type":"event","method":"notify","params":{"text":%q}}`, "saw "+f.Method))
			}
			if has("speak") {
				say(`{"type":"event","method":"send","params":{"text":"look","as":"steer"}}`)
				say(`{"type":"event","method":"status","params":{"text":"busy\u001b[31m"}}`)
			}
		case "response":
			f.ID = asking
			answer(string(f.Result))
		case "request":
			switch {
			case has("hang") && f.Method != "tool":
				if has("stubborn") {
					for range time.Tick(time.Hour) { // for ever
					}
				}
			case has("crash") && f.Method == "tool_call":
				fmt.Fprintln(os.Stderr, "boom")
				os.Exit(7)
			case has("fail"):
				say(fmt.Sprintf(`{"type":"response","id":%d,"error":"cannot tell"}`, f.ID))
			case has("nonsense"):
				answer(`{"block":"yes"}`)
			case has("block"):
				answer(`{"block":true,"reason":"no \u001b[2J way"}`)
			case has("change"):
				answer(change(f))
			case has("ask"):
				asking = f.ID
				say(`{"type":"request","id":77,"method":"ask","params":{"kind":"confirm","title":"Sure?"}}`)
			case f.Method == "tool":
				for i := range 3 {
					say(fmt.Sprintf(`{"type":"update","id":%d,"params":{"text":"part %d"}}`, f.ID, i))
				}
				answer(`{"text":"done","details":{"a":1}}`)
			default:
				answer("{}")
			}
		case "cancel":
			say(fmt.Sprintf(`{"type":"response","id":%d,"error":"cancelled"}`, f.ID))
		}
	}
	if has("stay") {
		for range time.Tick(time.Hour) {
		}
	}
}

// change changes what each gate may.
func change(f in) string {
	tag := os.Getenv("MUNTIN_TEST_TAG")
	switch f.Method {
	case "input":
		var p struct{ Text string }
		_ = json.Unmarshal(f.Params, &p)
		if p.Text == "swallow" {
			return `{"action":"handled","message":"swallowed"}`
		}
		return fmt.Sprintf(`{"action":"transform","text":%q}`, p.Text+tag)
	case "before_start":
		return fmt.Sprintf(`{"system":%q,"append":%q}`, "system"+tag, tag)
	case "context":
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"all is new"}],"timestamp":1}]}`
	case "request":
		return `{"tools":["read"],"maxTokens":7,"thinking":"low"}`
	case "tool_call":
		return fmt.Sprintf(`{"args":{"command":%q}}`, tag)
	case "tool_result":
		return `{"content":[{"type":"text","text":"redacted"}],"isError":true}`
	case "turn":
		return `{"action":"end"}`
	case "compaction":
		return `{"summary":"mine"}`
	case "command":
		var p struct{ Name, Args string }
		_ = json.Unmarshal(f.Params, &p)
		return fmt.Sprintf(`{"text":%q,"prompt":%q}`, p.Name+" was called", p.Args)
	case "session_switch":
		return `{"cancel":true,"reason":"stay"}`
	}
	return "{}"
}
