# Extensions for muntin in POSIX shell: copy this file beside yours and source it. It
# needs awk and nothing else. The protocol is described in docs/extensions.md of muntin.
#
#   . ./muntin.sh
#   on_tool_call() {
#     case $(get args.command) in
#       *"rm -rf"*) reply "{\"block\":true,\"reason\":\"not that\"}" ;;
#     esac
#   }
#   muntin_run
#
# Handlers are functions: on_GATE, on_tool_NAME, on_command_NAME and on_event_NAME (with
# _ for every -). One runs at a time, with its parameters as JSON in $params. What it
# does not reply is answered with {}; a handler that returns an error fails its request,
# and a gate that fails counts as a no.

# muntin_json reads JSON on standard input and prints the value at a dotted path: strings
# as they are, all else as JSON. It prints nothing and fails where there is none.
muntin_json() {
  MUNTIN_PATH=$1 LC_ALL=C awk '
    function skip() { while (substr(s, i, 1) ~ /[ \t\r\n]/) i++ }
    function utf8(n) {
      if (n < 128) return sprintf("%c", n)
      if (n < 2048) return sprintf("%c%c", 192 + int(n / 64), 128 + n % 64)
      if (n < 65536) return sprintf("%c%c%c", 224 + int(n / 4096), 128 + int(n / 64) % 64, 128 + n % 64)
      return sprintf("%c%c%c%c", 240 + int(n / 262144), 128 + int(n / 4096) % 64, 128 + int(n / 64) % 64, 128 + n % 64)
    }
    function hex(h,  k, n) {
      for (k = 1; k <= 4; k++) n = n * 16 + index("0123456789abcdef", tolower(substr(h, k, 1))) - 1
      return n
    }
    function str(  out, c, n, m) {
      out = ""; i++
      while (match(substr(s, i, 4096), /^[^"\\]+/) || 1) {
        if (RLENGTH > 0) { out = out substr(s, i, RLENGTH); i += RLENGTH; RLENGTH = 0; continue }
        c = substr(s, i, 1); i++
        if (c == "\"" || c == "") return out
        c = substr(s, i, 1); i++
        if (c == "n") out = out "\n"; else if (c == "t") out = out "\t"; else if (c == "r") out = out "\r"
        else if (c == "b") out = out "\b"; else if (c == "f") out = out "\f"
        else if (c == "u") {
          n = hex(substr(s, i, 4)); i += 4
          if (n >= 55296 && n < 56320 && substr(s, i, 2) == "\\u") {
            m = hex(substr(s, i + 2, 4)); i += 6; n = 65536 + (n - 55296) * 1024 + m - 56320
          }
          out = out utf8(n)
        } else out = out c
      }
    }
    function value(at,  from, c, key, n, text) {
      skip(); from = i; c = substr(s, i, 1)
      if (c == "\"") { text = str() }
      else if (c == "{" || c == "[") {
        i++; n = 0
        for (;;) {
          skip(); if (substr(s, i, 1) ~ /[}\]]/) { i++; break }
          if (substr(s, i, 1) == ",") { i++; continue }
          if (c == "{") { key = str(); skip(); i++ } else key = n++
          value(at == "" ? key : at "." key)
          if (found) return
        }
        text = substr(s, from, i - from)
      } else { while (i <= length(s) && substr(s, i, 1) !~ /[,}\] \t\r\n]/) i++; text = substr(s, from, i - from) }
      if (at == want) { found = 1; printf "%s", text }
    }
    { s = s $0 "\n" }
    END { want = ENVIRON["MUNTIN_PATH"]; i = 1; value(""); exit !found }'
}

# get prints a value of the parameters.
get() { printf '%s' "$params" | muntin_json "$1"; }

# quote prints a text as a JSON string.
quote() {
  printf '%s' "$1" | LC_ALL=C awk '
    BEGIN { for (n = 1; n < 32; n++) code[sprintf("%c", n)] = sprintf("\\u%04x", n); code["\\"] = "\\\\"; code["\""] = "\\\"" }
    { if (NR > 1) printf "\\n"; for (k = 1; k <= length($0); k++) { c = substr($0, k, 1); printf "%s", (c in code) ? code[c] : c } }' |
    { printf '"'; cat; printf '"'; }
}

# reply answers the present request with a JSON object, update gives a part before.
reply() { muntin_replied=1; printf '{"type":"response","id":%s,"result":%s}\n' "$muntin_id" "$1"; }
update() { printf '{"type":"update","id":%s,"params":%s}\n' "$muntin_id" "$1"; }

# text replies with a text, block keeps a call from running, notify and status and
# send_message say something unasked.
text() { reply "{\"text\":$(quote "$1")}"; }
block() { reply "{\"block\":true,\"reason\":$(quote "$1")}"; }
notify() { printf '{"type":"event","method":"notify","params":{"text":%s,"level":"%s"}}\n' "$(quote "$1")" "${2:-info}"; }
status() { printf '{"type":"event","method":"status","params":{"text":%s}}\n' "$(quote "$1")"; }
send_message() { printf '{"type":"event","method":"send","params":{"text":%s}}\n' "$(quote "$1")"; }

# confirm asks the user: 0 is yes, 1 no, 2 nobody answered. What comes meanwhile waits.
confirm() {
  muntin_last=$((muntin_last + 1))
  printf '{"type":"request","id":%s,"method":"ask","params":{"kind":"confirm","title":%s}}\n' "$muntin_last" "$(quote "$1")"
  while IFS= read -r muntin_line; do
    case $muntin_line in
      '{"type":"response","id":'"$muntin_last"[,}]*)
        case $muntin_line in
          *'"answered":true'*'"confirmed":true'*) return 0 ;;
          *'"answered":true'*) return 1 ;;
        esac
        return 2 ;;
    esac
    muntin_waiting="$muntin_waiting$muntin_line
"
  done
  return 2
}

muntin_handle() {
  muntin_type=${1#*\"type\":\"} muntin_type=${muntin_type%%\"*}
  case $muntin_type in
    hello)
      hello=$(printf '%s' "$1" | muntin_json params)
      printf '{"type":"ready","params":{"protocol":1}}\n'
      return ;;
    request | event) ;;
    *) return ;;
  esac
  muntin_id=${1#*\"id\":} muntin_id=${muntin_id%%,*}
  muntin_method=${1#*\"method\":\"} muntin_method=${muntin_method%%\"*}
  params=$(printf '%s' "$1" | muntin_json params)
  muntin_do=on_$muntin_method
  case $muntin_type.$muntin_method in
    event.*) muntin_do=on_event_$muntin_method ;;
    *.tool) muntin_do=on_tool_$(get toolName) ;;
    *.command) muntin_do=on_command_$(get name) ;;
  esac
  muntin_do=$(printf '%s' "$muntin_do" | tr -- '-.' '__')
  muntin_replied=0
  if command -v "$muntin_do" >/dev/null 2>&1; then
    "$muntin_do" && muntin_error='' || muntin_error="$muntin_do failed"
  else
    muntin_error="no handler $muntin_do"
  fi
  [ "$muntin_type.$muntin_replied" = request.0 ] || return
  if [ -n "$muntin_error" ]; then
    printf '{"type":"response","id":%s,"error":%s}\n' "$muntin_id" "$(quote "$muntin_error")"
  else
    reply '{}'
  fi
}

# muntin_run answers until the input ends.
muntin_run() {
  muntin_last=0 muntin_waiting=''
  while IFS= read -r muntin_line; do
    muntin_handle "$muntin_line"
    while [ -n "$muntin_waiting" ]; do
      muntin_next=${muntin_waiting%%"
"*}
      muntin_waiting=${muntin_waiting#*"
"}
      muntin_handle "$muntin_next"
    done
  done
}
