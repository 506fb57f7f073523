package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/internal/durable"
	"muntin/internal/state"
)

// An origin tells what a sidecar belongs to. It lies in the sidecar as muntin/origin.json.
type origin struct {
	Version int    `json:"version"`
	Path    string `json:"path"`  // the folder; of a repository, its common git folder
	Plain   bool   `json:"plain"` // a folder without a repository
	Reason  string `json:"reason"`
	// Inode and Born tell the folder after it was moved, within its file system.
	Inode uint64 `json:"inode"`
	Born  int64  `json:"born,omitempty"` // nanoseconds; 0: the system does not tell
}

const originVersion = 1

// folderExclude is what is never saved of a folder without a repository,
// beside what its .gitignore files say: what tools make and can make again.
const folderExclude = `# Written by muntin: ignored in this folder, which is no git repository.
node_modules/
__pycache__/
.venv/
.tox/
.cache/
.gradle/
.DS_Store
Thumbs.db
*.pyc
*.o
*.swp
*~
`

func originFile(sidecar string) string { return filepath.Join(sidecar, "muntin", "origin.json") }

func readOrigin(sidecar string) (origin, error) {
	var o origin
	b, err := os.ReadFile(originFile(sidecar))
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("reading %s: %w", originFile(sidecar), err)
	}
	if o.Version != originVersion {
		return o, fmt.Errorf("reading %s: version %d is not known", originFile(sidecar), o.Version)
	}
	return o, nil
}

// hasSidecar tells whether a folder without a repository has a sidecar, also
// one that was made when the folder was elsewhere.
func hasSidecar(layout state.Layout, root string) bool {
	path := layout.Repo(folderRepo(root)).Checkpoints()
	if _, err := os.Stat(originFile(path)); err == nil {
		return true
	}
	return movedSidecar(layout, origin{Path: root, Plain: true}) != ""
}

// ensureSidecar makes the sidecar at path unless it is there. If the folder
// was moved since, its old sidecar is moved to path.
func ensureSidecar(layout state.Layout, path string, o origin, create bool) error {
	if _, err := os.Stat(originFile(path)); err == nil {
		return nil
	}
	if old := movedSidecar(layout, o); old != "" {
		return moveSidecar(old, path, o)
	}
	if !create {
		return fmt.Errorf("%s: %w", o.Path, errNoSidecar)
	}
	if err := makeSidecar(path, o); err != nil {
		return fmt.Errorf("making a store for the checkpoints of %s: %w", o.Path, err)
	}
	return nil
}

// makeSidecar makes an empty bare repository. Its origin comes last: without
// one it is not ready.
func makeSidecar(path string, o origin) error {
	for _, dir := range []string{"", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "info", "muntin"} {
		if err := os.MkdirAll(filepath.Join(path, dir), 0o700); err != nil {
			return err
		}
	}
	files := []struct{ name, text string }{
		{"HEAD", "ref: refs/heads/none\n"},
		// An automatic gc could run in the middle of a turn; Maintain does its job.
		{"config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n[gc]\n\tauto = 0\n"},
		// The folder that is saved may hold the state folder.
		{".gitignore", "*\n"},
	}
	if o.Plain {
		files = append(files, struct{ name, text string }{"info/exclude", folderExclude})
	}
	for _, f := range files {
		if err := durable.WriteFile(filepath.Join(path, f.name), []byte(f.text), 0o600); err != nil {
			return err
		}
	}
	return writeOrigin(path, o)
}

func writeOrigin(path string, o origin) error {
	o.Version = originVersion
	o.Inode, o.Born = identify(o.Path)
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(originFile(path), append(b, '\n'), 0o600)
}

// identify returns what stays with a folder when it is moved; zeros for none.
func identify(path string) (node uint64, born int64) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0
	}
	return inode(info), birth(path)
}

// movedSidecar looks for the sidecar of a folder that was elsewhere when it
// was made: the same folder by inode and birth, whose old path is not it any more.
func movedSidecar(layout state.Layout, o origin) string {
	node, born := identify(o.Path)
	if node == 0 || born == 0 {
		return "" // an inode alone may be another folder's by now
	}
	files, err := filepath.Glob(filepath.Join(layout.State, "*", "checkpoints.git", "muntin", "origin.json"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		path := filepath.Dir(filepath.Dir(file))
		was, err := readOrigin(path)
		if err != nil || was.Inode != node || was.Born != born || was.Plain != o.Plain || was.Path == o.Path {
			continue
		}
		if there, _ := identify(was.Path); there != node {
			return path
		}
	}
	return ""
}

func moveSidecar(old, path string, o origin) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Rename(old, path)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		if _, e := os.Stat(originFile(path)); e == nil {
			return nil // another process was faster
		}
	}
	if err == nil {
		err = writeOrigin(path, o)
	}
	if err != nil {
		return fmt.Errorf("moving the checkpoints of %s after the folder: %w", o.Path, err)
	}
	return nil
}

// A Sidecar is a store outside of any repository.
type Sidecar struct {
	Path   string `json:"path"`   // the bare repository
	Of     string `json:"of"`     // the folder it was made for; of a repository, its common git folder
	Reason string `json:"reason"` // why it is not in that repository
	Lost   bool   `json:"lost"`   // the folder is not there any more, or is another one now
}

// Sidecars lists the stores outside of repositories, by the folder they were
// made for. Lost ones belong to folders that were removed, or moved to another
// file system; a folder moved within one finds its sidecar by itself.
func Sidecars() ([]Sidecar, error) {
	layout, err := state.NewLayout(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("listing sidecar stores: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(layout.State, "*", "checkpoints.git", "muntin", "origin.json"))
	if err != nil {
		return nil, fmt.Errorf("listing sidecar stores: %w", err)
	}
	var list []Sidecar
	for _, file := range files {
		path := filepath.Dir(filepath.Dir(file))
		o, err := readOrigin(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing sidecar stores: %w", err)
		}
		node, born := identify(o.Path)
		list = append(list, Sidecar{Path: path, Of: o.Path, Reason: o.Reason, Lost: node != o.Inode || born != o.Born})
	}
	slices.SortFunc(list, func(a, b Sidecar) int { return strings.Compare(a.Of, b.Of) })
	return list, nil
}
