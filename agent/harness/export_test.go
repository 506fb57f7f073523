package harness

// BreakSession makes every further write to the session fail.
func BreakSession(h *Harness) { _ = h.session.Close() }
