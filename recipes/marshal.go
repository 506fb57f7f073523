package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muntin/internal/id"
)

// isPlain tells text that YAML reads as itself without quotes.
func isPlain(s string) bool {
	const letters = id.Lower + id.Upper
	return id.Word(s, letters, letters+id.Digits+"_./-", len(s))
}

// Marshal writes the recipe as YAML that Parse reads back to the same. It does
// not use the YAML library's printer, which loses tabs and guesses at types;
// text that could be anything else is quoted as in JSON, which YAML includes.
func (r *Recipe) Marshal() ([]byte, error) {
	w := &writer{}
	w.line("", "muntin", strconv.Itoa(r.Version))
	w.text("", "name", r.Name)
	w.text("", "description", r.Description)
	w.text("", "model", r.Model)
	w.line("", "board", "")
	w.text("  ", "plan", r.Board.Plan)
	w.text("  ", "todo", r.Board.Todo)
	w.text("  ", "approve", string(r.Board.Approve))
	if r.Checks != (Checks{}) {
		w.line("", "checks", "")
		w.text("  ", "task", r.Checks.Task)
		w.text("  ", "run", r.Checks.Run)
	}
	w.line("", "attempts", strconv.Itoa(r.Attempts))
	w.line("", "check_timeout", r.CheckTimeout.String())
	w.text("", "layout", string(r.Layout))
	w.line("", "agents", "")
	for _, a := range r.Agents {
		w.agent(a)
	}
	if _, err := Parse(r.Name, w.Bytes()); err != nil {
		return nil, fmt.Errorf("writing recipe: %w", err)
	}
	return w.Bytes(), nil
}

// A writer makes the YAML. Empty values are left out.
type writer struct{ bytes.Buffer }

func (w *writer) agent(a Agent) {
	const in = "    "
	w.text("  - ", "name", a.Name)
	if a.Count != 0 {
		w.line(in, "count", strconv.Itoa(a.Count))
	}
	w.text(in, "role", a.Role)
	w.text(in, "model", a.Model)
	w.list(in, "command", a.Command)
	w.text(in, "prompt", a.Prompt)
	w.text(in, "prompt_file", a.PromptFile)
	w.text(in, "system", a.System)
	w.text(in, "isolation", string(a.Isolation))
	w.list(in, "env", a.Env)
	w.text(in, "dir", a.Dir)
}

func (w *writer) text(indent, key, value string) {
	if value != "" {
		w.line(indent, key, scalar(value))
	}
}

func (w *writer) list(indent, key string, values []string) {
	if len(values) == 0 {
		return
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = scalar(v)
	}
	w.line(indent, key, "["+strings.Join(out, ", ")+"]")
}

func (w *writer) line(indent, key, value string) {
	fmt.Fprintf(w, "%s%s:", indent, key)
	if value != "" {
		w.WriteString(" " + value)
	}
	w.WriteByte('\n')
}

// scalar writes text so that it is read as text.
func scalar(s string) string {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if isPlain(s) && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("a string that is no JSON: " + err.Error()) // cannot be
	}
	return strings.TrimRight(b.String(), "\n")
}
