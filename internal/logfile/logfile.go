// Package logfile opens muntin's structured logs: slog's JSON lines in a file
// under the state folder, and never in a pane.
package logfile

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
)

// Open appends to the log at path, making it and its folder if needed. The
// caller closes what it gets back. The file is readable by its owner only.
func Open(path string, level slog.Level) (*slog.Logger, io.Closer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, fmt.Errorf("opening log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening log: %w", err)
	}
	return slog.New(slog.NewJSONHandler(f, &slog.HandlerOptions{Level: level})), f, nil
}
