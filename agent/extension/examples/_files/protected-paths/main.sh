# A command can write files in ways that no look at its text finds: this catches
# oversights. Against intent, use permissions or a sandbox.
. "$(dirname "$0")/muntin.sh"

on_tool_call() {
  what=$(get args.path)
  if [ "$(get toolName)" = bash ]; then
    what=$(get args.command)
    case $what in *">"* | *"rm "* | *"mv "* | *"cp "* | *"tee "* | *"sed -i"*) ;; *) return 0 ;; esac
  fi
  for path in $(printf '%s' "$hello" | muntin_json flags.paths); do
    case "$what" in
      *"$path"*) block "$path is protected: leave it as it is, or ask the user to change it."; return ;;
    esac
  done
}

muntin_run
