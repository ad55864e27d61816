/* Closed forms of checkpoints and failures: what the engine is tested against, and what interval
 * policies use. Times in one unit of the caller's choice. */
#ifndef ORR_JOB_FORMULA_H
#define ORR_JOB_FORMULA_H

/* Young 1974: work between two checkpoints that loses least, sqrt(2 delta M). */
double orr_young_interval(double write, double mtbf);
/* Daly 2006, equation 37: higher order; M itself where the write takes 2 M or more. */
double orr_daly_interval(double write, double mtbf);
/* First order share that is lost: write / tau + tau / (2 M). */
double orr_young_loss_frac(double tau, double write, double mtbf);
/* Daly 2006, equation 20: expected wall time over useful time when failures are exponential and may
 * strike in writes and restarts too: M e^(R/M) (e^((tau + delta)/M) - 1) / tau. */
double orr_daly_slowdown(double tau, double write, double restart, double mtbf);
/* Kokolis et al. 2024 (arXiv:2410.21680), section III: expected share of effective training time,
 * (1 - N r_f (u0 + tau/2)) / (1 + w/tau). @rate is N r_f. */
double orr_kokolis_ettr_frac(double tau, double write, double restart, double rate);
/* Mean time to failure of so many nodes at a rate per 1,000 node-days, in hours. */
double orr_mttf_hours(double n_nodes, double per_1000_node_days);

#endif
