package skill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent/extension"
	"muntin/agent/extension/skill"
)

func TestWriteBringsItUpToDate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, skill.Name, "SKILL.md")
	for _, before := range []string{"", "an older one"} {
		if before != "" {
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := skill.Write(dir); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != skill.Text() {
			t.Errorf("%v", err)
		}
	}
	if err := skill.Write(path); err == nil {
		t.Error("a file is no folder")
	}
}

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
