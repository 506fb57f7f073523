package logfile

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenAppendsJSONForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "logs", "pane.log")
	for _, msg := range []string{"one", "two"} {
		log, file, err := Open(path, slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("not this")
		log.Info(msg, "n", 1)
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, _ := f.Stat(); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	dec := json.NewDecoder(f)
	for _, want := range []string{"one", "two"} {
		var line struct{ Msg string }
		if err := dec.Decode(&line); err != nil || line.Msg != want {
			t.Errorf("line %+v, %v", line, err)
		}
	}
}
