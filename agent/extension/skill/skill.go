// Package skill is the skill by which an agent writes extensions of itself.
package skill

import _ "embed" // for the text

//go:embed SKILL.md
var text string

// Text is the SKILL.md, in the Agent Skills format (https://agentskills.io).
func Text() string { return text }
