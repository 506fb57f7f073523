. "$(dirname "$0")/muntin.sh"

on_tool_call() {
  word=$(printf '%s' "$hello" | muntin_json flags.word)
  case $(get args.command) in
    *"$word"*) block "the word is not allowed" ;;
  esac
}

on_input() {
  if [ "$(get text)" = hi ]; then
    reply '{"action":"transform","text":"Hello there."}'
  fi
}

on_event_agent_settled() { status settled; }

on_tool_hello() {
  update '{"text":"Hello…"}'
  text "Hello, $(get args.name)!"
}

on_command_hello() {
  if [ "$(get args)" != ask ]; then
    text "Hello."
    return
  fi
  confirm "Say hello?"
  case $? in
    0) text yes ;;
    1) text no ;;
    *) text "nobody answered" ;;
  esac
}

muntin_run
