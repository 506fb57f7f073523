package tui

import (
	"os"
	"path/filepath"
	"strings"

	"muntin/agent/llm"
	"muntin/internal/term"
)

// maxPictures bounds how many pictures go with one prompt.
const maxPictures = 20

// pictures reads the pictures that a text names: @picture.png, or a path as a
// terminal writes it when a file is dropped on it.
func (l *loop) pictures(text string) []llm.Block {
	if l.opts.Host.Picture == nil {
		return nil
	}
	var all []llm.Block
	seen := map[string]bool{}
	for _, word := range shellWords(text) {
		path, ok := l.picturePath(word)
		if !ok || seen[path] || len(all) == maxPictures {
			continue
		}
		seen[path] = true
		picture, is, err := l.opts.Host.Picture(path)
		switch {
		case err != nil:
			l.display.note("not attached: " + term.CleanLine(err.Error()))
		case is:
			all = append(all, picture)
			l.display.note("attached " + term.CleanLine(filepath.Base(path)))
		}
	}
	return all
}

// picturePath is the path of a file that a word means, if it may be a picture.
func (l *loop) picturePath(word string) (string, bool) {
	named := strings.HasPrefix(word, "@")
	path := strings.TrimPrefix(strings.TrimPrefix(word, "@"), "file://")
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp":
	default:
		return "", false
	}
	if rest, home := strings.CutPrefix(path, "~/"); home {
		dir, err := os.UserHomeDir()
		if err != nil {
			return "", false
		}
		path = filepath.Join(dir, rest)
	}
	if !filepath.IsAbs(path) {
		if !named {
			return "", false // a name in a sentence
		}
		path = filepath.Join(l.opts.Dir, path)
	}
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

// shellWords splits a text at blanks that no quotes or backslashes protect.
func shellWords(text string) []string {
	var all []string
	var word strings.Builder
	var quote rune
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"') && (word.Len() == 0 || word.String() == "@"):
			quote = r
		case quote == 0 && (r == ' ' || r == '\n' || r == '\t'):
			if word.Len() > 0 {
				all = append(all, word.String())
				word.Reset()
			}
		default:
			word.WriteRune(r)
		}
	}
	if word.Len() > 0 {
		all = append(all, word.String())
	}
	return all
}
