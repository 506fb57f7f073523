package catalog

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"muntin/agent/llm"
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// A Choice is the model that a name means.
type Choice struct {
	Provider Provider
	Model    llm.Model
	Level    llm.Level // from the name's end; "" when it has none
	Custom   bool      // the catalogue does not know the model: the name was taken as its id
}

// A NameError is returned for a name that means no model, or several.
type NameError struct {
	Name       string
	Candidates []string // provider/id, what it may mean; none: nothing is like it
	Ambiguous  bool
}

// Error implements error.
func (e *NameError) Error() string {
	const most = 12
	shown, more := e.Candidates, ""
	if len(shown) > most {
		shown, more = shown[:most], fmt.Sprintf(" and %d more", len(e.Candidates)-most)
	}
	switch {
	case e.Ambiguous:
		return fmt.Sprintf("model %q may be one of several: %s%s", e.Name, strings.Join(shown, ", "), more)
	case len(shown) > 0:
		return fmt.Sprintf("there is no model %q; like it are %s%s", e.Name, strings.Join(shown, ", "), more)
	}
	return fmt.Sprintf("there is no model %q", e.Name)
}

// Split takes the level of thinking off the end of a name: "opus:high". What
// follows the last colon is part of the model's id when it is no level.
func Split(name string) (model string, level llm.Level) {
	i := strings.LastIndexByte(name, ':')
	if i <= 0 || !slices.Contains(llm.Levels(), llm.Level(name[i+1:])) {
		return name, ""
	}
	return name[:i], llm.Level(name[i+1:])
}

// Options of Resolve.
type Options struct {
	// HasKey tells which providers can be used. Of models of one id, those that
	// can count first. nil: all. It may not ask the catalogue, which waits for it.
	HasKey func(Provider) bool
	// Exact takes a name that is not known as the id of a model at its provider,
	// without looking for one that is like it: the server is not the provider's own.
	Exact bool
}

// Resolve finds the model that a name means: provider/id, an id, or a part of
// either, and behind it a level of thinking, as in "anthropic/claude-opus-5:high".
// An alias of the user's stands for its model, whose level counts when the name has
// none. The error is a *NameError.
//
// Of the models that a part fits, those count that it fits best: as the whole id,
// as the end of it, between other words, anywhere. Where an id stands beside the
// same with a date, the one without is meant. What then remains must be one.
func (c *Catalog) Resolve(name string, o Options) (Choice, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	full, level := Split(strings.TrimSpace(name))
	if target, ok := c.user.Aliases[full]; ok {
		var own llm.Level
		full, own = Split(strings.TrimSpace(target))
		level = cmp.Or(level, own)
	}
	if provider, id, ok := strings.Cut(full, "/"); ok && id != "" {
		if p, known := c.provider(provider); known {
			return c.within(p, id, level, o)
		}
	}
	found := c.everywhere(full, o.HasKey)
	if len(found) != 1 {
		return Choice{}, &NameError{Name: name, Candidates: names(found), Ambiguous: len(found) > 0}
	}
	p, _ := c.provider(found[0].Provider)
	return Choice{Provider: p, Model: found[0], Level: level}, nil
}

// everywhere finds the models of all providers that a text fits best. Those of
// providers that can be used come before all others, unless it is another's whole id.
func (c *Catalog) everywhere(text string, hasKey func(Provider) bool) []llm.Model {
	var all, usable pick
	for _, p := range c.all() {
		if !c.mayHave(p.ID, text) {
			continue
		}
		can := hasKey == nil || hasKey(p)
		for _, m := range c.of(p.ID) {
			rank := fit(m, text)
			all.add(m, rank)
			if can {
				usable.add(m, rank)
			}
		}
	}
	if len(usable.models) > 0 && (usable.best == all.best || all.best < whole) {
		return undated(usable.models)
	}
	return undated(all.models)
}

// a pick keeps the models of the best rank.
type pick struct {
	best   int
	models []llm.Model
}

func (p *pick) add(m llm.Model, rank int) {
	switch {
	case rank == 0 || rank < p.best:
	case rank > p.best:
		p.best, p.models = rank, []llm.Model{m}
	default:
		p.models = append(p.models, m)
	}
}

// within finds a model of one provider. What is like none is taken as the id of
// one that is new.
func (c *Catalog) within(p Provider, id string, level llm.Level, o Options) (Choice, error) {
	var best pick
	for _, m := range c.of(p.ID) {
		if rank := fit(m, id); !o.Exact || rank >= whole {
			best.add(m, rank)
		}
	}
	found := undated(best.models)
	switch {
	case len(found) == 0:
		return Choice{Provider: p, Model: c.Custom(p, id), Level: level, Custom: true}, nil
	case len(found) > 1:
		return Choice{}, &NameError{Name: p.ID + "/" + id, Candidates: names(found), Ambiguous: true}
	}
	return Choice{Provider: p, Model: found[0], Level: level}, nil
}

func names(models []llm.Model) []string {
	var out []string
	for _, m := range models {
		out = append(out, m.Provider+"/"+m.ID)
	}
	return out
}

// How well a text fits a model, the best last.
const (
	anywhere = iota + 1 // within the id or the name
	between             // between separators of the id
	atEnd               // the end of the id, after a separator
	whole               // the id, but for the case of its letters
	exact               // the id
)

func fit(m llm.Model, text string) int {
	id, want := strings.ToLower(m.ID), strings.ToLower(text)
	switch {
	case want == "":
		return 0
	case m.ID == text:
		return exact
	case id == want:
		return whole
	}
	if before, ok := strings.CutSuffix(id, want); ok && separated(before, true) {
		return atEnd
	}
	for at := 0; ; {
		i := strings.Index(id[at:], want)
		if i < 0 {
			break
		}
		i += at
		if separated(id[:i], true) && separated(id[i+len(want):], false) {
			return between
		}
		at = i + 1
	}
	if strings.Contains(id, want) || strings.Contains(strings.ToLower(m.Name), want) {
		return anywhere
	}
	return 0
}

// separated tells whether a text ends (or begins) where a word does.
func separated(text string, end bool) bool {
	if text == "" {
		return true
	}
	b := text[0]
	if end {
		b = text[len(text)-1]
	}
	return strings.IndexByte("-_./: @", b) >= 0
}

// undated leaves out models whose id is that of another one with a date behind.
func undated(models []llm.Model) []llm.Model {
	if len(models) < 2 {
		return models
	}
	date := regexp.MustCompile(`[-@.]?(20\d{6}|20\d\d-\d\d-\d\d|\d{4})(-v\d+(:\d+)?)?$`)
	have := map[string]bool{}
	for _, m := range models {
		have[m.Provider+"/"+m.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(models), func(m llm.Model) bool {
		base := date.ReplaceAllString(m.ID, "")
		return base != m.ID && (have[m.Provider+"/"+base] || have[m.Provider+"/"+base+"-latest"])
	})
}
