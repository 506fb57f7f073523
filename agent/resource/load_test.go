package resource

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent/llm"
	"muntin/agent/resource/settings"
)

func skillText(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\nbody of %s\n", name, description, name)
}

// described is a set's items, a line each.
func described(t *testing.T, root string, items []Item) string {
	t.Helper()
	var b strings.Builder
	for _, i := range items {
		rel, err := filepath.Rel(root, i.Path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %s %s", i.Kind, i.Source, i.State, rel)
		if i.Why != "" {
			fmt.Fprintf(&b, ": %s", strings.ReplaceAll(i.Why, root+"/", ""))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func project(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"proj/.git/HEAD":                         "",
		"proj/.muntin/settings.yaml":             "model: x\nskills: [more]\n",
		"proj/.muntin/SYSTEM.md":                 "be a pirate",
		"proj/.muntin/skills/one/SKILL.md":       skillText("one", "the project's"),
		"proj/.muntin/skills/one/deep/SKILL.md":  skillText("deep", "below another"),
		"proj/.muntin/skills/group/two/SKILL.md": skillText("two", "in a group"),
		"proj/.muntin/prompts/fix.md":            "Fix $1",
		"proj/more/three/SKILL.md":               skillText("three", "of the settings"),
		"proj/.agents/skills/one/SKILL.md":       skillText("one", "shared"),
		"proj/sub/.agents/skills/four/SKILL.md":  skillText("four", "of a folder"),
		"home/.agents/skills/two/SKILL.md":       skillText("two", "the user's"),
		"conf/skills/mine/SKILL.md":              skillText("mine", "mine"),
		"conf/SYSTEM.md":                         "be brief",
		"conf/prompts/fix.md":                    "other",
		"conf/themes/dark.yaml":                  "colors: {title: red}",
		"pack/skills/mine/SKILL.md":              skillText("mine", "of a package"),
		"pack/skills/extra/SKILL.md":             skillText("extra", "of a package"),
	} {
		write(t, filepath.Join(root, path), text)
	}
	return root
}

func TestLoad(t *testing.T) {
	t.Parallel()
	root := project(t)
	s, problems := settings.Resolve(settings.Layer{Scope: settings.Project, Path: "p", Data: []byte("skills: [more]")})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o := Options{
		Dir: filepath.Join(root, "proj", "sub"), Home: filepath.Join(root, "home"), Config: filepath.Join(root, "conf"), Settings: s, Trusted: true,
		Skills:   []string{"nowhere"},
		Packages: []Package{{Name: "p", Dir: filepath.Join(root, "pack"), Skills: []string{"skills"}}},
	}
	set := Load(o)
	want := `skill command line invalid proj/sub/nowhere: no such file or directory
skill project loaded proj/more/three/SKILL.md
system project loaded proj/.muntin/SYSTEM.md
skill project loaded proj/.muntin/skills/group/two/SKILL.md
skill project loaded proj/.muntin/skills/one/SKILL.md
prompt project loaded proj/.muntin/prompts/fix.md
skill project loaded proj/sub/.agents/skills/four/SKILL.md
skill project shadowed proj/.agents/skills/one/SKILL.md: by proj/.muntin/skills/one/SKILL.md
system user shadowed conf/SYSTEM.md: by proj/.muntin/SYSTEM.md
skill user loaded conf/skills/mine/SKILL.md
prompt user shadowed conf/prompts/fix.md: by proj/.muntin/prompts/fix.md
theme user loaded conf/themes/dark.yaml
skill user shadowed home/.agents/skills/two/SKILL.md: by proj/.muntin/skills/group/two/SKILL.md
skill package loaded pack/skills/extra/SKILL.md
skill package shadowed pack/skills/mine/SKILL.md: by conf/skills/mine/SKILL.md
`
	if got := described(t, root, set.Items); got != want {
		t.Errorf("got\n%s", got)
	}
	if set.System.Text != "be a pirate" || len(set.Skills) != 6 {
		t.Errorf("system %q, %d skills", set.System.Text, len(set.Skills))
	}
	if _, ok := set.Theme("dark"); !ok {
		t.Error("the theme is not found")
	}
}

// Nothing of an untrusted project is opened: what cannot be read makes no
// difference, and a FIFO does not hang.
func TestUntrustedIsNotRead(t *testing.T) {
	t.Parallel()
	root := project(t)
	sub := filepath.Join(root, "proj", "sub")
	o := Options{Dir: sub, Home: filepath.Join(root, "home"), Config: filepath.Join(root, "conf")}
	set := Load(o)
	want := `system user loaded conf/SYSTEM.md
skill user loaded conf/skills/mine/SKILL.md
prompt user loaded conf/prompts/fix.md
theme user loaded conf/themes/dark.yaml
skill user loaded home/.agents/skills/two/SKILL.md
settings project withheld proj/.muntin/settings.yaml: the folder is not trusted
system project withheld proj/.muntin/SYSTEM.md: the folder is not trusted
skill project withheld proj/.muntin/skills: the folder is not trusted
prompt project withheld proj/.muntin/prompts: the folder is not trusted
skill project withheld proj/sub/.agents/skills: the folder is not trusted
skill project withheld proj/.agents/skills: the folder is not trusted
`
	if got := described(t, root, set.Items); got != want {
		t.Errorf("got\n%s", got)
	}
	if set.System.Text != "be brief" || len(set.Skills) != 2 {
		t.Errorf("system %q, %d skills", set.System.Text, len(set.Skills))
	}
	if len(set.Problems()) > 0 || len(set.Withheld()) != 6 {
		t.Errorf("%v, %v", set.Problems(), set.Withheld())
	}
	for _, item := range Brought(sub) {
		if item.Path == sub {
			t.Error("a folder that brings nothing")
		}
	}
}

// The user's own folders are the user's, also when they work in their home folder.
func TestHomeIsNoProject(t *testing.T) {
	t.Parallel()
	root := project(t)
	home := filepath.Join(root, "home")
	if got := Brought(home, Own(home, "")...); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	set := Load(Options{Dir: home, Home: home, Trusted: true})
	if got := described(t, root, set.Items); got != "skill user loaded home/.agents/skills/two/SKILL.md\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestParseSkill(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		skillText("a-1", "does a"): "",
		"\ufeff---\r\nname: a-1\r\ndescription: >\r\n  x\r\n  y\r\n---\r\n":                                      "",
		"---\nname: a-1\ndescription: d\nlicense: MIT\nmetadata: {v: 1}\nallowed-tools: Bash(git:*) Read\n---\n": "",
		"no front matter":                                                        "there is no front matter",
		"---\nname: a-1\ndescription: d\n":                                       "there is no front matter",
		skillText("b", "d"):                                                      "is not that of its folder",
		skillText("A-1", "d"):                                                    "want 1 to 64 of",
		skillText("a--1", "d"):                                                   "want 1 to 64 of",
		skillText("-a", "d"):                                                     "want 1 to 64 of",
		skillText(strings.Repeat("a", 65), "d"):                                  "want 1 to 64 of",
		"---\ndescription: d\n---\n":                                             "it has no name",
		"---\nname: a-1\n---\n":                                                  "it has no description",
		"---\nname: a-1\ndescription: ' '\n---\n":                                "it has no description",
		skillText("a-1", strings.Repeat("é", 1024)):                              "",
		skillText("a-1", strings.Repeat("é", 1025)):                              "1025 characters are more than 1024",
		"---\nname: [a]\ndescription: d\n---\n":                                  "line 2: name: want text, got a list",
		"---\nname: a-1\ndescription: *x\n---\n":                                 "line 3: ",
		"---\nname: a-1\ndescription: d\ndisable-model-invocation: maybe\n---\n": "want true or false",
		"---\nname: a-1\ndescription: d\ncompatibility: " + strings.Repeat("x", 501) + "\n---\n": "more than 500",
	} {
		_, err := ParseSkill("a-1", text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestSkillsInThePrompt(t *testing.T) {
	t.Parallel()
	p := Prompt{Tools: []llm.Tool{{Name: "read"}}, Skills: []Skill{
		{Name: "b", Description: "does <b> & c\nand more", Path: "/s/b/SKILL.md"}, {Name: "a", Description: "x", Path: "/s/a/SKILL.md"},
		{Name: "m", Description: "by hand", Path: "/s/m/SKILL.md", Manual: true},
	}}
	got := p.Text()
	want := "<skill name=\"a\" path=\"/s/a/SKILL.md\">x</skill>\n<skill name=\"b\" path=\"/s/b/SKILL.md\">does &lt;b&gt; &amp; c and more</skill>\n</skills>\n"
	if !strings.Contains(got, want) || strings.Contains(got, "by hand") {
		t.Errorf("got\n%s", got)
	}
	p.Tools = nil
	if strings.Contains(p.Text(), "skill") {
		t.Errorf("skills without a tool to read them:\n%s", p.Text())
	}
}

func TestExpandArguments(t *testing.T) {
	t.Parallel()
	args := []string{"one", "two words", "$1"}
	for text, want := range map[string]string{
		"$1-$2-$3-$4":                                 "one-two words-$1-",
		"$@|$ARGUMENTS":                               "one two words $1|one two words $1",
		"${1:-x} ${4:-x y} ${@:-z}":                   "one x y one two words $1",
		"${@:2}|${@:2:1}|${@:9}|${@:0:1}":             "two words $1|two words||one",
		"$ $x ${x} ${1} ${@} $$1 ${1:2} ${@:a} ${1:-": "$ $x ${x} ${1} ${@} $one ${1:2} ${@:a} ${1:-",
		"$12":                         "",
		"cost $":                      "cost $",
		"${@:1:99999999999999999999}": "${@:1:99999999999999999999}",
	} {
		if got := ExpandArguments(text, args); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := ExpandArguments("${@:-none}", nil); got != "none" {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]string{
		`a  "b c" 'd "e'`: `[a|b c|d "e]`, "": "[]", `don't "" x"y z`: `[don't||x"y|z]`, `"open end`: "[open end]", `"a"b c`: "[ab|c]", "a\nb\tc": "[a|b|c]",
	} {
		if got := "[" + strings.Join(SplitArguments(text), "|") + "]"; got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	root := project(t)
	write(t, filepath.Join(root, "proj", ".muntin", "prompts", "bad.md"), "---\ndescription: [\n---\nx")
	set := Load(Options{Dir: filepath.Join(root, "proj"), Trusted: true})
	for text, want := range map[string]string{
		"/fix the   thing": "Fix the",
		"/fix":             "Fix",
		"/fixed":           "/fixed",
		"/tmp/x is broken": "/tmp/x is broken",
		" /fix x":          " /fix x",
		"fix":              "fix",
		"/skill:nosuch x":  "/skill:nosuch x",
		"/skill:two do it": "<skill name=\"two\" path=\"" + root + "/proj/.muntin/skills/group/two/SKILL.md\">\nPaths in it are relative to " + root + "/proj/.muntin/skills/group/two.\n\nbody of two\n</skill>\n\ndo it",
	} {
		got, err := set.Expand(text)
		if err != nil || strings.TrimRight(got, " ") != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if _, err := set.Expand("/bad"); err == nil || !strings.Contains(err.Error(), "bad.md: line ") {
		t.Errorf("a broken template: %v", err)
	}
	var names []string
	for _, c := range set.Commands() {
		names = append(names, c.Name+"="+c.Description)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "fix=Fix $1 skill:two=in a group") || !strings.Contains(got, "bad=reading the prompt template") {
		t.Errorf("%s", got)
	}
	var none *Set
	if got, err := none.Expand("/fix"); got != "/fix" || err != nil || len(none.Commands()) != 0 {
		t.Errorf("without a set: %q, %v", got, err)
	}
}

func TestParseTheme(t *testing.T) {
	t.Parallel()
	colours, err := ParseTheme("vars: {sea: '#0088ff'}\ncolors:\n  title: sea\n  bad: 196\n  border: bright-black\n")
	if err != nil || colours["title"] != "#0088ff" || colours["bad"] != "196" {
		t.Errorf("%v, %v", colours, err)
	}
	for text, want := range map[string]string{
		"colors: {titel: red}":       `there is no style "titel"`,
		"colors: {title: puce}":      `the colour of title: "puce" is no colour`,
		"colors: {title: 256}":       `"256" is no colour`,
		"colors: {title: [1]}":       "1:17: title: want a colour",
		"colours: {}":                "want colors and vars only",
		"colors: {title: '#12345g'}": "is no colour",
	} {
		if _, err := ParseTheme(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, s := range []string{skillText("a", "b"), "---\n---\n", "---\r\nname: x\r\n---", "---\nname: [\n---\n", "x", "", "---\ndescription: |\n  a\n  b\nargument-hint: <x>\n---\n$1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSkill("a", text); err == nil && (s.Name != "a" || s.Description == "") {
			t.Errorf("%+v", s)
		}
		if _, err := ParseTemplate(text); err == nil {
			if _, body, ok := cutFrontMatter(text); ok && !strings.HasSuffix(text, body) {
				t.Errorf("the body %q is not the end of %q", body, text)
			}
		}
		if colours, err := ParseTheme(text); err == nil && len(text) == 0 && len(colours) > 0 {
			t.Error("colours of nothing")
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"$1 $@ ${1:-d} ${@:2:3}", "${@:-", "$", "${}", "$ARGUMENTSx", "${00000000000000000001:-x}"} {
		f.Add(s, `a "b c" 'd`)
	}
	f.Fuzz(func(t *testing.T, text, typed string) {
		args := SplitArguments(typed)
		got := ExpandArguments(text, args)
		if !strings.Contains(text, "$") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if strings.Contains(text, "\x01") {
			return
		}
		for i := range args {
			args[i] = "\x01$@"
		}
		// What an argument holds is not expanded.
		got = ExpandArguments(text, args)
		if strings.Count(got, "\x01") != strings.Count(got, "\x01$@") {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{0, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			for i := range n {
				name := fmt.Sprintf("skill-%d", i)
				path := filepath.Join(dir, "skills", name, "SKILL.md")
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(skillText(name, "does something useful, and says when it is needed")), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if set := Load(Options{Dir: dir, Config: dir}); len(set.Skills) != n {
					b.Fatal(len(set.Skills))
				}
			}
		})
	}
}
