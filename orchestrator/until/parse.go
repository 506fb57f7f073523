// Package until is the small language of `muntin wait`: a condition over a run,
// its agents and its tasks.
//
//	expr    = and { ("or" | "||") and }
//	and     = not { ("and" | "&&") not }
//	not     = ("not" | "!") not | "(" expr ")" | operand [ op operand ]
//	op      = "==" | "!=" | "<" | "<=" | ">" | ">="
//	operand = field | word | "text" | number | duration
//	field   = run's field | agent "." field | ("any" | "all") "." field | "^" task [ ".state" ]
//
// Of the run there are the word phase (starting, running, waiting, done), and
// the numbers tasks, done, open, active, blocked, waiting and cancelled. Of an
// agent: the words state (starting, idle, working, waiting, limited, exited,
// unknown) and task, the numbers turn and queued, the durations for (since its
// state began) and idle (since it became idle, 0 while it is not), and
// stalled, true or false. any and all are about the agents: any.state == idle.
// An agent that is named any or all is written @any, @all. A task alone is true
// when it is done. Words stand without quotes; the text of
// a comparison must be one that the field can have.
package until

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDepth bounds how deep an expression may be nested.
const maxDepth = 100

// A ParseError says what is wrong with an expression, and where.
type ParseError struct {
	Text string // the expression
	Pos  int    // byte offset, from 0
	Why  string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("at %d: %s\n  %s\n  %s^", e.Pos+1, e.Why, e.Text, strings.Repeat(" ", len([]rune(e.Text[:e.Pos]))))
}

// A kind is the type of a value.
type kind int

const (
	kindBool kind = iota
	kindWord
	kindNumber
	kindDuration
)

func (k kind) String() string {
	return [...]string{"true or false", "a word", "a number", "a duration"}[k]
}

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokWord
	tokText
	tokNumber
	tokDuration
	tokTask
	tokOp // also parentheses
)

type token struct {
	kind tokenKind
	text string
	pos  int
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

func scan(text string) ([]token, error) {
	var out []token
	for i := 0; i < len(text); {
		c, start := text[i], i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case c == '"' || c == '\'':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return nil, &ParseError{text, i, "this quote has no end"}
			}
			out = append(out, token{tokText, text[i+1 : i+1+end], start})
			i += end + 2
			continue
		case isWord(c) || c == '^' || c == '@':
			for i++; i < len(text) && isWord(text[i]); i++ {
			}
			t, err := wordToken(text, start, i)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
			continue
		}
		op := text[i : i+1]
		if i+1 < len(text) && slices.Contains([]string{"==", "!=", "<=", ">=", "&&", "||"}, text[i:i+2]) {
			op = text[i : i+2]
		}
		if !strings.Contains("()!<>", op) && len(op) == 1 {
			why := fmt.Sprintf("%q has no meaning here", op)
			if op == "=" {
				why = "a comparison is written =="
			}
			return nil, &ParseError{text, i, why}
		}
		out = append(out, token{tokOp, op, start})
		i += len(op)
	}
	return append(out, token{tokEnd, "", len(text)}), nil
}

func wordToken(text string, start, end int) (token, error) {
	word := text[start:end]
	switch {
	case word[0] == '^':
		if len(word) == 1 {
			return token{}, &ParseError{text, start, "^ wants a task's id behind it"}
		}
		return token{tokTask, word[1:], start}, nil
	case word[0] < '0' || word[0] > '9':
		return token{tokWord, word, start}, nil
	}
	if _, err := strconv.Atoi(word); err == nil {
		return token{tokNumber, word, start}, nil
	}
	if _, err := time.ParseDuration(word); err == nil {
		return token{tokDuration, word, start}, nil
	}
	if strings.Contains(word, ".") { // of an agent whose name begins with a digit
		return token{tokWord, word, start}, nil
	}
	return token{}, &ParseError{text, start, fmt.Sprintf("%q is neither a number nor a duration such as 90s or 1h30m", word)}
}

// An Expr is a condition that was checked.
type Expr struct {
	text string
	root node
}

// String is the condition as it was written.
func (e *Expr) String() string { return e.text }

// Names are what an expression may speak of.
type Names struct {
	Agents []string
	Tasks  []string // nil: any task's id is taken
}

// Parse reads a condition and checks it against what there is. The error is a
// *ParseError.
func Parse(text string, names Names) (*Expr, error) {
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, names: names}
	root, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokEnd {
		return nil, p.fail(t, "%q has no meaning here: want and, or, or the end", t.text)
	}
	return &Expr{text: text, root: root}, nil
}

type parser struct {
	text   string
	tokens []token
	at     int
	names  Names
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEnd {
		p.at++
	}
	return t
}

func (p *parser) fail(t token, format string, args ...any) error {
	return &ParseError{p.text, t.pos, fmt.Sprintf(format, args...)}
}

// is takes the next token if it is one of the words or operators.
func (p *parser) is(words ...string) bool {
	t := p.peek()
	if (t.kind == tokWord || t.kind == tokOp) && slices.Contains(words, t.text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) or(depth int) (node, error) {
	return p.chain(depth, p.and, false, "or", "||")
}

func (p *parser) and(depth int) (node, error) {
	return p.chain(depth, p.not, true, "and", "&&")
}

func (p *parser) chain(depth int, part func(int) (node, error), all bool, words ...string) (node, error) {
	first, err := part(depth)
	if err != nil {
		return nil, err
	}
	list := []node{first}
	for p.is(words...) {
		n, err := part(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	if len(list) == 1 {
		return first, nil
	}
	return chain{list, all}, nil
}

func (p *parser) not(depth int) (node, error) {
	if depth > maxDepth {
		return nil, p.fail(p.peek(), "this is nested too deep")
	}
	if p.is("not", "!") {
		n, err := p.not(depth + 1)
		return negation{n}, err
	}
	if p.is("(") {
		n, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.is(")") {
			return nil, p.fail(p.peek(), "want a closing parenthesis here")
		}
		return n, nil
	}
	return p.comparison()
}

func (p *parser) comparison() (node, error) {
	t := p.next()
	left, err := p.field(t)
	if err != nil {
		return nil, err
	}
	op := p.peek()
	if op.kind != tokOp || !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op.text) {
		if left.kind != kindBool {
			return nil, p.fail(t, "%s is %s: compare it with something, as %s == …", t.text, left.kind, t.text)
		}
		return truth{left}, nil
	}
	p.at++
	right, err := p.operand(left, p.next())
	if err != nil {
		return nil, err
	}
	if left.kind != kindNumber && left.kind != kindDuration && op.text != "==" && op.text != "!=" {
		return nil, p.fail(op, "%s is %s: it can be compared with == and != only", t.text, left.kind)
	}
	return comparison{left, right, op.text}, nil
}
