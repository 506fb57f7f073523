package resource

import (
	"errors"
	"fmt"
	"strings"

	"muntin/agent/resource/internal/doc"
)

// a page is a Markdown file with YAML in front of it.
type page struct {
	front map[string]doc.Value
	body  string
}

// parsePage splits a file. One without front matter is all body. The error names
// the line of the file.
func parsePage(text string) (page, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	yaml, body, ok := cutFrontMatter(text)
	p := page{front: map[string]doc.Value{}, body: body}
	if !ok {
		return p, nil
	}
	root, err := doc.Parse([]byte(yaml))
	if err != nil {
		var e *doc.Error
		if errors.As(err, &e) {
			return p, fmt.Errorf("line %d: %s", e.Line+1, e.Text) // the first is the rule above it
		}
		return p, err
	}
	for _, e := range root.Map {
		p.front[e.Key] = e.Value
	}
	return p, nil
}

// cutFrontMatter takes what stands between two lines of three dashes, the first of
// which begins the text. ok is false where that is not so.
func cutFrontMatter(text string) (yaml, body string, ok bool) {
	at := 0
	for line := range strings.Lines(text) {
		rule := strings.TrimRight(line, " \t\r\n") == "---"
		switch {
		case at == 0 && !rule:
			return "", text, false
		case at > 0 && rule:
			first := strings.IndexByte(text, '\n') + 1
			return text[first:at], text[at+len(line):], true
		}
		at += len(line)
	}
	return "", text, false
}

// text is the text of a key, "" when it is not there.
func (p page) text(key string) (string, error) {
	v, ok := p.front[key]
	if !ok || v.Kind == doc.Null {
		return "", nil
	}
	if v.Kind != doc.Text && v.Kind != doc.Number {
		return "", fmt.Errorf("line %d: %s: want text, got %s", v.Line+1, key, v.Kind)
	}
	return v.Text, nil
}
