package recipes

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"muntin/internal/id"
	"muntin/recipes/internal/tree"
)

// isModel tells provider/id: a provider's name and anything without spaces
// and control characters.
func isModel(s string) bool {
	provider, model, ok := strings.Cut(s, "/")
	return ok && id.Word(provider, id.Lower+id.Digits, id.Lower+id.Digits+"._-", len(provider)) && isWord(model)
}

// isWord tells text without spaces and control characters.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func isVariable(s string) bool {
	const letters = id.Lower + id.Upper + "_"
	return id.Word(s, letters, letters+id.Digits, len(s))
}

// isControl tells what must not be in texts: they are shown and handed on.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }

// quoted is a user's text for an error: in quotes, and not too long.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

func events() []string {
	return []string{
		string(EventReady), string(EventTaskDone), string(EventTaskBlocked), string(EventNeedsPerson),
		string(EventMerged), string(EventRunDone), string(EventExit), string(EventLimited),
	}
}

// check reports what is wrong with a text that was read.
func (d *decoder) check(text string, at tree.Place, s spot) bool {
	text = unmarked(text)
	allowed := s.oneof
	kind, what, _ := strings.Cut(s.is, ":")
	var problem string
	switch kind {
	case "event":
		allowed = events()
	case "name":
		if err := id.CheckName(what, text); err != nil {
			problem = err.Error()
		}
	case "model":
		if !isModel(text) {
			problem = "model " + quoted(text) + ": want provider/id, such as openai/gpt-5"
		}
	case "argv":
		if strings.ContainsRune(text, 0) {
			problem = s.path + ": an argument has a NUL byte in it"
		}
	case "file", "path":
		if problem = outside(text); problem == "" && kind == "file" && path.Clean(text) == "." {
			problem = "want a file, got " + quoted(text)
		}
		if problem != "" {
			problem = s.path + ": " + problem
		}
	case "layout":
		problem = layoutProblem(text)
	default:
		problem = textProblem(kind, text, s.path)
	}
	if len(allowed) > 0 && !slices.Contains(allowed, text) {
		problem = s.path + ": " + quoted(text) + " is none of " + strings.Join(allowed, ", ")
	}
	if problem != "" {
		d.Add(at, "%s", problem)
	}
	return problem == ""
}

func textProblem(kind, text, what string) string {
	switch kind {
	case "variable":
		if isVariable(text) {
			return ""
		}
		if key, _, ok := strings.Cut(text, "="); ok {
			return what + ": only names, never values: write " + quoted(key) + " and set it where muntin is started"
		}
		return what + ": " + quoted(text) + " is no variable name"
	case "word":
		if !isWord(text) {
			return what + ": " + quoted(text) + " is not one word"
		}
	case "url":
		_, host, ok := strings.Cut(text, "://")
		if !strings.HasPrefix(text, "http") || !ok || !isWord(host) {
			return what + ": want an address that begins with https:// or http://"
		}
	case "shell", "text", "value":
		if strings.ContainsFunc(text, isControl) {
			return "the text has a control character in it"
		}
	}
	return ""
}

// outside tells why a path is not inside the repository, or is git's own folder.
func outside(s string) string {
	clean := path.Clean(s)
	switch {
	case s == "":
		return "the path is empty"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "the path has a control character in it"
	case path.IsAbs(s) || strings.HasPrefix(s, "~"):
		return quoted(s) + " is not relative to the top of the repository"
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return quoted(s) + " leaves the repository"
	case slices.ContainsFunc(strings.Split(clean, "/"), func(e string) bool { return strings.EqualFold(e, ".git") }):
		return quoted(s) + " is git's own"
	}
	return ""
}

// layouts are the styles that have a name.
func layouts() []string {
	return []string{
		LayoutAuto, LayoutTogether, LayoutWindows,
		LayoutTiled, "main-vertical", "main-horizontal", "even-horizontal", "even-vertical",
	}
}

// layoutProblem tells what is wrong with a layout: a name, or what tmux's
// #{window_layout} gives, "csum,WxH,X,Y…", whose checksum is layout_checksum of
// tmux's layout-custom.c.
func layoutProblem(s string) string {
	if slices.Contains(layouts(), s) {
		return ""
	}
	sum, rest, ok := strings.Cut(s, ",")
	if ok && id.Word(sum, id.Digits+"abcdef", id.Digits+"abcdef", 4) && id.Word(rest, id.Digits, id.Digits+"x,{}[]", 8192) {
		want, err := strconv.ParseUint(sum, 16, 16)
		if err == nil && uint16(want) == layoutSum(rest) {
			return ""
		}
		return "layout: the checksum of this tmux layout is wrong: take it as `tmux display -p '#{window_layout}'` prints it"
	}
	return "layout: " + quoted(s) + " is none of " + strings.Join(layouts(), ", ") + ", and no tmux layout"
}

func layoutSum(s string) uint16 {
	var sum uint16
	for i := range len(s) {
		sum = sum>>1 | sum<<15
		sum += uint16(s[i])
	}
	return sum
}

// IsModel reports whether s is the name of a model, provider/id.
func IsModel(s string) bool { return isModel(s) }

// IsLayout reports whether s is a style of a Layout.
func IsLayout(s string) bool { return layoutProblem(s) == "" }
