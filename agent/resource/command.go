package resource

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A Command is a name that a person types after a slash.
type Command struct {
	Name        string `json:"name"` // without the slash
	Description string `json:"description,omitempty"`
	Hint        string `json:"hint,omitempty"` // which arguments it takes
	Kind        Kind   `json:"source"`         // prompt, skill or extension
	Path        string `json:"path,omitempty"`
}

// Commands are all that Expand knows, templates first. The templates' files are
// read for it; one that cannot be read has its error as its description.
func (s *Set) Commands() []Command {
	all := []Command{}
	if s == nil {
		return all
	}
	for _, t := range s.Templates {
		text, err := t.Read()
		if err != nil {
			text.Description = err.Error()
		}
		all = append(all, Command{Name: t.Name, Description: text.Description, Hint: text.Hint, Kind: KindPrompt, Path: t.Path})
	}
	for _, k := range s.Skills {
		all = append(all, Command{Name: "skill:" + k.Name, Description: k.Description, Kind: KindSkill, Path: k.Path})
	}
	return all
}

// Expand gives what a prompt stands for: "/name arguments" the text of the
// template of that name, "/skill:name arguments" that of the skill. Every other
// text is returned as it is.
func (s *Set) Expand(text string) (string, error) {
	command, ok := strings.CutPrefix(text, "/")
	if !ok || s == nil {
		return text, nil
	}
	name, rest := command, ""
	if i := strings.IndexFunc(command, unicode.IsSpace); i >= 0 {
		name, rest = command[:i], strings.TrimSpace(command[i:])
	}
	if skill, ok := strings.CutPrefix(name, "skill:"); ok {
		return s.skill(text, skill, rest)
	}
	i := slices.IndexFunc(s.Templates, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return text, nil
	}
	t, err := s.Templates[i].Read()
	if err != nil {
		return "", err
	}
	return ExpandArguments(t.Body, SplitArguments(rest)), nil
}

func (s *Set) skill(text, name, rest string) (string, error) {
	i := slices.IndexFunc(s.Skills, func(k Skill) bool { return k.Name == name })
	if i < 0 {
		return text, nil
	}
	k := s.Skills[i]
	content, err := readHead(k.Path, maxBody)
	if err == nil && len(content) > maxBody {
		err = fmt.Errorf("it is larger than %d KiB", maxBody>>10)
	}
	if err != nil {
		return "", fmt.Errorf("reading the skill %s: %w", k.Path, err)
	}
	p, err := parsePage(content)
	if err != nil {
		return "", fmt.Errorf("reading the skill %s: %w", k.Path, err)
	}
	block := fmt.Sprintf("<skill name=%q path=%q>\nPaths in it are relative to %s.\n\n%s\n</skill>", k.Name, k.Path, filepath.Dir(k.Path), strings.TrimSpace(p.body))
	if rest != "" {
		block += "\n\n" + rest
	}
	return block, nil
}
