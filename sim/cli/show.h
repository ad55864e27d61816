/* The kinds of `orrery show`: one function each, the table is in cmd_show.c. */
#ifndef ORR_CLI_SHOW_H
#define ORR_CLI_SHOW_H

#include "sim/cli/command.h"

/* Each writes what there is to say about the second argument of @cli. */
bool orr_cli_show_cluster(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_node(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_gpu(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_model(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_framework(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_job(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_collective(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_schedule(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_shapes(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_program(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_run(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_failure(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_price(const OrrCli *cli, OrrOut *out, GError **error);
bool orr_cli_show_share(const OrrCli *cli, OrrOut *out, GError **error);

/* "  name            value" with a number of its dimension, or a text. */
void orr_cli_line(OrrOut *out, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
#endif
