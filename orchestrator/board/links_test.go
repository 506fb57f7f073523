package board

import (
	"reflect"
	"strings"
	"testing"
)

func TestReady(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src string
		want      string // the ready ids in their order
	}{
		{"open ones", "- [ ] a ^a\n- [x] b ^b\n- [/] c ^c\n- [!] d ^d\n- [-] e ^e\n- [?] f ^f\n- [>] g ^g\n", "a"},
		{"dependencies", "- [x] a ^a\n- [ ] b after:a ^b\n- [ ] c after:a,b ^c\n- [ ] d after:nope ^d\n", "b"},
		{"cancelled is not done", "- [-] a ^a\n- [ ] b after:a ^b\n", ""},
		{"priorities", "- [ ] a ^a\n- [ ] b !3 ^b\n- [ ] c !1 ^c\n- [ ] d !1 ^d\n", "c d b a"},
		{"parent waits for its sub-tasks", "- [ ] a ^a\n  details\n  - [ ] b ^b\n", "b"},
		{"parent with details is work", "- [ ] a ^a\n  details\n  - [x] b ^b\n", "a"},
		{"parent without details is done with them", "- [ ] a ^a\n  - [x] b ^b\n  - [-] c ^c\n- [ ] d after:a ^d\n", "d"},
		{"all sub-tasks cancelled", "- [ ] a ^a\n  - [-] b ^b\n- [ ] d after:a ^d\n", ""},
		{"deep", "- [ ] a ^a\n  - [ ] b ^b\n    - [x] c ^c\n- [ ] d after:a ^d\n", "d"},
		{"sub-tasks wait with their parent", "- [ ] x ^x\n- [ ] a after:x ^a\n  - [ ] b ^b\n", "x"},
		{"sub-tasks of a claimed task", "- [/] a @z ^a\n  - [ ] b ^b\n", "b"},
		{"sub-tasks of a blocked task", "- [!] a ^a\n  - [ ] b ^b\n- [?] c ^c\n  - [ ] d ^d\n", ""},
		{"sub-tasks of a ticked task", "- [x] a ^a\n  - [ ] b ^b\n- [ ] c after:a ^c\n", "c"},
		{"cycle", "- [ ] a after:b ^a\n- [ ] b after:a ^b\n- [ ] c ^c\n", "c"},
		{"parent after its sub-task", "- [ ] a after:b ^a\n  - [ ] b ^b\n  - [ ] c after:b ^c\n", "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ids []string
			for _, task := range parse(t, tt.src).Ready() {
				ids = append(ids, task.ID)
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("ready %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	b := parse(t, "- [ ] x ^x\n- [ ] a after:x,nope ^a\n  - [ ] b after:done ^b\n  - [ ] no id\n- [x] d ^done\n")
	for id, want := range map[string][]string{"x": nil, "a": {"x", "nope", "b", "no id"}, "b": {"x", "nope"}} {
		task, _ := b.Task(id)
		if got := b.Waits(task); !reflect.DeepEqual(got, want) {
			t.Errorf("%s waits for %q, want %q", id, got, want)
		}
	}
	a, _ := b.Task("a")
	if kids := b.Children(a); len(kids) != 2 || kids[0].ID != "b" || kids[0].Parent != "a" {
		t.Errorf("children %+v", kids)
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	b := parse(t, "- [ ] a\n- [ ] b @ada\n- [ ] c @reviewer @ada\n")
	tests := []struct {
		name, role string
		want       [3]bool
	}{
		{"ada", "worker", [3]bool{true, true, true}},
		{"bob", "reviewer", [3]bool{true, false, true}},
		{"bob", "", [3]bool{true, false, false}},
	}
	for _, tt := range tests {
		for i, task := range b.Tasks() {
			if got := task.For(tt.name, tt.role); got != tt.want[i] {
				t.Errorf("%s is for %s (%s): %v", task.Text, tt.name, tt.role, got)
			}
		}
	}
}
