. tests/lib/check.sh
need lib/sum.sh

is "nothing yet" "total                  0.00" "$(ledger sum)"

printf '2026-03-01\t10\tfood\tA\n2026-03-02\t20\tfood\tB\n2026-03-02\t3000\ttravel\tC\n' >"$LEDGER_FILE"
is "by category, in order, then all" "\
food                   0.30
travel                30.00
total                 30.30" "$(ledger sum)"

printf '2026-03-03\t123456789\thouse\tD\n' >>"$LEDGER_FILE"
is "a big amount is not rounded" "\
food                   0.30
house            1234567.89
travel                30.00
total            1234598.19" "$(ledger sum)"
finish
