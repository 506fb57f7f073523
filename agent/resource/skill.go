package resource

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"muntin/agent/resource/internal/doc"
	"muntin/internal/id"
)

// The limits of the Agent Skills format, https://agentskills.io/specification.
const (
	maxSkillName        = 64   // bytes
	maxSkillDescription = 1024 // characters
	maxCompatibility    = 500  // characters
)

const (
	maxFront = 64 << 10 // bytes of a file that its front matter may take
	maxBody  = 256 << 10
	maxDepth = 5 // of folders below a folder of skills
)

// A Skill is a file SKILL.md that says how something is done. The model is told
// its name, its description and where it is, and reads it when it needs it.
type Skill struct {
	Name        string
	Description string
	Path        string // of SKILL.md
	Manual      bool   // the model is not told of it: only a person calls it
}

// ParseSkill reads the front matter of a skill. folder is the name of the folder
// that the file lies in, which the skill must have too. All that is wrong is in
// the error.
func ParseSkill(folder, text string) (Skill, error) {
	p, err := parsePage(text)
	if err != nil {
		return Skill{}, err
	}
	if len(p.front) == 0 {
		return Skill{}, errors.New("there is no front matter with a name and a description")
	}
	var s Skill
	var errs [4]error
	var compatibility string
	s.Name, errs[0] = p.text("name")
	s.Description, errs[1] = p.text("description")
	compatibility, errs[2] = p.text("compatibility")
	if v, ok := p.front["disable-model-invocation"]; ok {
		s.Manual = v.Text == "true"
		if v.Kind != doc.Bool {
			errs[3] = fmt.Errorf("line %d: disable-model-invocation: want true or false, got %s", v.Line+1, v.Kind)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	return s, errors.Join(skillName(s.Name, folder), atMost("description", s.Description, maxSkillDescription), atMost("compatibility", compatibility, maxCompatibility),
		needed("description", s.Description))
}

func skillName(name, folder string) error {
	const first = id.Lower + id.Digits
	switch {
	case name == "":
		return errors.New("it has no name")
	case !id.Word(name, first, first+"-", maxSkillName) || strings.HasSuffix(name, "-") || strings.Contains(name, "--"):
		return fmt.Errorf("name %q: want 1 to %d of a-z, 0-9 and single hyphens between them", name, maxSkillName)
	case name != folder:
		return fmt.Errorf("name %q is not that of its folder, %q", name, folder)
	}
	return nil
}

func needed(key, text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("it has no " + key)
	}
	return nil
}

func atMost(key, text string, limit int) error {
	if n := utf8.RuneCountInString(text); n > limit {
		return fmt.Errorf("%s: %d characters are more than %d", key, n, limit)
	}
	return nil
}

// skills finds the skills in a folder: each folder in it with a SKILL.md, at any
// depth, but not below another skill.
func (l *loader) skills(root root) {
	for _, path := range skillFiles(root.path, maxDepth) {
		folder := filepath.Dir(path)
		item := Item{Kind: KindSkill, Name: filepath.Base(folder), Path: path, Source: root.source, Package: root.pack}
		text, err := readHead(path, maxFront)
		var s Skill
		if err == nil {
			s, err = ParseSkill(item.Name, text)
		}
		if err != nil {
			l.invalid(item, err)
			continue
		}
		s.Path = path
		if l.first(item) {
			l.set.Skills = append(l.set.Skills, s)
		}
	}
}

// skillFiles gives the paths of SKILL.md files, sorted.
func skillFiles(dir string, depth int) []string {
	file := filepath.Join(dir, "SKILL.md")
	if _, err := os.Stat(file); err == nil {
		return []string{file}
	}
	if depth == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // of a folder that somebody named it is told before
	}
	var all []string
	for _, e := range entries {
		linked := e.Type()&os.ModeSymlink != 0 // people link skills that they keep elsewhere
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || !e.IsDir() && !linked {
			continue
		}
		all = append(all, skillFiles(filepath.Join(dir, e.Name()), depth-1)...)
	}
	return all
}

// offered are the skills that the model is told of, sorted by name so that the
// same skills always make the same prompt.
func offered(all []Skill) []Skill {
	own := slices.DeleteFunc(slices.Clone(all), func(s Skill) bool { return s.Manual })
	slices.SortFunc(own, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return own
}

// writeSkills tells of skills in a system prompt.
func writeSkills(b *strings.Builder, skills []Skill) {
	if len(skills) == 0 {
		return
	}
	b.WriteString("\n<skills>\nEach skill is a file that says how something is done. When a task fits a description, read the file first\n" +
		"and follow it. Paths in it are relative to its folder.\n")
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ")
	for _, s := range skills {
		fmt.Fprintf(b, "<skill name=%q path=%q>%s</skill>\n", s.Name, s.Path, escape.Replace(strings.TrimSpace(s.Description)))
	}
	b.WriteString("</skills>\n")
}
