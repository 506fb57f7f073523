package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// headCommit resolves the HEAD of a git folder. It returns the zero hash for
// an unborn branch, for a folder that is no repository, and for one whose commits are not named by SHA-1.
func headCommit(gitDir, commonDir string) (plumbing.Hash, error) {
	name, err := headName(gitDir, commonDir)
	h, _ := parseHash(name)
	return h, err
}

// headName is headCommit for any kind of hash; "" for none.
func headName(gitDir, commonDir string) (string, error) {
	name := "HEAD"
	for range 5 { // git gives up on longer chains of symbolic refs, too
		dir := commonDir
		if name == "HEAD" {
			dir = gitDir
		}
		text, err := readOptional(filepath.Join(dir, name))
		if err != nil && !isDirError(err) {
			return "", err
		}
		line := strings.TrimSpace(string(text))
		if target, ok := strings.CutPrefix(line, "ref:"); ok {
			name = strings.TrimSpace(target)
			if !strings.HasPrefix(name, "refs/") || strings.Contains(name, "..") {
				return "", nil
			}
			continue
		}
		if line != "" {
			if !isHash(line) {
				return "", nil
			}
			return line, nil
		}
		return packedName(commonDir, name)
	}
	return "", nil
}

// A nested is a repository found at a folder inside the worktree.
type nested struct {
	gitDir, commonDir string
}

// openNested looks at folder/.git as git's is_nonbare_repository_dir does.
func openNested(folder string) (nested, bool) {
	dotGit := filepath.Join(folder, ".git")
	info, err := os.Stat(dotGit)
	if err != nil {
		return nested{}, false
	}
	dir := dotGit
	if !info.IsDir() {
		b, err := readNow(dotGit)
		target, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), "gitdir: ")
		if err != nil || !ok {
			return nested{}, false
		}
		if dir = target; !filepath.IsAbs(dir) {
			dir = filepath.Join(folder, target)
		}
	}
	common := dir
	if b, err := readNow(filepath.Join(dir, "commondir")); err == nil {
		if common = strings.TrimRight(string(b), "\r\n"); !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
	}
	n := nested{gitDir: dir, commonDir: common}
	return n, validHead(filepath.Join(dir, "HEAD")) && isDir(filepath.Join(common, "objects")) && isDir(filepath.Join(common, "refs"))
}

// commit is the nested repository's HEAD, or zero.
func (n nested) commit() plumbing.Hash {
	h, err := headCommit(n.gitDir, n.commonDir)
	if err != nil {
		return plumbing.ZeroHash
	}
	return h
}

// readNow is os.ReadFile, but for FIFOs, which would keep the reader waiting.
func readNow(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrInvalid}
	}
	return os.ReadFile(path)
}

func validHead(path string) bool {
	if target, err := os.Readlink(path); err == nil {
		return strings.HasPrefix(target, "refs/")
	}
	b, err := readNow(path)
	if err != nil {
		return false
	}
	if target, ok := strings.CutPrefix(string(b), "ref:"); ok {
		return strings.HasPrefix(strings.TrimLeft(target, " \t"), "refs/")
	}
	return isHash(strings.TrimSpace(string(b)))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isDirError tells that a ref's name is a folder of other refs.
func isDirError(err error) bool {
	var pe *os.PathError
	return errors.As(err, &pe) && pe.Op == "read"
}

// isHash tells whether s is the name of an object, by SHA-1 or SHA-256.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// parseHash reads 40 lower-case hexadecimal digits.
func parseHash(s string) (plumbing.Hash, bool) {
	if len(s) != 40 || strings.Trim(s, "0123456789abcdef") != "" {
		return plumbing.ZeroHash, false
	}
	return plumbing.NewHash(s), true
}
