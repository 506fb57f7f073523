. tests/lib/check.sh
need lib/store.sh
. ./lib/store.sh
tab=$(printf '\t')

is "no file yet" "" "$(store_read)"

store_append 2026-03-02 450 food "Coffee, and cake"
store_append 2026-03-01 3000 travel ""
echo "# a comment of a person" >>"$LEDGER_FILE"
echo >>"$LEDGER_FILE"
store_append 2026-03-03 100 food "100% \"pure\" \\n water"

is "oldest first, comments skipped" "2026-03-01${tab}3000${tab}travel$tab
2026-03-02${tab}450${tab}food${tab}Coffee, and cake
2026-03-03${tab}100${tab}food${tab}100% \"pure\" \\n water" "$(store_read)"

before=$(cat "$LEDGER_FILE")
refuses "a tab" store_append 2026-03-04 100 food "a${tab}b"
refuses "a line break" store_append 2026-03-04 100 food "a
b"
is "refused lines leave no trace" "$before" "$(cat "$LEDGER_FILE")"
finish
