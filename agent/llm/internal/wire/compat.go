package wire

import (
	"encoding/json"
	"fmt"
)

// ReadCompat reads a model's compat object into each of the structs, which take
// what they know of it. An empty one changes nothing.
func ReadCompat(compat json.RawMessage, into ...any) error {
	if len(compat) == 0 {
		return nil
	}
	for _, to := range into {
		if err := json.Unmarshal(compat, to); err != nil {
			return fmt.Errorf("reading the compat object of the model: %w", err)
		}
	}
	return nil
}

// IsFalse reports whether a setting that is on by default was turned off.
func IsFalse(b *bool) bool { return b != nil && !*b }
