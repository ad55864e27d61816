#include "sim/job/formula.h"

#include <math.h>

double orr_young_interval(double write, double mtbf) {
    return sqrt(2 * write * mtbf);
}

double orr_daly_interval(double write, double mtbf) {
    if (write >= 2 * mtbf)
        return mtbf;
    double x = write / (2 * mtbf);
    return sqrt(2 * write * mtbf) * (1 + sqrt(x) / 3 + x / 9) - write;
}

double orr_young_loss_frac(double tau, double write, double mtbf) {
    return write / tau + tau / (2 * mtbf);
}

double orr_daly_slowdown(double tau, double write, double restart, double mtbf) {
    return mtbf * exp(restart / mtbf) * expm1((tau + write) / mtbf) / tau;
}

double orr_kokolis_ettr_frac(double tau, double write, double restart, double rate) {
    return (1 - rate * (restart + tau / 2)) / (1 + write / tau);
}

double orr_mttf_hours(double n_nodes, double per_1000_node_days) {
    return 24 * 1000 / (n_nodes * per_1000_node_days);
}
