package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"muntin/agent/llm"
)

// A Recorder is a provider that hands on to another one and writes down what comes
// of it, as a script that can be played again. It may be used from several
// goroutines; the responses are written in the order in which they end.
type Recorder struct {
	provider llm.Provider
	secrets  []string
	now      func() time.Time

	mu    sync.Mutex // guards the rest
	steps []recorded
}

// a recorded step, with its prompt: the steps of one prompt are played one after
// the other.
type recorded struct {
	prompt string
	step   map[string]any
	failed bool
}

// Record makes a Recorder. What is in secrets is not written. now is the clock;
// nil is time.Now.
func Record(p llm.Provider, secrets []string, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	return &Recorder{provider: p, secrets: secrets, now: now}
}

// Stream implements llm.Provider.
func (r *Recorder) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		began, first := r.now(), time.Duration(-1)
		for e := range r.provider.Stream(ctx, req) {
			if first < 0 && e.Type != llm.EventStart {
				first = r.now().Sub(began)
			}
			if e.Type == llm.EventDone || e.Type == llm.EventError {
				r.add(req, e, first)
			}
			if !yield(e) {
				return
			}
		}
	}
}

func (r *Recorder) add(req llm.Request, e llm.Event, delay time.Duration) {
	if e.Message == nil || llm.Classify(e.Err) == llm.ClassAborted {
		return
	}
	step := map[string]any{}
	if delay >= time.Millisecond {
		step["delay"] = delay.Round(time.Millisecond).String()
	}
	r.content(step, *e.Message)
	if e.Err != nil {
		r.failure(step, e)
	} else if e.Message.StopReason == llm.StopLength {
		step["stop"] = string(llm.StopLength)
	}
	if u := e.Message.Usage; u != nil {
		step["usage"] = map[string]int{
			"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite, "reasoning": u.Reasoning,
		}
	}
	prompt := ""
	for _, m := range req.Messages {
		if m.Role == llm.RoleUser {
			prompt = m.Text()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, recorded{prompt: r.clean(prompt), step: step, failed: e.Err != nil})
}

func (r *Recorder) content(step map[string]any, m llm.Message) {
	var thinking strings.Builder
	var tools []map[string]any
	for _, b := range m.Content {
		thinking.WriteString(b.Thinking)
		if b.Type != llm.BlockToolCall {
			continue
		}
		args := json.RawMessage(r.clean(string(b.Arguments)))
		tool := map[string]any{"name": b.Name}
		if yamlArgs, err := yaml.JSONToYAML(args); err == nil {
			tool["arguments"] = yaml.MapSlice{}
			var ordered yaml.MapSlice
			if yaml.UnmarshalWithOptions(yamlArgs, &ordered, yaml.UseOrderedMap()) == nil {
				tool["arguments"] = ordered
			}
		}
		tools = append(tools, tool)
	}
	for name, text := range map[string]string{"thinking": thinking.String(), "text": m.Text()} {
		if text != "" {
			step[name] = r.clean(text)
		}
	}
	if tools != nil {
		step["tools"] = tools
	}
}

// failure writes a failure down: one that came before any content as an error,
// one after it as a cut. Each is played once, as it was.
func (r *Recorder) failure(step map[string]any, e llm.Event) {
	if len(e.Message.Content) > 0 {
		step["cut"], step["cut_times"] = true, 1
		return
	}
	failed := map[string]any{"message": r.clean(e.Err.Error()), "times": 1}
	if known, ok := errors.AsType[*llm.Error](e.Err); ok {
		failed["message"] = r.clean(known.Message)
		if known.Status != 0 {
			failed["status"] = known.Status
		}
		if known.RetryAfter > 0 {
			failed["retry_after"] = known.RetryAfter.String()
		}
	}
	step["error"] = failed
}

// clean takes the secrets out of a text.
func (r *Recorder) clean(text string) string {
	const shortest = 6
	for _, s := range r.secrets {
		if len(s) >= shortest {
			text = strings.ReplaceAll(text, s, "[key]")
		}
	}
	return text
}

// Script gives what was recorded so far, in the format that Parse reads: a rule a
// prompt. A failed response and the one that came in its place are one step, as
// they are when it is played.
func (r *Recorder) Script(name string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rules, at := []*recordedRule{}, map[string]*recordedRule{}
	failures := map[string]any{} // of the step that is to come
	add := func(prompt string, step map[string]any) {
		rule := at[prompt]
		if rule == nil {
			rule = &recordedRule{Match: `\A` + regexp.QuoteMeta(prompt) + `\z`}
			at[prompt], rules = rule, append(rules, rule)
		}
		rule.Steps = append(rule.Steps, step)
	}
	last := recorded{}
	for _, rec := range r.steps {
		last = rec
		step := maps.Clone(rec.step)
		if rec.failed {
			for _, key := range []string{"error", "cut", "cut_times"} {
				if v, ok := step[key]; ok {
					failures[key] = v
				}
			}
			continue
		}
		maps.Copy(step, failures)
		clear(failures)
		add(rec.prompt, step)
	}
	if len(failures) > 0 {
		step := maps.Clone(last.step)
		maps.Copy(step, failures)
		add(last.prompt, step)
	}
	text, err := yaml.Marshal(yaml.MapSlice{{Key: "version", Value: 1}, {Key: "name", Value: name}, {Key: "rules", Value: rules}})
	if err != nil {
		return nil, fmt.Errorf("writing the recorded script: %w", err)
	}
	return text, nil
}

type recordedRule struct {
	Match string           `yaml:"match"`
	Steps []map[string]any `yaml:"steps"`
}
