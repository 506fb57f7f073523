package pack

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The most that a package may hold.
const (
	maxBytes = 64 << 20
	maxFiles = 10000
)

// extract unpacks a tar archive into a new folder. Only files and folders are made:
// links and devices are left out, and a path that leads out of the folder is an error.
// packed is for npm's archives, which are compressed and hold one folder.
func extract(archive, dir string, packed bool) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	if packed {
		if in, err = gzip.NewReader(in); err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return unpack(tar.NewReader(in), dir, packed)
}

func unpack(in *tar.Reader, dir string, strip bool) error {
	left, files := int64(maxBytes), 0
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := h.Name
		if strip {
			_, name, _ = strings.Cut(name, "/")
		}
		if !filepath.IsLocal(name) || strings.Contains(name, "\\") {
			return fmt.Errorf("unpacking: the path %q leads out of the package", h.Name)
		}
		left -= h.Size
		if files++; left < 0 || files > maxFiles {
			return fmt.Errorf("unpacking: there are more than %d MiB, or than %d files", maxBytes>>20, maxFiles)
		}
		if err := unpackFile(in, filepath.Join(dir, name), h.FileInfo().Mode()); err != nil {
			return fmt.Errorf("unpacking %s: %w", h.Name, err)
		}
	}
}

func unpackFile(in io.Reader, path string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|mode.Perm()&0o111)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// Digest is "sha256-" and the hash, in hexadecimal, of all files below a folder: for
// each, in the order of their paths, a line of its own hash, "x" or "-" for whether
// it can be run, and its path.
func Digest(dir string) (string, error) {
	all := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file", rel)
		}
		sum, err := hashFile(path)
		if err != nil {
			return err
		}
		run := "-"
		if info.Mode().Perm()&0o100 != 0 {
			run = "x"
		}
		_, err = fmt.Fprintf(all, "%s %s %q\n", sum, run, rel)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hashing %s: %w", dir, err)
	}
	return "sha256-" + hex.EncodeToString(all.Sum(nil)), nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

func validDigest(text string) bool {
	hash, ok := strings.CutPrefix(text, "sha256-")
	return ok && len(hash) == 2*sha256.Size && strings.Trim(hash, "0123456789abcdef") == ""
}

// shortened names a folder after a digest.
func shortened(digest string) string {
	hash := strings.TrimPrefix(digest, "sha256-")
	return hash[:min(len(hash), 16)]
}
