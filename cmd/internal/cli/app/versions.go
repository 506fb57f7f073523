package app

import (
	"path/filepath"

	"muntin/agent/adapter/version"
)

// Versions keeps what the CLIs that are installed here say of their version.
func Versions(a *App) version.Cache {
	return version.Cache{Path: filepath.Join(a.Layout.State, "versions.json")}
}
