# What the tests share. A test is run in the project's root and begins with
#     . tests/lib/check.sh
# and ends with a call of finish.
set -u

failed=0
box=$(mktemp -d "${TMPDIR:-/tmp}/ledger.XXXXXX") || exit 1
trap 'rm -rf "$box"' EXIT
trap 'exit 1' HUP INT TERM
LEDGER_FILE=$box/ledger.txt
export LEDGER_FILE

ledger() {
    sh bin/ledger "$@"
}

# need FILE: the test makes no sense before FILE is there.
need() {
    [ -f "$1" ] && return
    echo "FAIL $1 is missing"
    exit 1
}

# is WHAT WANT GOT: both texts must be equal.
is() {
    [ "$2" = "$3" ] && return
    failed=1
    echo "FAIL $1"
    printf '%s\n' "$2" | sed 's/^/  want |/'
    printf '%s\n' "$3" | sed 's/^/  got  |/'
}

# refuses WHAT COMMAND...: the command must fail and say why on stderr.
refuses() {
    what=$1
    shift
    if "$@" >"$box/out" 2>"$box/err"; then
        failed=1
        echo "FAIL $what: accepted"
    elif [ ! -s "$box/err" ]; then
        failed=1
        echo "FAIL $what: refused without a word"
    fi
}

finish() {
    [ "$failed" = 0 ] && echo ok
    exit "$failed"
}
