. "$(dirname "$0")/muntin.sh"

on_session_switch() {
  confirm "Leave this conversation ($(get reason))?"
  [ $? -ne 1 ] || reply '{"cancel":true,"reason":"you chose to stay"}' # nobody there: it is left
}

muntin_run
