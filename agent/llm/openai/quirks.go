package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// Quirks say how a server differs from what most compatible servers take: a
// system role, max_tokens, usage in the stream. The JSON is the compat object of
// Pi's models.json, with some fields of ours at the end.
type Quirks struct {
	MaxTokensField    string `json:"maxTokensField"`         // default max_tokens
	DeveloperRole     bool   `json:"supportsDeveloperRole"`  // for the system prompt of a model that reasons
	NoUsage           bool   `json:"-"`                      // supportsUsageInStreaming: false
	NoFinishReason    bool   `json:"-"`                      // supportsFinishReason: false; then the end mark ends the answer
	Store             bool   `json:"supportsStore"`          // then it is asked not to
	NoEffort          bool   `json:"-"`                      // supportsReasoningEffort: false
	ToolResultName    bool   `json:"requiresToolResultName"` // the tool's name with its result
	AnswerToolResults bool   `json:"requiresAssistantAfterToolResult"`
	ContentNeeded     bool   `json:"requiresNonNullAssistantContent"`
	ToolsNeeded       bool   `json:"requiresToolsWithToolHistory"` // an empty list, when there were calls
	ThinkingAsText    bool   `json:"requiresThinkingAsText"`
	ReasoningNeeded   bool   `json:"requiresReasoningContentOnAssistantMessages"`
	Thinking          string `json:"thinkingFormat"` // one of thinkingForms; default openai
	BudgetField       string `json:"thinkingTokenBudgetField"`
	CacheControl      string `json:"cacheControlFormat"` // anthropic, or none
	SessionHeaders    bool   `json:"sendSessionAffinityHeaders"`
	SessionFormat     string `json:"sessionAffinityFormat"`
	NoLongCache       bool   `json:"-"` // supportsLongCacheRetention: false
	ToolStream        bool   `json:"zaiToolStream"`

	TemplateKwargs json.RawMessage `json:"chatTemplateKwargs"` // for the format chat-template
	TemplateArgs   json.RawMessage `json:"chatTemplateArgs"`   // for the format baseten
	Routing        json.RawMessage `json:"openRouterRouting"`  // sent as provider

	// Ours.
	CacheKey    bool            `json:"promptCacheKey"`   // takes prompt_cache_key
	ReplayField string          `json:"replayThinking"`   // the field in which own thinking goes back; default none
	IDs         idRule          `json:"toolCallIds"`      // which ids of tool calls it takes
	TextImages  bool            `json:"toolResultImages"` // takes images within tool results
	Extra       json.RawMessage `json:"extraBody"`        // more fields of the body
	NoOptions   bool            `json:"noStreamOptions"`  // rejects stream_options altogether
}

type idRule struct {
	Word  bool `json:"word"`
	Alnum bool `json:"alnum"`
	Max   int  `json:"max"`
	Exact int  `json:"exact"`
}

// ownQuirks are those of OpenAI itself.
func ownQuirks() Quirks {
	return Quirks{MaxTokensField: "max_completion_tokens", DeveloperRole: true, Thinking: "openai", CacheKey: true, Store: true}
}

func parseQuirks(compat json.RawMessage) (Quirks, error) {
	q := Quirks{}
	defaultTrue := struct {
		Usage  *bool `json:"supportsUsageInStreaming"`
		Finish *bool `json:"supportsFinishReason"`
		Effort *bool `json:"supportsReasoningEffort"`
		Long   *bool `json:"supportsLongCacheRetention"`
	}{}
	if err := wire.ReadCompat(compat, &q, &defaultTrue); err != nil {
		return q, err
	}
	q.NoUsage, q.NoFinishReason = wire.IsFalse(defaultTrue.Usage), wire.IsFalse(defaultTrue.Finish)
	q.NoEffort, q.NoLongCache = wire.IsFalse(defaultTrue.Effort), wire.IsFalse(defaultTrue.Long)
	if q.MaxTokensField == "" {
		q.MaxTokensField = "max_tokens"
	}
	if q.Thinking == "" {
		q.Thinking = "openai"
	}
	if _, ok := thinkingForms()[q.Thinking]; !ok {
		return q, fmt.Errorf("reading the compat object of the model: thinkingFormat %q is not known", q.Thinking)
	}
	return q, nil
}

// a thinkingForm is how a server is told how much to think. "$level" stands for
// the provider's word for the level, "$kwargs" and "$args" for the model's
// templates. A form without off says nothing unless the model has a word for it.
type thinkingForm struct {
	on, off string
	none    string // the word for off, when the model has none
	effort  bool   // reasoning_effort goes with it, where the server takes it
}

func thinkingForms() map[string]thinkingForm {
	return map[string]thinkingForm{
		"openai":          {effort: true},
		"openrouter":      {on: `{"reasoning":{"effort":"$level"}}`, off: `{"reasoning":{"effort":"$level"}}`, none: "none"},
		"deepseek":        {on: `{"thinking":{"type":"enabled"}}`, off: `{"thinking":{"type":"disabled"}}`, effort: true},
		"zai":             {on: `{"thinking":{"type":"enabled","clear_thinking":false}}`, off: `{"thinking":{"type":"disabled"}}`, effort: true},
		"qwen":            {on: `{"enable_thinking":true}`, off: `{"enable_thinking":false}`, effort: true},
		"together":        {on: `{"reasoning":{"enabled":true}}`, off: `{"reasoning":{"enabled":false}}`, effort: true},
		"string-thinking": {on: `{"thinking":"$level"}`, off: `{"thinking":"$level"}`, none: "none"},
		"ant-ling":        {on: `{"reasoning":{"effort":"$level"}}`},
		"chat-template":   {on: `{"chat_template_kwargs":$kwargs}`, off: `{"chat_template_kwargs":$kwargs}`},
		"baseten":         {on: `{"chat_template_args":$args}`, off: `{"chat_template_args":$args}`, effort: true},
		"qwen-chat-template": {
			on:  `{"chat_template_kwargs":{"enable_thinking":true,"preserve_thinking":true}}`,
			off: `{"chat_template_kwargs":{"enable_thinking":false,"preserve_thinking":true}}`,
		},
	}
}

// thinking gives the fields of the body, as JSON objects, that ask for a level.
func (c *Client) thinking(req llm.Request) []json.RawMessage {
	level, word := c.model.Level(req.Thinking)
	if level == "" || !c.model.Reasoning {
		return nil
	}
	form := thinkingForms()[c.quirks.Thinking]
	text, on := form.on, level != llm.LevelOff
	if !on {
		text = form.off
		if word == "" {
			word = form.none
		}
	}
	var out []json.RawMessage
	if text != "" {
		text = strings.NewReplacer(
			"$level", escaped(word),
			"$kwargs", template(c.quirks.TemplateKwargs, on, word),
			"$args", template(c.quirks.TemplateArgs, on, word),
		).Replace(text)
		out = append(out, json.RawMessage(text))
	}
	if form.effort && !c.quirks.NoEffort && word != "" {
		out = append(out, json.RawMessage(`{"reasoning_effort":"`+escaped(word)+`"}`))
	}
	if c.quirks.BudgetField != "" && on {
		out = append(out, json.RawMessage(fmt.Sprintf(`{%q:%d}`, c.quirks.BudgetField, llm.Budget(level, c.model.MaxTokens))))
	}
	return out
}

// template fills in a model's template: {"$var": "thinking.enabled"} and
// {"$var": "thinking.level"} become values.
func template(raw json.RawMessage, on bool, word string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return "{}"
	}
	for name, value := range fields {
		var v struct {
			Var string `json:"$var"`
		}
		if json.Unmarshal(value, &v) != nil {
			continue // a plain value
		}
		switch v.Var {
		case "thinking.enabled":
			fields[name] = json.RawMessage(fmt.Sprint(on))
		case "thinking.level", "thinking.effort":
			fields[name] = json.RawMessage(`"` + escaped(word) + `"`)
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return "{}"
	}
	return string(out)
}

// escaped gives text as it stands within the quotes of JSON.
func escaped(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		return ""
	}
	return strings.Trim(string(out), `"`)
}
