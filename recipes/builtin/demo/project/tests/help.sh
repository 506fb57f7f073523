. tests/lib/check.sh
need lib/help.sh

text=$(ledger help)
is "help is what comes without a command" "$text" "$(ledger)"

for command in add list sum export help; do
    line=$(printf '%s\n' "$text" | grep "^ *ledger $command")
    is "one line about $command" 1 "$(printf '%s\n' "$line" | grep -c .)"
    is "README.md has the line about $command" 1 "$(grep -c -F -e "$line" README.md)"
done
is "the data file is named" 1 "$(printf '%s\n' "$text" | grep -c LEDGER_FILE)"
is "README.md is no longer a promise" 0 "$(grep -c "Not written yet" README.md)"
finish
