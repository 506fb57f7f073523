package checkpoint

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// convFlags say which conversions of git's some rule in force could ask for.
type convFlags uint8

const (
	convText   convFlags = 1 << iota // autocrlf, text, eol: only files with CR LF change on their way in
	convIdent                        // ident: only files with "$Id" change
	convFilter                       // filter, working-tree-encoding: any file may change
)

// An attrScope is what is known about conversion in one folder: a superset
// of what git would do. Which file is really concerned is git's decision.
type attrScope struct {
	flags convFlags
	sig   uint64 // of all rules in force; other rules, other hashes
}

// systemAttributes are the places of the system-wide file in usual builds of git.
//
//nolint:gochecknoglobals // a constant table
var systemAttributes = [...]string{"/etc/gitattributes", "/usr/local/etc/gitattributes", "/opt/homebrew/etc/gitattributes"}

// rootAttrs reads the rules that come from outside the worktree.
func (g *git) rootAttrs(c *settings) (*attrScope, error) {
	h := fnv.New64a()
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		if strings.HasPrefix(key, "filter.") || key == "core.autocrlf" || key == "core.eol" {
			h.Write([]byte(key + "\n" + c.values[key] + "\x00"))
		}
	}
	s := &attrScope{sig: h.Sum64()}
	if v := strings.ToLower(c.values["core.autocrlf"]); v == "input" || c.bool("core.autocrlf", false) {
		s.flags |= convText
	}
	files := append(systemAttributes[:], c.path("core.attributesfile", xdgFile("attributes")),
		filepath.Join(g.repo.CommonDir, "info", "attributes"))
	for _, f := range files {
		content, err := readOptional(f)
		if err != nil && !os.IsPermission(err) {
			return nil, err
		}
		s = s.enter(content)
	}
	return s, nil
}

// enter adds the content of a .gitattributes that is outside the worktree.
func (s *attrScope) enter(content []byte) *attrScope {
	return s.enterRules(attrFlags(content), sum(content))
}

// enterRules adds a .gitattributes by what its content asks for and by its
// sum. Once some rule converts, all files below count, since a macro may be
// used under any name.
func (s *attrScope) enterRules(flags convFlags, sum uint64) *attrScope {
	if sum == 0 || flags == 0 && s.flags == 0 {
		return s
	}
	return &attrScope{flags: s.flags | flags, sig: mix(s.sig, sum)}
}

// sum is a checksum of a rule file; 0 for an empty one.
func sum(content []byte) uint64 {
	if len(content) == 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write(content)
	return h.Sum64() | 1
}

// mix is the signature of a chain of rule files with one more at its end.
func mix(chain, sum uint64) uint64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], chain)
	binary.LittleEndian.PutUint64(b[8:], sum)
	h.Write(b[:])
	return h.Sum64()
}

// attrFlags looks for the names of converting attributes, wherever they stand.
func attrFlags(content []byte) convFlags {
	var flags convFlags
	for _, w := range []struct {
		word string
		flag convFlags
	}{
		{"text", convText}, {"crlf", convText}, {"eol", convText}, {"ident", convIdent},
		{"filter", convFilter}, {"working-tree-encoding", convFilter},
	} {
		if bytes.Contains(content, []byte(w.word)) {
			flags |= w.flag
		}
	}
	return flags
}

// byContent tells whether the content itself gives reason to ask git.
func (s *attrScope) byContent(content []byte) bool {
	return s.flags&convText != 0 && bytes.Contains(content, []byte("\r\n")) ||
		s.flags&convIdent != 0 && bytes.Contains(content, []byte("$Id"))
}
