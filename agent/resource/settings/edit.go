package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"muntin/agent/resource/internal/doc"
)

// ErrByHand says that a key stands where only a person can change it without
// changing what is around it.
var ErrByHand = errors.New("it has to be changed by hand")

// Set gives data with a key set to text, as a person writes it on a command
// line; a list is separated by commas. Only the lines of that key change. The
// result is read again before it is returned: it says what was asked for and
// otherwise what it said before.
func Set(data []byte, name, text string) ([]byte, error) {
	k, ok := find(name)
	if !ok {
		return nil, Unknown(name)
	}
	written, want, err := k.write(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	e, err := newEdit(data, name)
	if err != nil {
		return nil, err
	}
	return e.finish(e.set(written), &want)
}

// Unset gives data without a key, and whether it was there.
func Unset(data []byte, name string) ([]byte, bool, error) {
	if _, ok := find(name); !ok {
		return nil, false, Unknown(name)
	}
	e, err := newEdit(data, name)
	if err != nil || e.entry == nil {
		return data, false, err
	}
	out, err := e.finish(e.unset(), nil)
	return out, true, err
}

// write turns a text of the command line into YAML, and into the value that it
// must be read as.
func (k Key) write(text string) (string, doc.Value, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", doc.Value{}, errors.New("the text is not UTF-8")
	}
	v := doc.Value{Kind: doc.Text, Text: text}
	written := scalar(text)
	switch k.Type {
	case "true or false":
		v.Kind, written = doc.Bool, text
		if text != "true" && text != "false" {
			return "", v, fmt.Errorf("want true or false, got %q", text)
		}
	case "number":
		v.Kind, written = doc.Number, text
	case "list":
		v = doc.Value{Kind: doc.List}
		var items []string
		for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), ",") {
			if part = strings.TrimSpace(part); part != "" {
				v.List = append(v.List, doc.Value{Kind: doc.Text, Text: part})
				items = append(items, scalar(part))
			}
		}
		written = "[" + strings.Join(items, ", ") + "]"
	}
	return written, v, k.set(&Values{}, v)
}

// scalar writes a text plainly where that cannot be misread, else in quotes.
func scalar(text string) string {
	if plain(text) {
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // a JSON string is a YAML string
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err) // of a string there is none
	}
	return strings.NewReplacer("\u0085", `\u0085`, "\u007f", `\u007f`, "\ufeff", `\ufeff`).Replace(strings.TrimSpace(b.String()))
}

// plain reports whether a text needs no quotes.
func plain(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if text == "" || !strings.ContainsRune(letters+"/", rune(text[0])) || strings.HasSuffix(text, ":") {
		return false
	}
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return false
	}
	for _, r := range text {
		if !strings.ContainsRune(letters+"0123456789-_./+=", r) && r != ':' {
			return false
		}
	}
	return true
}

// an edit is a change of one key in a text.
type edit struct {
	name   string
	path   []string
	root   doc.Value
	lines  [][]byte // with their ends
	bom    bool
	eol    string
	parent *doc.Value // the innermost map on the way to the key
	holder *doc.Entry // the entry that parent is the value of, or that has no value yet; nil: parent is the root
	rest   []string   // of the path, below parent
	entry  *doc.Entry // the key, if it is there
}

func newEdit(data []byte, name string) (*edit, error) {
	root, err := doc.Parse(data)
	if err != nil {
		return nil, err
	}
	text, bom := bytes.CutPrefix(data, []byte("\ufeff"))
	e := &edit{name: name, path: strings.Split(name, "."), root: root, bom: bom, eol: "\n"}
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		e.eol = "\r\n"
	}
	e.lines = slices.Collect(bytes.Lines(text))
	e.parent, e.rest = &e.root, e.path
	for {
		i := slices.IndexFunc(e.parent.Map, func(x doc.Entry) bool { return x.Key == e.rest[0] })
		if i < 0 {
			return e, nil
		}
		found := &e.parent.Map[i]
		if len(e.rest) == 1 {
			e.entry = found
			return e, nil
		}
		switch found.Value.Kind {
		case doc.Map:
			e.holder, e.parent, e.rest = found, &found.Value, e.rest[1:]
			if len(found.Value.Map) == 0 { // {}: its entry is written anew
				return e, nil
			}
		case doc.Null:
			e.holder, e.parent, e.rest = found, &doc.Value{Kind: doc.Map}, e.rest[1:]
			return e, nil
		case doc.Bool, doc.Number, doc.Text, doc.List:
			return nil, fmt.Errorf("%d:%d: %s: want keys and values, got %s", found.Line, found.Col, found.Key, found.Value.Kind)
		}
	}
}

func (e *edit) byHand(line int, why string) error {
	return fmt.Errorf("%s: %w: line %d %s", e.name, ErrByHand, line, why)
}

// set changes the lines for a key to have a value.
func (e *edit) set(written string) error {
	switch {
	case e.entry != nil:
		return e.replace(*e.entry, written)
	case e.parent.Flow && len(e.parent.Map) > 0:
		return e.byHand(e.parent.Line, "has keys in braces")
	}
	below := func(indent string) [][]byte {
		var block [][]byte
		for i, part := range e.rest {
			text := indent + strings.Repeat("  ", i) + part + ":"
			if i == len(e.rest)-1 {
				text += " " + written
			}
			block = append(block, []byte(text+e.eol))
		}
		return block
	}
	if len(e.parent.Map) > 0 {
		last := e.parent.Map[len(e.parent.Map)-1]
		indent, err := e.indent(last)
		if err != nil {
			return err
		}
		e.insert(e.end(last), below(indent))
		return nil
	}
	if e.holder == nil {
		e.insert(e.bottom(), below(""))
		return nil
	}
	indent, err := e.indent(*e.holder)
	if err != nil {
		return err
	}
	if err := e.replace(*e.holder, ""); err != nil {
		return err
	}
	e.insert(e.holder.Line, below(indent+"  "))
	return nil
}

// bottom is the line before which an entry at the end of the document goes.
func (e *edit) bottom() int {
	for i, line := range e.lines {
		if strings.TrimRight(string(line), " \t\r\n") == "..." {
			return i
		}
	}
	return len(e.lines)
}

// insert puts lines before the line with index at.
func (e *edit) insert(at int, block [][]byte) {
	if at > 0 && !bytes.HasSuffix(e.lines[at-1], []byte("\n")) {
		e.lines[at-1] = append(slices.Clone(e.lines[at-1]), e.eol...)
	}
	e.lines = slices.Insert(e.lines, at, block...)
}

// indent is what stands before an entry's key.
func (e *edit) indent(x doc.Entry) (string, error) {
	line := ""
	if x.Line <= len(e.lines) { // the parser may count lines otherwise
		line = string(e.lines[x.Line-1])
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	key := strings.TrimLeft(line[len(indent):], `"'`)
	if len(indent) != x.Col-1 || !strings.HasPrefix(key, x.Key) {
		return "", e.byHand(x.Line, "has something before the key")
	}
	return indent, nil
}

// end is the index of the line behind an entry's last.
func (e *edit) end(x doc.Entry) int {
	last := x.Line
	for i := x.Line; i < len(e.lines); i++ {
		line := strings.TrimRight(string(e.lines[i]), " \t\r\n")
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		switch {
		case text == "" || strings.HasPrefix(text, "#") && indent <= x.Col-1:
			continue // it belongs to the entry if more of it follows
		case strings.HasPrefix(text, "#"):
			if x.Value.Kind == doc.Text || x.Value.Kind == doc.Map || x.Value.Kind == doc.List {
				last = i + 1
			}
			continue
		case indent > x.Col-1, indent == x.Col-1 && (text == "-" || strings.HasPrefix(text, "- ")):
			last = i + 1
			continue
		}
		break
	}
	return last
}

// replace writes another value behind an entry's key; "" for none.
func (e *edit) replace(x doc.Entry, written string) error {
	if _, err := e.indent(x); err != nil || x.Colon == 0 {
		return e.byHand(x.Line, "has more than the key on it, or less")
	}
	line := string(e.lines[x.Line-1])
	colon := byteOf(line, x.Colon)
	if colon >= len(line) || line[colon] != ':' {
		return e.byHand(x.Line, "has no colon where one is expected")
	}
	tail := comment(line[colon+1:])
	if written != "" {
		written = " " + written
	}
	e.lines[x.Line-1] = []byte(line[:colon+1] + written + tail)
	e.lines = slices.Delete(e.lines, x.Line, e.end(x))
	return nil
}

func (e *edit) unset() error {
	if _, err := e.indent(*e.entry); err != nil {
		return err
	}
	e.lines = slices.Delete(e.lines, e.entry.Line-1, e.end(*e.entry))
	return nil
}

// byteOf is the index of a column, which counts characters from 1.
func byteOf(line string, col int) int {
	n := 1
	for i := range line {
		if n == col {
			return i
		}
		n++
	}
	return len(line)
}

// comment is what of the text behind a colon is kept: spaces and a comment, and the
// line's end.
func comment(text string) string {
	body := strings.TrimRight(text, "\r\n")
	end := text[len(body):]
	quote := byte(0)
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" \t[{,", body[i-1]) >= 0):
			quote = c
		case c == '#' && (i == 0 || body[i-1] == ' ' || body[i-1] == '\t'):
			return body[len(strings.TrimRight(body[:i], " \t")):] + end
		}
	}
	return end
}

// finish makes a text of the lines, and sure of what it says.
func (e *edit) finish(err error, want *doc.Value) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	out := bytes.Join(e.lines, nil)
	if e.bom {
		out = append([]byte("\ufeff"), out...)
	}
	now, err := doc.Parse(out)
	if err != nil {
		return nil, e.byHand(1, "could not be kept as it is")
	}
	before, after := map[string]string{}, map[string]string{}
	flatten(before, "", e.root)
	flatten(after, "", now)
	delete(before, e.name)
	if want != nil {
		before[e.name] = leaf(*want)
	}
	for name, text := range before {
		if got, ok := after[name]; !ok || got != text {
			return nil, e.byHand(1, "could not be kept as it is")
		}
		delete(after, name)
	}
	if len(after) > 0 {
		return nil, e.byHand(1, "could not be kept as it is")
	}
	return out, nil
}

// flatten gives all values by their names. A map without entries says nothing.
func flatten(into map[string]string, prefix string, v doc.Value) {
	for _, x := range v.Map {
		name := prefix + strings.ReplaceAll(x.Key, ".", "\x00") // so that a key with a dot is another
		switch {
		case x.Value.Kind == doc.Map:
			flatten(into, name+".", x.Value)
		case x.Value.Kind == doc.Null && isSection(name):
		default:
			into[name] = leaf(x.Value)
		}
	}
}

func leaf(v doc.Value) string {
	if v.Kind != doc.List {
		return string(v.Kind) + " " + fmt.Sprintf("%q", v.Text)
	}
	var items []string
	for _, item := range v.List {
		text := leaf(item)
		if item.Kind == doc.Map {
			all := map[string]string{}
			flatten(all, "", item)
			text = fmt.Sprint(all)
		}
		items = append(items, text)
	}
	return "list " + fmt.Sprintf("%q", items)
}
