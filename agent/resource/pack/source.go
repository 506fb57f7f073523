package pack

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"muntin/internal/id"
)

// The kinds of sources.
const (
	FromGit    = "git"
	FromNPM    = "npm"
	FromFolder = "folder"
)

// A Source says where a package is published.
type Source struct {
	Kind  string
	Where string // a URL, npm's name of the package, or an absolute path
	Ref   string // a branch, tag or commit; a version or a tag of npm; "": the newest
}

// ParseSource reads "npm:name@version", "git:host/user/repository@ref", a URL of a
// git repository with or without "@ref", or an absolute path.
func ParseSource(text string) (Source, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) && !filepath.IsAbs(text) {
		return Source{}, fmt.Errorf("package source %q: there is a space or a control character in it", text)
	}
	if rest, ok := strings.CutPrefix(text, "npm:"); ok {
		return npmSource(text, rest)
	}
	rest, isGit := strings.CutPrefix(text, "git:")
	isURL := strings.Contains(rest, "://")
	switch {
	case isGit && strings.HasPrefix(rest, "//"): // the URL git://host/…
		return gitSource(text, text)
	case isGit, isURL:
		return gitSource(text, rest)
	case filepath.IsAbs(text):
		return Source{Kind: FromFolder, Where: filepath.Clean(text)}, nil
	}
	return Source{}, fmt.Errorf("package source %q: want npm:name, git:host/user/repository, a URL, or the path of a folder", text)
}

func gitSource(text, where string) (Source, error) {
	s := Source{Kind: FromGit, Where: where}
	slash := strings.LastIndexByte(where, '/')
	if at := strings.LastIndexByte(where, '@'); at > slash {
		s.Where, s.Ref = where[:at], where[at+1:]
	}
	scheme, _, isURL := strings.Cut(s.Where, "://")
	host, _, isSCP := strings.Cut(s.Where, ":")
	isSCP = isSCP && strings.Contains(host, "@") && !strings.Contains(host, "/")
	switch {
	case isURL && scheme != "https" && scheme != "ssh" && scheme != "file" && scheme != "git":
		return s, fmt.Errorf("package source %q: want https, ssh, git or file", text)
	case isURL || isSCP:
	case strings.Count(s.Where, "/") < 1 || strings.HasPrefix(s.Where, "/") || strings.HasPrefix(s.Where, "-"):
		return s, fmt.Errorf("package source %q: want git:host/user/repository", text)
	default:
		s.Where = "https://" + s.Where
	}
	// A word that begins with a dash would be an option of git's, and one with a colon
	// would write a ref.
	if strings.HasPrefix(s.Where, "-") || strings.HasPrefix(s.Ref, "-") || strings.ContainsAny(s.Ref, ":^~?*[\\") || strings.HasSuffix(where, "@") || !validName(s.name()) {
		return s, fmt.Errorf("package source %q: %q is no branch, tag or commit of a repository with a plain name", text, s.Ref)
	}
	return s, nil
}

// npmSource takes names in a registry only: npm would run scripts for other specs.
func npmSource(text, rest string) (Source, error) {
	s := Source{Kind: FromNPM, Where: rest}
	if at := strings.LastIndexByte(rest, '@'); at > 0 {
		s.Where, s.Ref = rest[:at], rest[at+1:]
	}
	scope, name, scoped := strings.Cut(s.Where, "/")
	if !scoped {
		scope, name = "@x", s.Where
	}
	const first, all = id.Lower + id.Digits, id.Lower + id.Digits + "-._~"
	const version = id.Lower + id.Upper + id.Digits + ".-+~^*"
	ok := strings.HasPrefix(scope, "@") && id.Word(scope[1:], first, all, 100) && id.Word(name, first, all, 100) &&
		(s.Ref == "" && !strings.HasSuffix(rest, "@") || id.Word(s.Ref, strings.ReplaceAll(version, "-", ""), version, 100))
	if !ok {
		return s, fmt.Errorf("package source %q: want npm:name, npm:@scope/name, and behind it @version", text)
	}
	return s, nil
}

// name is what the package is called: a repository by its owner too, since many are
// called alike.
func (s Source) name() string {
	switch s.Kind {
	case FromNPM:
		return strings.ReplaceAll(strings.TrimPrefix(s.Where, "@"), "/", "-")
	case FromFolder:
		return strings.ToLower(path.Base(s.Where))
	}
	where := s.Where
	if _, rest, ok := strings.Cut(where, "://"); ok {
		_, where, _ = strings.Cut(rest, "/")
	} else {
		_, where, _ = strings.Cut(where, ":")
	}
	parts := strings.FieldsFunc(where, func(r rune) bool { return r == '/' })
	name := strings.Join(parts[max(0, len(parts)-2):], "-")
	return strings.ToLower(strings.TrimSuffix(name, ".git"))
}

// validName reports whether a name can be that of a folder in the store.
func validName(name string) bool {
	return id.Word(name, id.Lower+id.Digits, id.Lower+id.Digits+"-._~", 200)
}

// at is the source with a version in place of its ref.
func (s Source) at(version string) Source {
	if version != "" {
		s.Ref = version
	}
	return s
}

// String is the source as ParseSource reads it.
func (s Source) String() string {
	text := s.Where
	switch s.Kind {
	case FromNPM:
		text = "npm:" + text
	case FromGit:
		text = "git:" + text
	}
	if s.Ref != "" {
		text += "@" + s.Ref
	}
	return text
}
