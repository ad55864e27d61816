#!/bin/sh
# The shipped errors that intervals rest on are those of this program: validated again, the mean of
# each regime moves by less than 2 % on average. Run in the build folder; takes a minute.
set -u
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
shipped=$top_srcdir/workloads/residuals/steps.csv
./orrery validate --residuals "$out/steps.csv" >/dev/null || exit 1
# the errors stand behind the last comma, the regime before it
means() {
    sed 1d "$1" | awk '{
        at = match($0, /,[^,]*$/)
        n = split(substr($0, at + 1), x, " ")
        sum = 0
        for (i = 1; i <= n; i++) sum += x[i]
        print substr($0, 1, at - 1) "\t" sum / n
    }' | sort
}
means "$shipped" >"$out/old"
means "$out/steps.csv" >"$out/new"
awk -F'\t' 'NR == FNR { old[$1] = $2; n++; next }
    !($1 in old) { print "not shipped: " $1; bad++; next }
    { d = $2 - old[$1]; sum += d < 0 ? -d : d; seen++ }
    END {
        if (seen == 0) exit 1
        printf "%d of %d regimes, mean move %.4f\n", seen, n, sum / seen
        if (sum / seen > 0.02 || bad > 0 || seen < n) {
            print "orrery validate --residuals workloads/residuals/steps.csv would do"
            exit 1
        }
    }' "$out/old" "$out/new"
