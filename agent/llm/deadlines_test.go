package llm_test

import (
	"encoding/json"
	"testing"
	"time"

	"muntin/agent/llm"
)

func TestParseDeadlines(t *testing.T) {
	t.Parallel()
	got, err := llm.ParseDeadlines(" connect=10s, idle=none ,")
	if want := (llm.Deadlines{Connect: 10 * time.Second, Idle: -1}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, wrong := range []string{"connect", "connect=", "connect=10", "connect=-1s", "idle=0s", "middle=3s"} {
		if d, err := llm.ParseDeadlines(wrong); err == nil {
			t.Errorf("%q: %+v, want an error", wrong, d)
		}
	}
	base := llm.Deadlines{Connect: time.Minute, Idle: time.Hour, Whole: -1}
	if over, want := got.Over(base), (llm.Deadlines{Connect: 10 * time.Second, Idle: -1, Whole: -1}); over != want {
		t.Errorf("over %+v, want %+v", over, want)
	}
}

func TestDeadlinesJSON(t *testing.T) {
	t.Parallel()
	m := llm.Model{Deadlines: llm.Deadlines{Connect: time.Second, Whole: time.Minute}}
	if err := json.Unmarshal([]byte(`{"deadlines":{"whole":"none","firstEvent":"10m"}}`), &m); err != nil {
		t.Fatal(err)
	}
	want := llm.Deadlines{Connect: time.Second, FirstEvent: 10 * time.Minute, Whole: -1}
	if m.Deadlines != want {
		t.Errorf("%+v, want %+v", m.Deadlines, want)
	}
	var again llm.Model
	text, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil || again.Deadlines != want {
		t.Errorf("%s gives %+v, %v", text, again.Deadlines, err)
	}
	if text, err := json.Marshal(llm.Model{ID: "m"}); err != nil || string(text) != `{"id":"m"}` && string(text) != `{"id":"m","cost":{}}` {
		t.Errorf("nothing known: %s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"deadlines":{"whole":5}}`), &m); err == nil {
		t.Error("a number: no error")
	}
}

func TestSamplingFor(t *testing.T) {
	t.Parallel()
	var m llm.Model
	if err := json.Unmarshal([]byte(`{"id":"m","reasoning":true,"samplingParams":{"temperature":1,"top_p":0.95},
		"samplingParamsByThinkingLevel":{"off":{"temperature":0.7},"high":{"top_k":20}}}`), &m); err != nil {
		t.Fatal(err)
	}
	for level, want := range map[llm.Level]string{
		llm.LevelOff: `{"temperature":0.7,"top_p":0.95}`, llm.LevelMax: `{"temperature":1,"top_k":20,"top_p":0.95}`,
		"": `{"temperature":1,"top_p":0.95}`,
	} {
		if got := string(m.SamplingFor(level)); got != want {
			t.Errorf("%q: %s, want %s", level, got, want)
		}
	}
	if got := (llm.Model{}).SamplingFor(llm.LevelHigh); got != nil {
		t.Errorf("without any: %s", got)
	}
}

func TestImageLimits(t *testing.T) {
	t.Parallel()
	image := llm.Block{Type: llm.BlockImage, Data: "QQ==", MimeType: "image/png"}
	from := []llm.Message{
		{Role: llm.RoleUser, Content: []llm.Block{image, image, image}},
		{Role: llm.RoleUser, Content: []llm.Block{image}},
	}
	count := func(limits llm.ImageLimits) (kept []int) {
		for _, m := range llm.Convert(from, llm.Target{Images: limits}) {
			n := 0
			for _, b := range m.Content {
				if b.Type == llm.BlockImage {
					n++
				} else if b.Text != llm.TooManyImages {
					t.Errorf("block %+v", b)
				}
			}
			kept = append(kept, n)
		}
		return kept
	}
	for limits, want := range map[llm.ImageLimits][2]int{
		{}: {3, 1}, {MaxPerMessage: 2}: {2, 1}, {MaxPerRequest: 2}: {1, 1}, {MaxPerMessage: 2, MaxPerRequest: 1}: {0, 1},
	} {
		if got := count(limits); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%+v: %v, want %v", limits, got, want)
		}
	}
	if from[0].Content[0].Type != llm.BlockImage {
		t.Error("the messages given were changed")
	}
}
