// Package skill is the skill by which an agent writes extensions of itself.
package skill

import (
	_ "embed" // for the text
	"fmt"
	"os"
	"path/filepath"

	"muntin/internal/durable"
)

// Name is the skill's, and that of its folder.
const Name = "muntin-extension"

//go:embed SKILL.md
var text string

// Text is the SKILL.md, in the Agent Skills format (https://agentskills.io).
func Text() string { return text }

// Write makes sure that the skill lies in a folder of skills as this program has it,
// so that a model can read it there.
func Write(folder string) error {
	path := filepath.Join(folder, Name, "SKILL.md")
	if has, err := os.ReadFile(path); err == nil && string(has) == text {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the skill %s: %w", Name, err)
	}
	return nil
}
