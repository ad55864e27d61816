#!/bin/bash
# A plot that is ended while gnuplot draws leaves no parts of pictures behind.
set -eu
orrery=$PWD/orrery
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/gnuplot" <<'FAKE'
#!/bin/bash
eval "${2// /}" # out='.NAME.part'
echo half >"$out.png"
echo $$ >../drawing
exec sleep 20
FAKE
chmod +x "$work/gnuplot"
PATH=$work:$PATH "$orrery" plot tiny -o "$work/plots" 2>"$work/err" &
pid=$!
for _ in $(seq 300); do
    test -s "$work/drawing" && break
    sleep 0.05
done
kill -TERM "$pid" "$(cat "$work/drawing")" # as a terminal does to all of its group
status=0
wait "$pid" || status=$?
test "$status" -eq 143 || { echo "status $status: $(cat "$work/err")" >&2; exit 1; }
if ls -A "$work/plots" | grep part >&2; then
    echo "parts of pictures are left" >&2
    exit 1
fi
test -s "$work/plots/timeline.gp"
