package agent

import (
	"errors"
	"fmt"

	"muntin/agent/llm"
)

// a toolSet is the tools of a request. It does not change once it is made.
type toolSet struct {
	specs  []llm.Tool
	byName map[string]namedTool
}

type namedTool struct {
	tool       Tool
	schema     *schema
	sequential bool
}

func newToolSet(tools []Tool) (toolSet, error) {
	set := toolSet{byName: map[string]namedTool{}}
	for _, t := range tools {
		spec := t.Spec()
		if spec.Name == "" {
			return toolSet{}, errors.New("a tool has no name")
		}
		if _, taken := set.byName[spec.Name]; taken {
			return toolSet{}, fmt.Errorf("two tools are named %q", spec.Name)
		}
		schema, err := parseSchema(spec.Parameters)
		if err != nil {
			return toolSet{}, fmt.Errorf("parameters of tool %q: %w", spec.Name, err)
		}
		s, ok := t.(SequentialTool)
		set.specs = append(set.specs, spec)
		set.byName[spec.Name] = namedTool{tool: t, schema: schema, sequential: ok && s.Sequential()}
	}
	return set, nil
}
