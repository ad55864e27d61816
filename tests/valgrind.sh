#!/bin/sh
# Some test programs under valgrind: no leak, no read of what was never written.
set -u
command -v valgrind >/dev/null || exit 77
grep -q 'fsanitize' config.log && grep -q '^SAN_CFLAGS=.*fsanitize' config.log && exit 77
failed=0
for test in test_base_units test_io_csv test_io_file test_io_json test_program_builder \
    test_schedule_orders test_cluster; do
    [ -x "./$test" ] || continue
    echo "== $test"
    G_SLICE=always-malloc ./libtool --mode=execute valgrind -q --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite --child-silent-after-fork=yes "./$test" || failed=1
done
exit $failed
