#!/bin/sh
# The installed program finds its data files, and a program can be built against the library.
# Arguments: the folders of programs, of pkg-config files and of libraries, and the C compiler.
set -eu
bin=$1 pkgconfig=$2 lib=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset ORRERY_DATA top_srcdir top_builddir || true
cd "$work"

"$bin/orrery" --version
"$bin/orrery" step tiny --json -o tiny.json
grep -q '"schema": "orrery.step/1"' tiny.json
"$bin/orrery" list gpus >gpus
grep -q h100 gpus

cat >host.c <<'EOF'
#include <orrery.h>
#include <stdio.h>

int main(void)
{
    OrreryError *error = NULL;
    OrreryStep *step = orrery_step_run("tiny", NULL, &error);
    if (!step) {
        fprintf(stderr, "%s\n", error->message);
        orrery_error_free(error);
        return 1;
    }
    printf("%lld ns on %u GPUs\n", (long long)orrery_step_time_ns(step), orrery_step_n_gpus(step));
    orrery_step_free(step);
    return 0;
}
EOF
PKG_CONFIG_PATH=$pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
$cc -std=c11 -Wall -Wextra -Werror host.c -o host $(pkg-config --cflags --libs orrery)
LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ./host
