package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/llmtest"
)

// The prompts of a trial tell the model what to do, in double brackets:
// [[write:/path]], [[ask:/path]] (the same, with a request to be allowed to), [[slow:/path]] (a command that takes seconds), [[recall:word]]
// (says whether the word stands in the conversation).
var directive = regexp.MustCompile(`\[\[(write|ask|slow|recall):([^\]\s]+)\]\]`)

// content is what the files of a trial hold.
const content = "written by the agent itself\n"

// choose is a model that carries out the last prompt's directive with the
// tools that the client offers, and then says that it is done. What has no
// directive or no tools is a side call (a title, a summary).
func choose(n int, r llmtest.Request) llmtest.Reply {
	reply := answer(r)
	reply.ID = fmt.Sprintf("resp-%d", n)
	reply.Usage = &llm.Usage{Input: 1000, Output: 20, Total: 1020}
	return reply
}

func answer(r llmtest.Request) llmtest.Reply {
	verb, arg, results := lastDirective(r)
	tools := offered(r.Body)
	switch {
	case verb == "" || len(tools) == 0:
		return llmtest.Reply{Text: "A trial"}
	case verb == "recall":
		if strings.Count(string(r.Body), arg) > 1 {
			return llmtest.Reply{Text: "RECALLED " + arg}
		}
		return llmtest.Reply{Text: "FORGOTTEN"}
	case results > 0:
		return llmtest.Reply{Text: "DONE " + arg}
	}
	name, args, ok := call(tools, verb, arg)
	if !ok {
		return llmtest.Reply{Text: "NO TOOL"}
	}
	return llmtest.Reply{Tools: []llmtest.ToolCall{{ID: fmt.Sprintf("call_%d", len(r.Body)), Name: name, Arguments: args}}}
}

// lastDirective finds the last prompt with a directive, and counts the tool
// results behind it.
func lastDirective(r llmtest.Request) (verb, arg string, results int) {
	items := slices.Concat(r.Input, r.Contents)
	for _, m := range r.Messages {
		raw, err := json.Marshal(m)
		if err == nil {
			items = append(items, raw)
		}
	}
	for _, raw := range items {
		text := string(raw)
		switch {
		case isResult(text):
			results++
		case strings.Contains(text, `"role":"user"`) || strings.Contains(text, `"role": "user"`):
			if all := directive.FindAllStringSubmatch(text, -1); len(all) > 0 {
				last := all[len(all)-1]
				verb, arg, results = last[1], last[2], 0
			}
		}
	}
	return verb, arg, results
}

func isResult(item string) bool {
	for _, mark := range []string{`"tool_result"`, `"role":"tool"`, `"function_call_output"`, `"custom_tool_call_output"`, `"functionResponse"`} {
		if strings.Contains(item, mark) {
			return true
		}
	}
	return false
}

// A declared is a tool that the client offers.
type declared struct {
	Name   string
	Schema map[string]any
}

// offered reads the tools of a request in any of the wire formats.
func offered(body []byte) (tools []declared) {
	var req struct {
		Tools []map[string]any `json:"tools"`
	}
	if json.Unmarshal(body, &req) != nil {
		return nil
	}
	var walk func(list []map[string]any)
	walk = func(list []map[string]any) {
		for _, t := range list {
			if f, ok := t["function"].(map[string]any); ok {
				t = f
			}
			if inner, ok := t["functionDeclarations"].([]any); ok {
				walk(objects(inner))
			}
			name, _ := t["name"].(string)
			for _, key := range []string{"input_schema", "parameters", "parametersJsonSchema"} {
				if schema, ok := t[key].(map[string]any); ok && name != "" {
					tools = append(tools, declared{name, schema})
				}
			}
		}
	}
	walk(req.Tools)
	return tools
}

func objects(list []any) (out []map[string]any) {
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// call makes the call that carries out the verb: of a tool that writes files,
// or else of one that runs commands.
func call(tools []declared, verb, path string) (name, args string, ok bool) {
	if verb != "slow" {
		for _, t := range tools {
			if !slices.Contains([]string{"write", "Write", "write_file", "create_file"}, t.Name) {
				continue
			}
			given := map[string]any{first(t, "file_path", "filePath", "absolute_path", "path"): path, first(t, "content", "contents", "text"): content}
			return t.Name, filled(t, given), true
		}
	}
	command := "printf '%s' '" + content + "' > " + path
	if verb == "slow" {
		command = "for i in 1 2 3 4 5; do sleep 1; echo $i; done; " + command
	}
	for _, t := range tools {
		if !slices.Contains([]string{"bash", "Bash", "exec_command", "shell", "shell_command", "run_shell_command"}, t.Name) {
			continue
		}
		key := first(t, "command", "cmd")
		given := map[string]any{key: command}
		if p, _ := properties(t)[key].(map[string]any); p["type"] == "array" {
			given[key] = []string{"sh", "-c", command}
		}
		if _, has := properties(t)["sandbox_permissions"]; has && verb == "ask" {
			given["sandbox_permissions"], given["justification"] = "require_escalated", "the trial wants to be asked"
		}
		if _, has := properties(t)["yield_time_ms"]; has {
			given["yield_time_ms"] = 20000
		}
		return t.Name, filled(t, given), true
	}
	return "", "", false
}

func properties(t declared) map[string]any {
	p, _ := t.Schema["properties"].(map[string]any)
	return p
}

// first is the first of the names that the tool has a parameter of.
func first(t declared, names ...string) string {
	for _, name := range names {
		if _, ok := properties(t)[name]; ok {
			return name
		}
	}
	return names[0]
}

// filled adds what else the tool requires.
func filled(t declared, args map[string]any) string {
	required, _ := t.Schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, has := args[name]; has {
			continue
		}
		p, _ := properties(t)[name].(map[string]any)
		switch p["type"] {
		case "boolean":
			args[name] = false
		case "number", "integer":
			args[name] = 60000
		default:
			args[name] = "a trial"
		}
	}
	raw, _ := json.Marshal(args) // plain values
	return string(raw)
}
