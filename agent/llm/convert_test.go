package llm_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"muntin/agent/llm"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	call := llm.Block{Type: llm.BlockToolCall, ID: "call_1|fc_2", Name: "read", Arguments: json.RawMessage(`{}`), ThoughtSignature: "s"}
	image := llm.Block{Type: llm.BlockImage, Data: "QQ==", MimeType: "image/png"}
	from := []llm.Message{
		{Role: llm.RoleUser, Content: []llm.Block{image}},
		{Role: llm.RoleAssistant, API: "a", Provider: "p", Model: "m", StopReason: llm.StopToolUse, Content: []llm.Block{
			{Type: llm.BlockThinking, Thinking: "hm", ThinkingSignature: "s"}, {Type: llm.BlockText, Text: "t", TextSignature: "s"}, call,
		}},
		{Role: llm.RoleTool, ToolCallID: "call_1|fc_2", Content: []llm.Block{image}},
	}
	before, _ := json.Marshal(from)
	own := llm.Convert(from, llm.Target{API: "a", Provider: "p", Model: "m"})
	if !reflect.DeepEqual(own, from) {
		t.Errorf("for the same model %+v", own)
	}
	other := llm.Convert(from, llm.Target{API: "a", Provider: "p", Model: "n", NoImages: true, IDs: llm.IDRule{Word: true, Max: 64}})
	if other[0].Content[0].Text != llm.NoImage || other[2].Content[0].Text != llm.NoImage {
		t.Errorf("images %+v", other)
	}
	blocks := other[1].Content
	if len(blocks) != 2 || blocks[0].TextSignature != "" || blocks[1].ThoughtSignature != "" ||
		blocks[1].ID == call.ID || blocks[1].ID != other[2].ToolCallID {
		t.Errorf("blocks %+v", blocks)
	}
	if after, _ := json.Marshal(from); string(after) != string(before) {
		t.Error("the messages given were changed")
	}
}

func TestIDRule(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	rules := map[string]llm.IDRule{
		"any": {}, "word": {Word: true, Max: 64}, "nine": {Alnum: true, Exact: 9}, "forty": {Max: 40},
	}
	for name, rule := range rules {
		seen := map[string]string{}
		for _, id := range []string{"", "a", "call_1", "call-1", "call|1", "call:1", "ü", long, long + "y", "abcdefghi"} {
			got := rule.Apply(id)
			if got == "" || rule.Apply(got) != got || seen[got] != "" {
				t.Errorf("%s: %q becomes %q (also made of %q)", name, id, got, seen[got])
			}
			seen[got] = id + "!"
		}
	}
	if got := rules["nine"].Apply("abcdefghi"); got != "abcdefghi" {
		t.Errorf("an id that fits became %q", got)
	}
}

func TestPrice(t *testing.T) {
	t.Parallel()
	p := llm.Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5, Tiers: []llm.Tier{{Above: 200_000, Input: 4, Output: 20, CacheRead: 0.4, CacheWrite: 5}}}
	tests := map[string]struct {
		usage llm.Usage
		total float64
	}{
		"plain":    {llm.Usage{Input: 1e5, Output: 1e5, CacheRead: 5e4, CacheWrite: 4e4}, 0.2 + 1 + 0.01 + 0.1},
		"the edge": {llm.Usage{Input: 2e5}, 0.4},
		"tier":     {llm.Usage{Input: 1e5, CacheRead: 1e5, CacheWrite: 1e5, Output: 1e5}, 0.4 + 0.04 + 0.5 + 2},
		"an hour":  {llm.Usage{CacheWrite: 1e5, CacheWrite1h: 5e4}, 0.125 + 0.2},
	}
	for name, tt := range tests {
		if got := p.Of(tt.usage).Total; got-tt.total > 1e-9 || tt.total-got > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.total)
		}
	}
}

func TestModelLevel(t *testing.T) {
	t.Parallel()
	word := func(s string) *string { return &s }
	m := llm.Model{Reasoning: true, Thinking: map[llm.Level]*string{
		llm.LevelOff: nil, llm.LevelMinimal: nil, llm.LevelMedium: nil, llm.LevelMax: word("ultra"),
	}}
	tests := []struct {
		model llm.Model
		want  llm.Level
		level llm.Level
		word  string
	}{
		{m, llm.LevelOff, llm.LevelLow, "low"}, {m, llm.LevelMedium, llm.LevelHigh, "high"}, {m, llm.LevelXHigh, llm.LevelMax, "ultra"},
		{m, "", "", ""}, {m, "much", "", ""},
		{llm.Model{}, llm.LevelHigh, llm.LevelOff, ""},
		{llm.Model{Reasoning: true}, llm.LevelMax, llm.LevelHigh, "high"}, {llm.Model{Reasoning: true}, llm.LevelOff, llm.LevelOff, ""},
	}
	for _, tt := range tests {
		if level, w := tt.model.Level(tt.want); level != tt.level || w != tt.word {
			t.Errorf("%q: %q %q, want %q %q", tt.want, level, w, tt.level, tt.word)
		}
	}
}
