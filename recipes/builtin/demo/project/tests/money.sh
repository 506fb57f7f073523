. tests/lib/check.sh
need lib/money.sh
. ./lib/money.sh

is "two digits" 1250 "$(money_parse 12.50)"
is "one digit" 1250 "$(money_parse 12.5)"
is "no point" 1200 "$(money_parse 12)"
is "cents only" 5 "$(money_parse 0.05)"
is "nothing" 0 "$(money_parse 0)"
is "not octal" 809 "$(money_parse 08.09)"
is "a lot" 123456789 "$(money_parse 1234567.89)"

for bad in "" abc -5 1.234 1,50 1.2.3 .50 5. "1 2" 9999999999999999; do
    refuses "\"$bad\"" money_parse "$bad"
done

is "formats" 12.50 "$(money_format 1250)"
is "formats cents" 0.05 "$(money_format 5)"
is "formats a lot" 1234567.89 "$(money_format 123456789)"
finish
