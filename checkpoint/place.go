package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"muntin/internal/state"
)

// A Place is where a store keeps its objects and refs.
type Place struct {
	Sidecar bool   `json:"sidecar"`          // a bare repository in the state folder, complete in itself
	Path    string `json:"path"`             // the git folder with objects and refs
	Reason  string `json:"reason,omitempty"` // why they are not in the worktree's own repository
}

// Where tells where the store's checkpoints are, and why there.
func (s *Store) Where() Place { return s.where }

// Root is the top folder of the worktree.
func (s *Store) Root() string { return s.repo.Root }

// A home is what place found out about a worktree.
type home struct {
	repo  state.Repo // of a folder without a repository, GitDir and CommonDir are the sidecar
	where Place
	plain bool              // there is no repository
	ext   map[string]string // extensions of the repository
}

// errNoSidecar says that nothing was ever saved of a folder.
var errNoSidecar = errors.New("no checkpoints were taken of it")

// place decides where the checkpoints of a worktree are. They are in its own
// repository when that stores SHA-1 objects and refs in files, which we write
// as git does, and can be written. Else they are in a sidecar, which is made
// if create is set; if it is not, the error matches errNoSidecar.
func place(worktree string, create bool) (home, error) {
	layout, layoutErr := state.NewLayout(os.Getenv)
	repo, err := state.FindRepo(worktree)
	if errors.Is(err, state.ErrNoRepo) {
		if layoutErr != nil {
			return home{}, layoutErr
		}
		return placeFolder(layout, worktree, create)
	}
	if err != nil {
		return home{}, err
	}
	h := home{repo: repo, where: Place{Path: repo.CommonDir}}
	config, err := os.ReadFile(filepath.Join(repo.CommonDir, "config"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return home{}, fmt.Errorf("reading the repository's configuration: %w", err)
	}
	h.ext = extensions(config)
	if h.where.Reason = foreign(h.ext); h.where.Reason == "" {
		h.where.Reason = unwritable(repo)
	}
	if h.where.Reason == "" {
		return h, nil
	}
	if layoutErr != nil {
		return home{}, layoutErr
	}
	h.where.Sidecar = true
	h.where.Path = layout.Repo(repo).Checkpoints()
	return h, ensureSidecar(layout, h.where.Path, origin{Path: repo.CommonDir, Reason: h.where.Reason}, create)
}

// extensions reads the section "extensions" of a repository's configuration
// (gitrepository-layout(5), git-config(1)): lower-case keys and values. Git
// reads it from this one file, too, without includes.
func extensions(config []byte) map[string]string {
	ext := map[string]string{}
	inside := false
	for line := range bytes.Lines(config) {
		text := strings.TrimSpace(string(line))
		if strings.HasPrefix(text, "[") {
			name, rest, _ := strings.Cut(text[1:], "]")
			inside = strings.EqualFold(strings.TrimSpace(name), "extensions")
			text = strings.TrimSpace(rest)
		}
		if !inside || text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		if i := strings.IndexAny(text, "#;"); i >= 0 {
			text = text[:i]
		}
		key, value, has := strings.Cut(text, "=")
		if !has {
			value = "true"
		}
		ext[strings.ToLower(strings.TrimSpace(key))] = strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`))
	}
	return ext
}

// foreign tells why we cannot write a repository with these extensions, "" if we can.
func foreign(ext map[string]string) string {
	for _, key := range sortedKeys(ext) {
		value := ext[key]
		switch key {
		case "noop", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees":
		case "objectformat":
			if value != "sha1" {
				return "its objects are named by " + value
			}
		case "refstorage":
			if value != "files" {
				return "its refs are stored as " + value
			}
		default:
			return "its extension " + key + " is not known"
		}
	}
	return ""
}

// unwritable tells why the repository cannot take checkpoints, "" if it can.
func unwritable(repo state.Repo) string {
	for _, dir := range []string{filepath.Join(repo.CommonDir, "objects"), filepath.Join(repo.CommonDir, "refs"), repo.GitDir} {
		if !isDir(dir) {
			return dir + " is no folder"
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return dir + " cannot be written: " + err.Error()
		}
	}
	return ""
}

// placeFolder is place for a folder that no repository holds: the nearest
// folder at or above dir that has a sidecar, else dir itself.
func placeFolder(layout state.Layout, dir string, create bool) (home, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return home{}, fmt.Errorf("finding the folder: %w", err)
	}
	root, known := dir, false
	for top := dir; !known; top = filepath.Dir(top) {
		if known = hasSidecar(layout, top); known {
			root = top
		}
		if top == filepath.Dir(top) {
			break
		}
	}
	if !known {
		if !create {
			return home{}, fmt.Errorf("%s: %w", dir, errNoSidecar)
		}
		if err := refuseFolder(layout, dir); err != nil {
			return home{}, err
		}
	}
	sidecar := layout.Repo(folderRepo(root)).Checkpoints()
	h := home{
		repo:  state.Repo{Root: root, Main: root, GitDir: sidecar, CommonDir: sidecar},
		where: Place{Sidecar: true, Path: sidecar, Reason: "there is no git repository"},
		plain: true,
	}
	return h, ensureSidecar(layout, sidecar, origin{Path: root, Reason: h.where.Reason, Plain: true}, create)
}

// folderRepo stands for a folder where only its name and key matter.
func folderRepo(root string) state.Repo { return state.Repo{Root: root, Main: root, CommonDir: root} }

// refuseFolder refuses folders that nobody means to save as a whole.
func refuseFolder(layout state.Layout, dir string) error {
	refuse := func(why string) error {
		return fmt.Errorf("%w: %s %s; run `git init` in the folder to save, or call this from there", ErrUnsupported, dir, why)
	}
	if dir == "/" {
		return refuse("is the root of the file system")
	}
	if home, err := filepath.EvalSymlinks(os.Getenv("HOME")); err == nil && within(home, dir) {
		return refuse("is or holds the home folder")
	}
	if within(layout.State, dir) || within(dir, layout.State) {
		return refuse("holds, or lies in, the folder where checkpoints are kept")
	}
	if validHead(filepath.Join(dir, "HEAD")) && isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs")) {
		return refuse("is a bare repository")
	}
	return nil
}

// within tells whether path is folder or lies below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
