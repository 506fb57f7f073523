package skill_test

import (
	"strings"
	"testing"

	"muntin/agent/extension"
	"muntin/agent/extension/skill"
)

func TestTheSkillNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	text := skill.Text()
	if !strings.HasPrefix(text, "---\nname: muntin-extension\ndescription: ") {
		t.Error("no head")
	}
	for _, gate := range extension.Gates() {
		if !strings.Contains(text, gate) {
			t.Errorf("gate %s is not in it", gate)
		}
	}
	_, rest, _ := strings.Cut(text, "    protocol: 1\n")
	block, _, _ := strings.Cut("    protocol: 1\n"+rest, "\n\n")
	manifest := strings.ReplaceAll(strings.ReplaceAll(block, "\n    ", "\n"), "NAME ", "name ")
	if _, err := extension.ParseManifest([]byte(strings.TrimPrefix(manifest, "    "))); err != nil {
		t.Errorf("%v in\n%s", err, manifest)
	}
}
