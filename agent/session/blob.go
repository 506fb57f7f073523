package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/durable"
	"muntin/internal/id"
)

// Pieces of content above these sizes in bytes go to a file of their own.
const (
	blobImage = 8 << 10  // of base64
	blobText  = 64 << 10 // more than any tool shows a model
	blobShown = 2 << 10  // of a long text, kept in the line from its start and its end
)

// blobs is a folder of files that are named by the SHA-256 of what they hold, so
// that a piece that is used twice is stored once, and sessions of one folder can
// share them. The zero value keeps nothing: all stays in the line.
type blobs struct{ dir string }

// blobsOf is the folder that belongs to a session's file.
func blobsOf(session string) blobs {
	return blobs{dir: filepath.Join(filepath.Dir(session), "blobs")}
}

// put stores data, durably before it returns, and gives its name.
func (b blobs) put(data []byte, ext string) (string, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:]) + "." + ext
	path := filepath.Join(b.dir, name)
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(data)) {
		return name, nil
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of blobs: %w", err)
	}
	return name, durable.WriteFile(path, data, 0o600)
}

// get reads a blob and makes sure that it is what its name says.
func (b blobs) get(name string) ([]byte, error) {
	hash, ext, _ := strings.Cut(name, ".")
	if len(hash) != 2*sha256.Size || !id.Word(hash, "0123456789abcdef", "0123456789abcdef", len(hash)) || !id.Word(ext, id.Lower, id.Lower+id.Digits, 8) {
		return nil, fmt.Errorf("%q is no name of a blob", name)
	}
	if b.dir == "" {
		return nil, errors.New("the session has no folder of blobs")
	}
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return nil, fmt.Errorf("blob %s is damaged", name)
	}
	return data, nil
}

// extensions are the ends of blobs' names; nothing depends on them but the eye.
func extension(mime string) string {
	kind, sub, _ := strings.Cut(mime, "/")
	if kind == "image" && id.Word(sub, id.Lower, id.Lower+id.Digits, 8) {
		return sub
	}
	return "bin"
}

// containsRef tells whether a line may hold a reference to a blob.
func containsRef(line []byte) bool { return bytes.Contains(line, []byte(`"blob":`)) }
