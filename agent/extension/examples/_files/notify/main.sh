. "$(dirname "$0")/muntin.sh"

on_event_agent_settled() {
  text="The agent has settled."
  [ "$(get aborted)" != true ] || text="The agent was stopped."
  title="muntin: $(basename "$(printf '%s' "$hello" | muntin_json dir)")"
  own=$(printf '%s' "$hello" | muntin_json flags.command)
  if [ -n "$own" ]; then
    "$own" "$title" "$text" >&2
  elif command -v notify-send >/dev/null; then
    notify-send "$title" "$text" >&2
  elif command -v osascript >/dev/null; then
    osascript -e 'on run a' -e 'display notification (item 2 of a) with title (item 1 of a)' -e 'end run' "$title" "$text" >&2
  else
    notify "$text (neither notify-send nor osascript is installed)"
  fi
}

muntin_run
