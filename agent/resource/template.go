package resource

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// A Template is a prompt kept in a file, which "/name arguments" stands for. Only
// its name is known before Read.
type Template struct {
	Name string
	Path string
}

// A TemplateText is what a template's file says.
type TemplateText struct {
	Description string // of the front matter, else the first line
	Hint        string // which arguments it takes, as "<file> [focus]"
	Body        string
}

// Read reads the template's file.
func (t Template) Read() (TemplateText, error) {
	text, err := readHead(t.Path, maxBody)
	if err != nil {
		return TemplateText{}, fmt.Errorf("reading the prompt template %s: %w", t.Path, err)
	}
	if len(text) > maxBody {
		return TemplateText{}, fmt.Errorf("reading the prompt template %s: it is larger than %d KiB", t.Path, maxBody>>10)
	}
	parsed, err := ParseTemplate(text)
	if err != nil {
		return TemplateText{}, fmt.Errorf("reading the prompt template %s: %w", t.Path, err)
	}
	return parsed, nil
}

// ParseTemplate reads a template: Markdown, with front matter that may have a
// description and an argument-hint.
func ParseTemplate(text string) (TemplateText, error) {
	p, err := parsePage(text)
	if err != nil {
		return TemplateText{}, err
	}
	t := TemplateText{Body: strings.TrimSpace(p.body)}
	if t.Description, err = p.text("description"); err != nil {
		return t, err
	}
	if t.Hint, err = p.text("argument-hint"); err != nil {
		return t, err
	}
	if t.Description == "" {
		t.Description, _, _ = strings.Cut(t.Body, "\n")
		t.Description = strings.TrimSpace(strings.TrimLeft(t.Description, "# "))
	}
	return t, nil
}

// templates finds the Markdown files in a folder.
func (l *loader) templates(root root) {
	entries, err := os.ReadDir(root.path)
	if err != nil {
		return // of a folder that somebody named it is told before
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || e.IsDir() || strings.HasPrefix(name, ".") {
			continue
		}
		item := Item{Kind: KindPrompt, Name: name, Path: filepath.Join(root.path, e.Name()), Source: root.source, Package: root.pack}
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' }) {
			l.invalid(item, fmt.Errorf("%q can not be typed as a command: a space is in it", name))
			continue
		}
		if l.first(item) {
			l.set.Templates = append(l.set.Templates, Template{Name: name, Path: item.Path})
		}
	}
}

// ExpandArguments puts arguments into a template's text: $1 and so on, $@ and
// $ARGUMENTS for all of them, ${1:-text} and ${@:-text} with a text for what is
// missing or empty, ${@:2} for all from the second and ${@:2:3} for three of
// them. What an argument holds is not expanded again. Everything else stays as
// it is.
func ExpandArguments(text string, args []string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		value, n := argument(text[i+1:], args)
		if n == 0 {
			b.WriteByte('$')
		}
		b.WriteString(value)
		text = text[i+1+n:]
	}
}

// argument reads what follows a dollar sign. n is how much of it was meant, 0 for
// nothing.
func argument(text string, args []string) (value string, n int) {
	const all = "ARGUMENTS"
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	switch {
	case strings.HasPrefix(text, "@"):
		return strings.Join(args, " "), 1
	case strings.HasPrefix(text, all):
		return strings.Join(args, " "), len(all)
	case digits > 0:
		return nth(args, text[:digits]), digits
	case !strings.HasPrefix(text, "{"):
		return "", 0
	}
	inner, _, closed := strings.Cut(text[1:], "}")
	if !closed {
		return "", 0
	}
	value, ok := inBraces(inner, args)
	if !ok {
		return "", 0
	}
	return value, len(inner) + 2
}

func inBraces(inner string, args []string) (value string, ok bool) {
	name, rest, more := strings.Cut(inner, ":")
	preset, isPreset := strings.CutPrefix(rest, "-")
	isNumber := name != "" && strings.Trim(name, "0123456789") == ""
	switch {
	case !more || name != "@" && !isNumber || isNumber && !isPreset:
		return "", false
	case isPreset:
		value = strings.Join(args, " ")
		if isNumber {
			value = nth(args, name)
		}
		if value == "" {
			value = preset
		}
		return value, true
	}
	from, count, counted := strings.Cut(rest, ":")
	start, err := strconv.Atoi(from)
	if err != nil || start < 0 {
		return "", false
	}
	args = args[min(max(start-1, 0), len(args)):]
	if counted {
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 {
			return "", false
		}
		args = args[:min(n, len(args))]
	}
	return strings.Join(args, " "), true
}

// nth is the argument of a number that counts from 1; "" where there is none.
func nth(args []string, number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(args) {
		return ""
	}
	return args[n-1]
}

// SplitArguments splits what is typed behind a command at spaces. Quotes of both
// kinds keep spaces when they begin a word, so that "don't" is a word as it is; one
// that is not closed goes to the end.
func SplitArguments(text string) []string {
	var args []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case !open && (r == '"' || r == '\''):
			quote, open = r, true
		case unicode.IsSpace(r):
			if open {
				args = append(args, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		args = append(args, word.String())
	}
	return args
}
