#!/bin/sh
# The tables that extension points are: every row of `orrery list` has a name of its own, a sentence
# and a source, every data file is listed, and `orrery show` knows what is listed.
set -eu
top=${top_srcdir:-$(dirname "$0")/..}
orrery=${top_builddir:-.}/orrery
out=$(mktemp)
trap 'rm -f "$out"' EXIT
bad=0
rows=0
ORRERY_DATA=$top
export ORRERY_DATA

for kind in $($orrery list | awk '/^  [a-z]/ { print $1 }'); do
    $orrery list "$kind" --json >"$out"
    # one row a line: {"name": "...", "summary": "...", "source": "..."}
    n=$(grep -c '"name": "' "$out") || n=0
    rows=$((rows + n))
    [ "$n" -gt 0 ] || { echo "$kind: nothing is listed"; bad=1; }
    if grep -nE '"(name|summary|source)": ("")|null' "$out"; then
        echo "$kind: rows above lack a name, a sentence or a source"
        bad=1
    fi
    twice=$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' "$out" | sort | uniq -d)
    [ -z "$twice" ] || { echo "$kind: listed twice: $twice"; bad=1; }
    for folder in topologies workloads; do
        [ -d "$top/$folder/$kind" ] || continue
        files=$(find "$top/$folder/$kind" -name '*.ini' | wc -l)
        [ "$files" -eq "$n" ] || { echo "$kind: $files files, but $n listed"; bad=1; }
        for name in $(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' "$out"); do
            $orrery show "${kind%s}" "$name" >/dev/null || { echo "show ${kind%s} $name failed"; bad=1; }
        done
    done
done
[ "$rows" -ge 100 ] || { echo "only $rows rows were seen"; bad=1; }
[ "$bad" -eq 0 ] || exit 1
echo "$rows rows of tables are whole"
