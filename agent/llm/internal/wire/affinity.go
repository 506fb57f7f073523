package wire

// Affinity gives the headers by which a server or a gateway knows the requests of
// one conversation, so that its cache serves them. The formats are those of Pi's
// sessionAffinityFormat; an unknown one counts as "openai".
func Affinity(format, sessionID string) map[string]string {
	if sessionID == "" {
		return nil
	}
	switch format {
	case "openrouter":
		return map[string]string{"X-Session-Id": sessionID}
	case "anthropic":
		return map[string]string{"X-Session-Affinity": sessionID}
	case "openai-nosession":
		return map[string]string{"X-Client-Request-Id": sessionID, "X-Session-Affinity": sessionID}
	}
	return map[string]string{"Session_id": sessionID, "X-Client-Request-Id": sessionID, "X-Session-Affinity": sessionID}
}
