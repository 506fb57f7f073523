. tests/lib/check.sh
need lib/list.sh

is "nothing yet" "" "$(ledger list)"

printf '2026-03-02\t450\tfood\tCoffee\n2026-03-01\t3000\ttravel\tTrain to Bern\n' >"$LEDGER_FILE"
is "all, oldest first" "\
2026-03-01       30.00  travel      Train to Bern
2026-03-02        4.50  food        Coffee" "$(ledger list)"
is "one category" "\
2026-03-02        4.50  food        Coffee" "$(ledger list food)"
is "an unknown category" "" "$(ledger list rent)"
finish
