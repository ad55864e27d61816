#!/bin/sh
# Runs the slow tests one after another, in the build folder. 77 is a skip.
set -u
failed=0
for test; do
    case $test in */*) command=$test ;; *) command=./$test ;; esac
    case $test in *.sh) command="sh $command" ;; esac
    log=$(basename "$test").long.log
    $command >"$log" 2>&1
    case $? in
    0) echo "PASS: $test" ;;
    77) echo "SKIP: $test" ;;
    *)
        echo "FAIL: $test (see $log)"
        tail -n 20 "$log"
        failed=$((failed + 1))
        ;;
    esac
done
[ "$failed" -eq 0 ]
