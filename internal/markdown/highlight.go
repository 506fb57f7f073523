package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A language is what is needed to colour a line of code. It is made when the first
// fence names it, so that nothing is done at the start of the program.
type language struct {
	line     []string // what begins a comment to the end of the line
	open     string   // a comment that may span lines
	close    string
	quotes   string   // what encloses a text
	long     []string // what encloses a text that may span lines
	keywords map[string]bool
	diff     bool
}

// languageOf finds the language of a fence by the word behind its mark; nil when
// there is none.
func languageOf(info string) *language {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(info)), " ")
	name = strings.Trim(name, "{}.")
	c := language{line: []string{"//"}, open: "/*", close: "*/", quotes: `"'`}
	hash := language{line: []string{"#"}, quotes: `"'`}
	switch name {
	case "diff", "patch":
		return &language{diff: true}
	case "go", "golang":
		c.long = []string{"`"}
		return c.words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota string int int64 bool byte rune error any")
	case "js", "jsx", "javascript", "ts", "tsx", "typescript", "mjs":
		c.long = []string{"`"}
		return c.words("async await break case catch class const continue debugger default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of private public readonly return static super switch this throw true try type typeof undefined var void while yield")
	case "c", "h", "cpp", "c++", "cc", "hpp", "objc":
		return c.words("auto bool break case catch char class const constexpr continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr NULL operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while include define ifdef ifndef endif")
	case "java", "kotlin", "kt", "scala", "cs", "csharp", "swift", "dart", "php":
		return c.words("abstract as async await base boolean break byte case catch char class const continue data default do double else enum export extends false final finally float for fun func function guard if implements import in init int interface internal is let long namespace new nil null object open operator override package private protected public return sealed self short static string struct super switch this throw throws true try typealias using val var virtual void when where while")
	case "rust", "rs":
		c.quotes = `"`
		return c.words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while Some None Ok Err")
	case "python", "py", "python3":
		hash.long = []string{`"""`, "'''"}
		return hash.words("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield")
	case "ruby", "rb":
		return hash.words("alias and begin break case class def do else elsif end ensure false for if in module next nil not or raise redo require rescue retry return self super then true unless until when while yield")
	case "sh", "bash", "shell", "zsh", "console", "dockerfile", "make", "makefile":
		return hash.words("case do done echo elif else esac exit export fi for function if in local read return set shift then until while cd source FROM RUN COPY CMD ENTRYPOINT ENV WORKDIR")
	case "yaml", "yml", "toml", "ini", "conf":
		return hash.words("true false null yes no on off")
	case "json", "jsonc", "json5":
		return c.words("true false null")
	case "sql":
		c.line = []string{"--"}
		return c.words("add all alter and as asc begin between by case commit constraint create default delete desc distinct drop else end exists foreign from group having if in index inner insert into is join key left like limit not null on or order outer primary references right rollback select set table then union unique update values view when where with")
	case "lua":
		return language{line: []string{"--"}, open: "--[[", close: "]]", quotes: `"'`}.words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while")
	case "html", "xml", "svg", "vue":
		return language{open: "<!--", close: "-->", quotes: `"'`}.words("")
	case "css", "scss", "less":
		return c.words("important media import")
	}
	return nil
}

func (l language) words(all string) *language {
	l.keywords = map[string]bool{}
	for w := range strings.FieldsSeq(all) {
		l.keywords[w] = true
	}
	return &l
}

// paint colours one line. state is what ends the comment or text that the line
// begins in, "" for none; the one that it ends in is returned.
func (l *language) paint(line, state string) ([]piece, string) {
	if l.diff {
		st := style(0)
		switch {
		case strings.HasPrefix(line, "+"):
			st = green
		case strings.HasPrefix(line, "-"):
			st = red
		case strings.HasPrefix(line, "@@"):
			st = cyan
		}
		return []piece{{text: line, style: st}}, ""
	}
	p := parser{}
	for line != "" {
		if state != "" {
			st := textStyle
			if state == l.close {
				st = faint
			}
			end := strings.Index(line, state)
			if end < 0 {
				p.add(line, st, "")
				return p.out, state
			}
			end += len(state)
			p.add(line[:end], st, "")
			line, state = line[end:], ""
			continue
		}
		n, st, open := l.token(line)
		p.add(line[:n], st, "")
		line, state = line[n:], open
	}
	return p.out, state
}

// token is the length and style of what a line begins with, and what ends it where
// it is a comment or text whose end is still to be found.
func (l *language) token(line string) (n int, st style, open string) {
	if l.open != "" && strings.HasPrefix(line, l.open) {
		return len(l.open), faint, l.close
	}
	for _, c := range l.line {
		if strings.HasPrefix(line, c) {
			return len(line), faint, ""
		}
	}
	for _, q := range l.long {
		if strings.HasPrefix(line, q) {
			return len(q), textStyle, q
		}
	}
	r, size := utf8.DecodeRuneInString(line)
	switch {
	case strings.ContainsRune(l.quotes, r):
		return quoted(line), textStyle, ""
	case unicode.IsDigit(r):
		return spanOf(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_' }), numberStyle, ""
	case unicode.IsLetter(r) || r == '_':
		n := spanOf(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' })
		if l.keywords[line[:n]] || l.keywords[strings.ToLower(line[:n])] && len(l.line) > 0 && l.line[0] == "--" {
			return n, keywordStyle, ""
		}
		return n, 0, ""
	}
	return size, 0, ""
}

// quoted is the length of the text in quotes that a line begins with. One that does
// not end is no text: an apostrophe.
func quoted(line string) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case line[0]:
			return i + 1
		}
	}
	return 1
}

func spanOf(text string, in func(rune) bool) int {
	for i, r := range text {
		if !in(r) {
			return i
		}
	}
	return len(text)
}
