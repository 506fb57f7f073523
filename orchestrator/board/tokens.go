package board

import (
	"fmt"
	"slices"
	"strings"

	"muntin/internal/id"
)

// A wordKind says what a word of a task's line is.
type wordKind int

const (
	wordText wordKind = iota
	wordComment
	wordID
	wordName
	wordAfter
	wordCheck
	wordPriority
	wordTag
	wordField // key:value with a key that means nothing
	wordBad   // a token with a value that cannot be
)

// A word is a part of a task's line between white space. Code spans, HTML
// comments and a quoted check command are one word whatever is in them.
type word struct {
	span
	kind  wordKind
	value string // without the token's sign; of wordBad: what is wrong
}

// token reports whether the word means something at the end of a line.
func (w word) token() bool { return w.kind >= wordID && w.kind <= wordTag }

// appendWords finds the words of text[start:end], which has no line end in it,
// and appends them to words.
func appendWords(words []word, text string, start, end int) []word {
	for i := start; i < end; {
		if isBlank(text[i]) {
			i++
			continue
		}
		w := nextWord(text[:end], i)
		words = append(words, w)
		i = w.end
	}
	return words
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }

// nextWord reads the word that starts at i.
func nextWord(line string, i int) word {
	rest := line[i:]
	if strings.HasPrefix(rest, "<!--") {
		if n := strings.Index(rest, "-->"); n >= 0 {
			return word{span{i, i + n + 3}, wordComment, ""}
		}
	}
	if cmd, n, ok := quotedCheck(rest); ok {
		return word{span{i, i + n}, wordCheck, cmd}
	}
	end, code := wordEnd(line, i)
	w := word{span: span{i, end}}
	if !code {
		w.kind, w.value = classify(line[i:end])
	}
	return w
}

// quotedCheck reads check:"command" at the start of s. In the quotes \" is a
// quote and \\ a backslash; every other byte stands for itself.
func quotedCheck(s string) (cmd string, n int, ok bool) {
	const prefix = `check:"`
	if !strings.HasPrefix(s, prefix) {
		return "", 0, false
	}
	var out []byte
	for i := len(prefix); i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			out = append(out, s[i])
		case c == '"':
			if i+1 < len(s) && !isBlank(s[i+1]) || strings.TrimSpace(string(out)) == "" {
				return "", 0, false
			}
			return string(out), i + 1, true
		default:
			out = append(out, c)
		}
	}
	return "", 0, false
}

// quoteCheck is the inverse of quotedCheck.
func quoteCheck(cmd string) string {
	return `check:"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(cmd) + `"`
}

// wordEnd finds where the word at i ends and whether a code span is in it:
// https://github.github.com/gfm/#code-spans.
func wordEnd(line string, i int) (end int, code bool) {
	for i < len(line) && !isBlank(line[i]) {
		switch line[i] {
		case '\\':
			if i++; i < len(line) && !isBlank(line[i]) {
				i++
			}
		case '`':
			n := runLength(line, i)
			if closing := findRun(line, i+n, n); closing >= 0 {
				i, code = closing+n, true
			} else {
				i += n
			}
		default:
			i++
		}
	}
	return i, code
}

func runLength(line string, i int) int {
	n := 0
	for i+n < len(line) && line[i+n] == '`' {
		n++
	}
	return n
}

// findRun finds a run of exactly n backticks at or after i, or -1.
func findRun(line string, i, n int) int {
	for i < len(line) {
		if line[i] != '`' {
			i++
			continue
		}
		m := runLength(line, i)
		if m == n {
			return i
		}
		i += m
	}
	return -1
}

// classify says what a word without code in it is.
func classify(s string) (wordKind, string) {
	sign, rest := s[0], s[1:]
	switch {
	case sign == '^' && rest != "":
		return checked(wordID, rest, id.CheckName("task", rest))
	case sign == '@' && rest != "":
		return checked(wordName, rest, id.CheckName("agent or role", rest))
	case sign == '#' && rest != "" && isLetter(rest[0]):
		return wordTag, rest
	case sign == '!' && len(rest) > 0 && strings.Trim(rest, "0123456789") == "":
		if len(rest) == 1 && rest >= "1" && rest <= "3" {
			return wordPriority, rest
		}
		return wordBad, fmt.Sprintf("priority %s: want !1, !2 or !3", s)
	}
	key, value, ok := strings.Cut(s, ":")
	if !ok || value == "" || value[0] == ':' || strings.HasPrefix(value, "//") || !isKey(key) {
		return wordText, ""
	}
	switch key {
	case "after":
		for dep := range strings.SplitSeq(value, ",") {
			if err := id.CheckName("task", dep); err != nil {
				return wordBad, fmt.Sprintf("%s: %v", s, err)
			}
		}
		return wordAfter, value
	case "check":
		return wordBad, `check: want check:"command" in double quotes`
	}
	return wordField, key
}

func checked(kind wordKind, value string, err error) (wordKind, string) {
	if err != nil {
		return wordBad, err.Error()
	}
	return kind, value
}

// isLetter is true for the first byte of a tag: #12 is an issue, not a tag.
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 }

func isKey(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-') {
			return false
		}
	}
	return s != ""
}

// soundsLikeToken reports whether a key is a likely slip for "after" or "check".
func soundsLikeToken(key string) bool {
	known := []string{"after", "afer", "aftr", "affter", "depends", "depends-on", "dep", "deps", "needs", "requires", "blocked-by", "check", "chek"}
	return slices.Contains(known, strings.ToLower(key))
}

// tokenStart is the index of the first word of the run of tokens that ends a
// line. Tokens count only there, so that prose may say "ask @bob about #6".
// Words that mean nothing do not break the run, but do not begin it either.
func tokenStart(words []word) int {
	run := len(words)
	for i := len(words) - 1; i >= 0 && words[i].kind != wordText; i-- {
		if words[i].token() {
			run = i
		}
	}
	return run
}
