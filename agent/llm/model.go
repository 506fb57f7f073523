package llm

import (
	"encoding/json"
	"maps"
	"slices"
)

// A Level says how much a model is to think before it answers.
type Level string

// The levels of thinking, from none to the most. The empty level leaves it to
// the provider.
const (
	LevelOff     Level = "off"
	LevelMinimal Level = "minimal"
	LevelLow     Level = "low"
	LevelMedium  Level = "medium"
	LevelHigh    Level = "high"
	LevelXHigh   Level = "xhigh"
	LevelMax     Level = "max"
)

// Levels gives all levels in their order.
func Levels() []Level {
	return []Level{LevelOff, LevelMinimal, LevelLow, LevelMedium, LevelHigh, LevelXHigh, LevelMax}
}

// A Model is what is known of one model at one provider. The JSON is that of
// Pi's models.json. The zero value is a model of which nothing is known.
type Model struct {
	ID            string            `json:"id"`
	Name          string            `json:"name,omitempty"`
	API           string            `json:"api,omitempty"`
	Provider      string            `json:"provider,omitempty"`
	BaseURL       string            `json:"baseUrl,omitempty"`
	Reasoning     bool              `json:"reasoning,omitempty"`
	Thinking      map[Level]*string `json:"thinkingLevelMap,omitempty"` // the provider's word for a level; null: it has none
	Input         []string          `json:"input,omitempty"`            // "text", "image"; empty: not known
	Price         Price             `json:"cost,omitzero"`
	ContextWindow int               `json:"contextWindow,omitempty"` // tokens; 0: not known
	MaxTokens     int               `json:"maxTokens,omitempty"`     // of one response; 0: not known
	Headers       map[string]string `json:"headers,omitempty"`
	Compat        json.RawMessage   `json:"compat,omitempty"` // how its server differs; read by its dialect
	InputLimits   InputLimits       `json:"inputLimits,omitzero"`

	// Fields of the request's body that choose how the answer is drawn, such as
	// temperature, and what a level of thinking changes in them.
	Sampling        map[string]json.RawMessage           `json:"samplingParams,omitempty"`
	SamplingByLevel map[Level]map[string]json.RawMessage `json:"samplingParamsByThinkingLevel,omitempty"`

	Deadlines Deadlines `json:"deadlines,omitzero"` // ours, not Pi's
}

// InputLimits bound what a server takes in one request. 0 is no bound.
type InputLimits struct {
	MaxRequestBytes int         `json:"maxRequestBytes,omitempty"` // of the body
	Images          ImageLimits `json:"images,omitzero"`
}

// ImageLimits bound the images of one request. What is too much are the oldest.
type ImageLimits struct {
	MaxPerMessage int `json:"maxPerMessage,omitempty"`
	MaxPerRequest int `json:"maxPerRequest,omitempty"`
}

// SamplingFor gives the sampling fields for a level of thinking as a JSON object,
// or nil when there are none. A level that the model has not counts as the nearest.
func (m Model) SamplingFor(want Level) json.RawMessage {
	fields := maps.Clone(m.Sampling)
	if level, _ := m.Level(want); len(m.SamplingByLevel[level]) > 0 {
		if fields == nil {
			fields = map[string]json.RawMessage{}
		}
		maps.Copy(fields, m.SamplingByLevel[level])
	}
	if len(fields) == 0 {
		return nil
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return nil // they were read from JSON
	}
	return out
}

// A Price is in US dollars for a million tokens.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Tiers      []Tier  `json:"tiers,omitempty"`
}

// A Tier is the price of a whole request whose input, cached or not, has more
// tokens than Above.
type Tier struct {
	Above      int     `json:"inputTokensAbove"`
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// A Cost is what a response cost, in US dollars.
type Cost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

// Of gives what a response of this usage costs. Tokens that stay in the cache
// for an hour cost twice the input's price to write.
func (p Price) Of(u Usage) Cost {
	const million = 1e6
	at := Tier{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	best := -1
	for _, t := range p.Tiers {
		if u.Input+u.CacheRead+u.CacheWrite > t.Above && t.Above > best {
			at, best = t, t.Above
		}
	}
	long := min(u.CacheWrite1h, u.CacheWrite)
	c := Cost{
		Input:      float64(u.Input) * at.Input / million,
		Output:     float64(u.Output) * at.Output / million,
		CacheRead:  float64(u.CacheRead) * at.CacheRead / million,
		CacheWrite: (float64(u.CacheWrite-long)*at.CacheWrite + float64(long)*2*at.Input) / million,
	}
	c.Total = c.Input + c.Output + c.CacheRead + c.CacheWrite
	return c
}

// Add returns the sum of two costs.
func (c Cost) Add(d Cost) Cost {
	return Cost{
		Input: c.Input + d.Input, Output: c.Output + d.Output, CacheRead: c.CacheRead + d.CacheRead,
		CacheWrite: c.CacheWrite + d.CacheWrite, Total: c.Total + d.Total,
	}
}

// TakesImages tells whether the model can be shown images. One of which nothing
// is known is trusted to.
func (m Model) TakesImages() bool { return len(m.Input) == 0 || slices.Contains(m.Input, "image") }

// Supports tells whether the model can think at a level. The two highest are
// only there when the model names them.
func (m Model) Supports(level Level) bool {
	if !m.Reasoning {
		return level == LevelOff
	}
	word, named := m.Thinking[level]
	if named {
		return word != nil
	}
	return level != LevelXHigh && level != LevelMax
}

// Level gives the level nearest to want that the model has, looking up first and
// then down, and the provider's word for it. The empty level gives itself.
func (m Model) Level(want Level) (level Level, word string) {
	all := Levels()
	at := slices.Index(all, want)
	if at < 0 {
		return "", ""
	}
	if !m.Reasoning {
		return LevelOff, ""
	}
	level = LevelOff
	for _, l := range append(slices.Clone(all[at:]), reversed(all[:at])...) {
		if m.Supports(l) {
			level = l
			break
		}
	}
	if w := m.Thinking[level]; w != nil {
		return level, *w
	}
	if level == LevelOff {
		return level, ""
	}
	return level, string(level)
}

func reversed(levels []Level) []Level {
	out := slices.Clone(levels)
	slices.Reverse(out)
	return out
}

// Budget gives the tokens of thinking that a level means for a provider that
// takes a number. maxTokens bounds thinking and answer together; 1024 of them
// are left for the answer. 0 means no thinking.
func Budget(level Level, maxTokens int) int {
	const least = 1024
	budget := map[Level]int{LevelMinimal: 1024, LevelLow: 2048, LevelMedium: 8192, LevelHigh: 16384, LevelXHigh: 32768, LevelMax: 32768}[level]
	if budget == 0 {
		return 0
	}
	if maxTokens > 0 {
		budget = min(budget, maxTokens-least)
	}
	return max(budget, least)
}
