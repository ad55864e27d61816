/* orrery-calibrate: measures this machine. The program and the simulator meet in CSV only. */
#include "config.h"

#include "calibrate/devices.h"
#include "calibrate/flow.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

/* Interrupts wait until a case is over and its row is written; asking takes the one that waits. */
static bool is_interrupted(void *data) {
    const struct timespec at_once = {0, 0};
    return sigtimedwait(data, NULL, &at_once) > 0;
}

static bool calibrate(const OrrCalibrateOptions *o, OrrRanks *ranks, sigset_t *signals,
                      GError **error) {
    GError *mine = NULL;
    OrrDevice *d = orr_device_open(o->device, ranks, &mine);
    bool is_good = orr_ranks_agree(ranks, mine, error) &&
                   orr_calibrate(o, d, ranks, is_interrupted, signals, error);
    if (d)
        d->kind->close(d);
    return is_good;
}

static void show_version(void) {
    g_autofree char *versions = orr_device_versions();
    printf("orrery-calibrate %s\n%s\n", PACKAGE_VERSION, versions);
}

static bool run(int argc, char **argv, OrrCalibrateOptions *o, bool *speaks, GError **error) {
    bool is_answered;
    if (!orr_calibrate_options(argv, o, &is_answered, error) || is_answered)
        return is_answered;
    if (o->shows_version) {
        show_version();
        return true;
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* before any thread starts, so that all inherit it */
    OrrRanks *ranks = o->has_mpi ? orr_ranks_mpi(&argc, &argv, error) : orr_ranks_alone();
    if (!ranks)
        return false;
    *speaks = ranks->rank == 0;
    bool is_good = calibrate(o, ranks, &signals, error);
    ranks->close(ranks);
    return is_good;
}

int main(int argc, char **argv) {
    g_autoptr(GError) error = NULL;
    OrrCalibrateOptions o;
    bool speaks = true;
    int status = run(argc, argv, &o, &speaks, &error) ? 0 : error->code;
    if (error && speaks)
        fprintf(stderr, "orrery-calibrate: %s\n", error->message);
    orr_calibrate_options_clear(&o);
    return status;
}
