package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/internal/gittest"
)

func newStore(t *testing.T) Store {
	t.Helper()
	dir := t.TempDir()
	return Store{Lock: filepath.Join(dir, "c", "packages.json"), Dir: filepath.Join(dir, "s"), Env: append(gittest.Env(), "HOME="+dir, "PATH="+os.Getenv("PATH")), Now: time.Now}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestGit(t *testing.T) {
	t.Parallel()
	repo := gittest.Init(t, filepath.Join(t.TempDir(), "team", "skills"))
	repo.Write("skills/one/SKILL.md", "one")
	repo.Write("skills/one/run.sh", "#!/bin/sh\n")
	if err := os.Chmod(repo.Path("skills/one/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", repo.Path("skills/link")); err != nil {
		t.Fatal(err)
	}
	first := repo.Commit("one")
	repo.Git("tag", "v1")
	s := newStore(t)
	url := "file://" + repo.Dir
	e, err := s.Add(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != "team-skills" || e.Version != strings.TrimSpace(first) || !validDigest(e.Integrity) {
		t.Errorf("%+v", e)
	}
	p, err := s.Package(e)
	if err != nil || strings.Join(p.Skills, " ") != "skills" || exists(filepath.Join(p.Dir, "skills", "link")) {
		t.Errorf("%+v, %v", p, err)
	}
	if info, err := os.Stat(filepath.Join(p.Dir, "skills", "one", "run.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("a program can not be run: %v", err)
	}

	// Pinned until it is updated; by its tag for ever.
	repo.Write("skills/two/SKILL.md", "two")
	second := strings.TrimSpace(repo.Commit("two"))
	if did, err := s.Restore(t.Context(), e.Name); did || err != nil {
		t.Errorf("nothing to restore: %v, %v", did, err)
	}
	was, now, err := s.Update(t.Context(), e.Name)
	if err != nil || was.Version == now.Version || now.Version != second {
		t.Errorf("%+v, %+v, %v", was, now, err)
	}
	if e, err = s.Add(t.Context(), url+"@v1"); err != nil || e.Version != was.Version || e.Integrity != was.Integrity {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = s.Add(t.Context(), url+"@"+second); err != nil || e.Version != second {
		t.Errorf("by its commit: %+v, %v", e, err)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}

	// What was changed or lost is fetched again as it was.
	file := filepath.Join(s.Folder(e), "skills", "one", "SKILL.md")
	if err := os.WriteFile(file, []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(e); err == nil || !strings.Contains(err.Error(), "were changed") {
		t.Errorf("a changed file: %v", err)
	}
	if did, err := s.Restore(t.Context(), e.Name); !did || err != nil || s.Verify(e) != nil {
		t.Errorf("restored %v, %v", did, err)
	}
	if err := s.Remove(t.Context(), e.Name); err != nil || exists(filepath.Join(s.Dir, e.Name)) {
		t.Errorf("removed: %v", err)
	}
	if err := s.Remove(t.Context(), e.Name); err == nil {
		t.Error("removed twice")
	}
}

func TestNoHookAndNoFilterOfThePackageRuns(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	repo := gittest.Init(t, filepath.Join(t.TempDir(), "a", "evil"))
	repo.Write("prompts/x.md", "x")
	repo.Write("package.json", fmt.Sprintf(`{"name":"evil","scripts":{"install":"touch %s","prepare":"touch %s","prepack":"touch %s"}}`, mark, mark, mark))
	repo.Write(".githooks/post-checkout", "#!/bin/sh\ntouch "+mark+"\n")
	repo.Write(".gitattributes", "* filter=evil\n")
	repo.Commit("x")
	s := newStore(t)
	if _, err := s.Add(t.Context(), "git:file://"+repo.Dir); err != nil {
		t.Fatal(err)
	}
	if exists(mark) {
		t.Error("a script of the package was run")
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mine")
	s := newStore(t)
	if _, err := s.Add(t.Context(), dir); err == nil {
		t.Error("a folder that is not there")
	}
	if err := os.MkdirAll(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "brings no skills") {
		t.Errorf("an empty folder: %v", err)
	}
	for text, want := range map[string]string{
		`{"pi": {"skills": ["../x"]}}`:     "is not a folder in the package",
		`{"muntin": {"skills": ["**/*"]}}`: "patterns are not supported",
		`{`:                                "package.json",
		`{"pi": {}}`:                       "brings no skills",
		`{"pi": {"prompts": ["x"]}}`:       "",
	} {
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Add(t.Context(), dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"pi": {"prompts": ["x"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || s.Folder(list[0]) != dir || s.Verify(list[0]) != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if err := s.Remove(t.Context(), "mine"); err != nil || !exists(dir) {
		t.Errorf("%v", err)
	}
}

// tgz makes an archive of npm's form.
func tgz(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// registry answers as npm's does.
func registry(t *testing.T, name string, archive []byte, integrity string) string {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			_, _ = w.Write(archive)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": name, "dist-tags": map[string]string{"latest": "1.2.3"},
			"versions": map[string]any{"1.2.3": map[string]any{
				"name": name, "version": "1.2.3", "dist": map[string]string{"tarball": server.URL + "/x/-/x-1.2.3.tgz", "integrity": integrity},
			}},
		})
	})
	return server.URL
}

// npmEnv keeps npm to the registry of a test.
func npmEnv(url string, s Store) []string {
	return []string{
		"npm_config_registry=" + url, "npm_config_cache=" + filepath.Join(s.Dir, "npm"), "npm_config_update_notifier=false", "npm_config_fetch_retries=0",
		"npm_config_noproxy=127.0.0.1", "npm_config_audit=false",
	}
}

func TestNPM(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	archive := tgz(t, map[string]string{
		"package/package.json":        fmt.Sprintf(`{"name":"@team/skills","version":"1.2.3","scripts":{"install":"touch %s","prepack":"touch %s"},"pi":{"skills":["s"]}}`, mark, mark),
		"package/s/one/SKILL.md":      "one",
		"package/node_modules/x/x.js": "x",
	})
	sum := sha512.Sum512(archive)
	s := newStore(t)
	url := registry(t, "@team/skills", archive, "sha512-"+base64.StdEncoding.EncodeToString(sum[:]))
	s.Env = append(s.Env, npmEnv(url, s)...)
	e, err := s.Add(t.Context(), "npm:@team/skills@^1")
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != "team-skills" || e.Version != "1.2.3" || s.Verify(e) != nil || exists(mark) {
		t.Errorf("%+v, a script ran: %v", e, exists(mark))
	}
	if !exists(filepath.Join(s.Folder(e), "s", "one", "SKILL.md")) {
		t.Error("the files are not there")
	}

	if err := checkArchive([]byte("other"), "sha512-"+base64.StdEncoding.EncodeToString(sum[:])); err == nil {
		t.Error("another archive is taken")
	}
}

func TestUnpackStaysInside(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]bool{"package/a/b": false, "package/../x": true, "package//etc/x": true, "package/a\\..\\x": true, "x": true} {
		dir := t.TempDir()
		archive := filepath.Join(dir, "x.tgz")
		if err := os.WriteFile(archive, tgz(t, map[string]string{name: "x"}), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := extract(archive, filepath.Join(dir, "out"), true); (err != nil) != bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseSource(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"npm:x":                           "npm x  x",
		"npm:@a/b@1.0.0":                  "npm @a/b 1.0.0 a-b",
		"npm:x@^1.2":                      "npm x ^1.2 x",
		"git:github.com/a/b":              "git https://github.com/a/b  a-b",
		"git:github.com/a/B.git@v1":       "git https://github.com/a/B.git v1 a-b",
		"https://h/a/b@feature":           "git https://h/a/b feature a-b",
		"git:git@github.com:a/b":          "git git@github.com:a/b  a-b",
		"git:git@github.com:a/b.git@main": "git git@github.com:a/b.git main a-b",
		"ssh://git@h:22/a/b":              "git ssh://git@h:22/a/b  a-b",
		"/x/Y/":                           "folder /x/Y  y",
	} {
		s, err := ParseSource(text)
		if got := strings.Join([]string{s.Kind, s.Where, s.Ref, s.name()}, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
			continue
		}
		if again, err := ParseSource(s.String()); err != nil || again != s {
			t.Errorf("%s: as %s it is %+v, %v", text, s, again, err)
		}
	}
	for _, text := range []string{
		"", "x", "npm:", "npm:../x", "npm:x@", "npm:x@file:y", "npm:x@-g", "npm:http://x", "npm:--flag", "npm:a/b", "npm:x@git+ssh://y",
		"git:", "git:-x/y", "git:ext::sh -c x", "ext::x://y/z", "git:h/a/b@--upload-pack=x", "git:h/a/b@a:b", "git:h/a/b@", "http://h/a/b", "https://h/a b", "git:/x", "https://-h",
	} {
		if s, err := ParseSource(text); err == nil {
			t.Errorf("%q is %+v", text, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"npm:@a/b@1", "git:h/a/b@c", "https://h/a@b/c@d", "/x", `{"version":1,"packages":[{"name":"a","source":"npm:a","version":"1","integrity":"sha256-"}]}`, `[{"version":"1","integrity":"x"}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSource(text); err == nil {
			if strings.HasPrefix(s.Where, "-") || strings.HasPrefix(s.Ref, "-") {
				t.Errorf("%q gives an option: %+v", text, s)
			}
			if again, err := ParseSource(s.String()); err != nil || again != s {
				t.Errorf("%q: as %s it is %+v, %v", text, s, again, err)
			}
		}
		if all, err := parseLock([]byte(text)); err == nil {
			for _, e := range all.Packages {
				if !filepath.IsLocal(e.Name) || strings.Contains(e.Name, "/") {
					t.Errorf("name %q", e.Name)
				}
			}
		}
		if p, err := parsePacked(text); err == nil && p.Version == "" {
			t.Errorf("%+v", p)
		}
	})
}
