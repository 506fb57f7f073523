. tests/lib/check.sh
need lib/export.sh

is "only the head" "date,amount,category,note" "$(ledger export)"

printf '2026-03-02\t405\tfood\tCoffee, and cake\n2026-03-01\t3000\ttravel\tThe "slow" train\n2026-03-03\t100\tfood\t\n' >"$LEDGER_FILE"
is "quotes where they are needed" 'date,amount,category,note
2026-03-01,30.00,travel,"The ""slow"" train"
2026-03-02,4.05,food,"Coffee, and cake"
2026-03-03,1.00,food,' "$(ledger export)"
finish
