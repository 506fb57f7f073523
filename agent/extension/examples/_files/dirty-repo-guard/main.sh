. "$(dirname "$0")/muntin.sh"

on_session_switch() {
  changed=$(git --no-optional-locks -C "$(printf '%s' "$hello" | muntin_json dir)" status --porcelain 2>/dev/null | wc -l | tr -d ' ')
  [ "$changed" -gt 0 ] || return 0
  confirm "$changed files have changes that are not committed. Go on?" ||
    reply "{\"cancel\":true,\"reason\":$(quote "$changed files have changes that are not committed")}"
}

muntin_run
