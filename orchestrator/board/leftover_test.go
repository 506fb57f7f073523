package board

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A writer was killed in the middle of its exchange: what it left beside the
// board is cleared away, and what somebody saved in that moment is not lost.
func TestLeftOverOfAKilledWriter(t *testing.T) {
	t.Parallel()
	const before, after = "# Mine\n\n- [ ] a ^a\n- [ ] b ^b\n", "# Mine\n\n- [x] a ^a\n- [ ] b ^b\n"
	tests := map[string]struct{ file, temp, want string }{
		"torn":        {before, after[:10], before},
		"not swapped": {before, after, before},
		"swapped":     {after, before, after},
		"saved in the moment": {
			after, "# Mine\n\nA thought.\n\n- [ ] a ^a\n- [ ] b ^b\n", "# Mine\n\nA thought.\n\n- [x] a ^a\n- [ ] b ^b\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f := File{Path: filepath.Join(dir, "TODO.md"), LockPath: filepath.Join(dir, "lock"), Versions: filepath.Join(dir, "versions"), By: Agent}
			all, err := f.keep(nil, []byte(before), Person)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.keepAs(all, []byte(after), version{by: Agent, pending: true}); err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string]string{f.Path: test.file, filepath.Join(dir, ".TODO.md.123"): test.temp, filepath.Join(dir, ".TODO.md.swp"): "vim's"} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := f.Update(t.Context(), func(*Board) error { return nil }); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(f.Path)
			if err != nil {
				t.Fatal(err)
			}
			// A text that was about to be written may be there or not.
			if string(got) != test.want && (test.file != before || string(got) != after) {
				t.Errorf("the board is\n%s", got)
			}
			list, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range list {
				if strings.HasPrefix(item.Name(), ".TODO.md.") && item.Name() != ".TODO.md.swp" {
					t.Errorf("%s is left", item.Name())
				}
			}
			if _, err := os.Stat(filepath.Join(dir, ".TODO.md.swp")); err != nil {
				t.Error(err)
			}
		})
	}
}
