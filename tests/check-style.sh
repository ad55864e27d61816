#!/bin/sh
# What of STYLE can be checked cheaply: lengths, pairs of x.c and x.h, exits, locales, leftovers,
# machine paths, sources of data files. Prints every breach.
set -eu
cd "${top_srcdir:-$(dirname "$0")/..}"
bad=0

# Prints what it reads, a breach a line, and counts it.
breach() {
    while IFS= read -r line; do
        echo "$line"
        echo x >>"$count"
    done
}
count=$(mktemp)
trap 'rm -f "$count"' EXIT

rooms="sim topologies workloads traces calibrate plots"
sources=$(find $rooms -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
all_code=$(find $rooms tests -name '*.[ch]' -o -path 'tests/*.sh' 2>/dev/null | LC_ALL=C sort)
data=$(find topologies workloads calibrate -name '*.ini' 2>/dev/null | LC_ALL=C sort)
[ -n "$sources" ] || { echo "no source files found"; exit 1; }

# Files of 500 lines, functions of 60 lines.
awk '
    FNR == 1 { start = 0 }
    FNR == 501 && FILENAME !~ /^tests\// { print FILENAME ": more than 500 lines" }
    /^[A-Za-z_].*\(/ && !/;[ \t]*$/ && start == 0 { start = FNR; name = $0 }
    /^[^ \t{}#\/].*;[ \t]*$/ { start = 0 }
    /^{/ && start == 0 { start = FNR; name = "a block" }
    /^}/ {
        if (start && FNR - start + 1 > 60) {
            sub(/\(.*/, "", name)
            print FILENAME ":" start ": " name " has " FNR - start + 1 " lines; at most 60"
        }
        start = 0
    }' $sources $all_code | LC_ALL=C sort -u | breach

# x.c has x.h, or exports one descriptor, or is a part of what a header of its folder declares.
for file in $sources; do
    case $file in *.h | sim/cli/*) continue ;; esac
    [ -f "${file%.c}.h" ] && first=${file%.c}.h || first=
    seen=$(awk -F'"' '/^#include "/ && $2 != "config.h" { print $2; exit }' "$file")
    if [ -n "$first" ]; then
        [ "$seen" = "$first" ] || echo "$file: its own header is not its first include"
    elif ! grep -q "^#include \"$(dirname "$file")/" "$file" && ! grep -q '^int main(' "$file"; then
        echo "$file: has no header and includes none of its folder"
    fi
done | breach

# Leftovers, exits, locales, machine paths.
grep -nE 'TODO|FIXME|XXX' $sources $data | breach
grep -nE '(^|[^_a-zA-Z])(exit|_exit|setlocale)\(' $sources |
    grep -vE '^(sim/cli/main\.c|calibrate/[a-z_]*main[a-z_]*\.c):' | breach
grep -nE '[" (=](/work|/root|/tmp|/home|/usr/local)/' $sources $data | breach
grep -nE '(^|[^a-z_])(atof|strtod|strtof|sscanf)\(' $sources | breach
# A host program may have set a locale: numbers with a point are written with g_ascii_formatd.
awk '{ n = split($0, part, "\""); texts = ""
      for (i = 2; i <= n; i += 2) texts = texts part[i] "\n"
      gsub(/%%|%\.0f/, "", texts) }
    texts ~ /%[-+ 0#]*[0-9*]*(\.[0-9*]+)?[feEgG]/ &&
    $0 !~ /g_ascii_formatd|format|put_number|put_list/ && before !~ /g_ascii_formatd/ {
        print FILENAME ":" FNR ": a number that follows the locale: " $0 }
    { before = $0 }' $(echo "$sources" | grep -v '^calibrate/fit_') | breach

# Data files: a source each, and in the list of what is installed.
for file in $data; do
    grep -qE '^source *= *[^ ]' "$file" || echo "$file: has no source"
    grep -qF "$file" Makefile.am || echo "$file: is not in Makefile.am, so it is not installed"
done | breach

for file in doc/*.md doc/*/*.md; do
    grep -qF "$file" Makefile.am || echo "$file: is not in Makefile.am, so it is not installed"
done | breach

bad=$(wc -l <"$count")
[ "$bad" -eq 0 ] || { echo "$bad breaches of the style"; exit 1; }
echo "style holds in $(echo "$sources" | wc -l) source files and $(echo "$data" | grep -c .) data files"
