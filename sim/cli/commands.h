/* The commands of the program; the table is in main.c. */
#ifndef ORR_CLI_COMMANDS_H
#define ORR_CLI_COMMANDS_H

#include "sim/cli/command.h"

extern const OrrCommand orr_cmd_step;
extern const OrrCommand orr_cmd_run;
extern const OrrCommand orr_cmd_show;
extern const OrrCommand orr_cmd_list;
extern const OrrCommand orr_cmd_import;
extern const OrrCommand orr_cmd_trace;
extern const OrrCommand orr_cmd_plot;
extern const OrrCommand orr_cmd_validate;
extern const OrrCommand orr_cmd_check;
extern const OrrCommand orr_cmd_compare;
extern const OrrCommand orr_cmd_calibrate;

#endif
