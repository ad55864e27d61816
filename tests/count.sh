#!/bin/sh
# Counts the test cases of the last `make check` in a build folder: cmocka's own cases where a test
# is a cmocka program, else one a test. Prints "N passed, N failed"; fails unless all passed.
set -eu
build=${1:?the build folder}
cd "$build"
for log in $(make -s --no-print-directory print-test-logs); do
    trs=${log%.log}.trs
    result=FAIL
    [ -f "$trs" ] && result=$(sed -n 's/^:global-test-result: //p' "$trs")
    [ -f "$log" ] || log=/dev/null
    awk -v result="$result" '
        /^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
        /^\[  FAILED  \] [0-9]+ test/ { failed += $4 }
        END {
            if (result == "SKIP") passed += 0
            else if (result != "PASS" && failed == 0) failed = 1
            else if (passed + failed == 0) passed = 1
            print passed + 0, failed + 0
        }' "$log"
done | awk '{ passed += $1; failed += $2 }
    END { print passed + 0 " passed, " failed + 0 " failed"; exit !(passed > 0 && failed == 0) }'
