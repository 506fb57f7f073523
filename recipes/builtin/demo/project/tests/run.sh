#!/bin/sh
# Runs every test. Exits 0 only if all of them pass.
cd "$(dirname "$0")/.." || exit 1
passed=0
failed=0
for file in tests/*.sh; do
    [ "$file" = tests/run.sh ] && continue
    if out=$(sh "$file" 2>&1); then
        passed=$((passed + 1))
        echo "ok   $file"
    else
        failed=$((failed + 1))
        echo "FAIL $file"
        printf '%s\n' "$out" | sed 's/^/     /'
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
