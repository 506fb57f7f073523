. tests/lib/check.sh
need lib/add.sh
tab=$(printf '\t')

is "says what it did" "added 12.50 to food" "$(ledger add -d 2026-03-01 12.5 food Lunch with Kim)"
is "stores it" "2026-03-01${tab}1250${tab}food${tab}Lunch with Kim" "$(cat "$LEDGER_FILE")"

ledger add 3 travel >"$box/out"
is "is of today" "$(date +%Y-%m-%d)${tab}300${tab}travel$tab" "$(tail -n 1 "$LEDGER_FILE")"

refuses "no amount" ledger add
refuses "no category" ledger add 5
refuses "a bad amount" ledger add 5.123 food
refuses "a bad category" ledger add 5 "Fast Food"
refuses "a bad date" ledger add -d 1.3.2026 5 food
refuses "a date and no more" ledger add -d
is "refused input is not stored" 2 "$(grep -c . "$LEDGER_FILE")"
finish
