#!/bin/sh
# Rooms include lower floors only, and themselves. The floors stand in doc/architecture.md, in the
# first fenced block behind the heading "Floors".
set -eu
cd "${top_srcdir:-$(dirname "$0")/..}"

find sim topologies workloads traces calibrate plots -name '*.[ch]' 2>/dev/null | LC_ALL=C sort |
    xargs awk '
    FNR == 1 && FILENAME == "doc/architecture.md" { in_doc = 1 }
    FNR == 1 && FILENAME != "doc/architecture.md" { in_doc = 0; room = room_of(FILENAME) }
    in_doc && /^## Floors/ { wanted = 1 }
    in_doc && /^```/ && wanted { fences++; if (fences == 2) wanted = 0; next }
    in_doc && wanted && fences == 1 { for (i = 2; i <= NF; i++) floor[$i] = $1 + 0; next }
    in_doc { next }
    room == "" && FNR == 1 { print FILENAME ": its room has no floor in doc/architecture.md"; bad++ }
    room != "" && /^#include "/ {
        split($0, part, "\"")
        header = part[2]
        if (header == "config.h") next
        n_includes++
        other = room_of(header)
        if (other == "") {
            print FILENAME ":" FNR ": includes " header ", which is in no room"; bad++
        } else if (other != room && floor[other] >= floor[room]) {
            print FILENAME ":" FNR ": " room " (floor " floor[room] ") includes " header " (floor " \
                floor[other] ")"
            bad++
        }
    }
    function room_of(path,  room, best) {
        best = ""
        for (room in floor)
            if (index(path, room "/") == 1 && length(room) > length(best)) best = room
        return best
    }
    END {
        for (room in floor) n_rooms++
        if (n_rooms < 20) { print "doc/architecture.md: only " n_rooms + 0 " rooms found"; bad++ }
        if (n_includes == 0) { print "no include was checked"; bad++ }
        if (bad) { print bad " breaches of the floors"; exit 1 }
        print n_includes " includes between " n_rooms " rooms keep to the floors"
    }' doc/architecture.md
