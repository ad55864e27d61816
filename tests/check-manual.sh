#!/bin/bash
# The manual page is what the tables of commands and options make, and the completion knows each
# command, kind and option.
set -eu
top=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
orrery=$PWD/orrery
if ! "$orrery" help --man | diff "$top/doc/orrery.1" - >&2; then
    echo "doc/orrery.1 is out of step: orrery help --man >doc/orrery.1" >&2
    exit 1
fi
. "$top/doc/completion/orrery"
complete_words() {
    COMP_WORDS=("$orrery" "$@")
    COMP_CWORD=$#
    _orrery
    printf '%s\n' "${COMPREPLY[@]}"
}
bad=0
expect() { # WORD in the completion of the rest
    word=$1
    shift
    complete_words "$@" | grep -qx -- "$word" || { echo "no '$word' after: $*" >&2; bad=1; }
}
for command in step run trace plot show list import validate check compare calibrate; do
    expect "$command" ""
    for option in $("$orrery" "$command" --help | sed -n 's/^  \(-[a-z], \|    \)--\([a-z-]*\).*/--\2/p'); do
        expect "$option" "$command" --
    done
done
expect llama3-405b-16k step ""
expect collective show ""
expect chrome trace tiny --format ""
expect 1f1b show schedule ""
expect h100-ib check ""
expect two-racks-a-day run --shared ""
expect tiny run ""
# each kind of list whose things show knows can be completed by name
for kind in gpu node cluster model framework job schedule run failure price share; do
    name=$("$orrery" list "$kind"s --csv 2>/dev/null | sed -n '2s/^[^,]*,\([^,]*\),.*/\1/p')
    expect "${name:-nothing-in-$kind}" show "$kind" ""
done
test -z "$(complete_words run tiny --events "")" || { echo "a file is completed as a name" >&2; bad=1; }
exit $bad
