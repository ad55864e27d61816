/* Pictures by gnuplot: a table, a script and the style lie side by side in a folder, where the
 * script can be edited and run again; the pictures come beside them. */
#ifndef PLOTS_PLOT_H
#define PLOTS_PLOT_H

#include "sim/base/error.h"

/* A plot: its script is NAME.gp of the data folder "plots", its table NAME.csv. */
typedef struct {
    const char *name, *summary;
} OrrPlot;
extern const OrrPlot orr_plots[];       /* of a step; ends with a name of NULL */
extern const OrrPlot orr_run_plots[];   /* of a whole run; the same */
extern const OrrPlot orr_share_plots[]; /* of a shared cluster */
/* NULL if there is none of that name. */
const OrrPlot *orr_plot_find(const char *name);

/* Titles and scalars that scripts use, as names.gp: texts are quoted, numbers are not. */
typedef struct {
    const char *name, *text; /* text NULL: the number */
    double number;
} OrrPlotName;
/* Writes @folder/names.gp. */
bool orr_plot_names(const char *folder, const OrrPlotName *names, guint n, GError **error);

/* Copies the script of @plot and the style to @folder. */
bool orr_plot_script(const OrrPlot *plot, const char *folder, GError **error);
/**
 * orr_plot_draw: copies the script of @plot and the style to @folder, where NAME.csv and names.gp
 * are, and draws NAME.png and NAME.svg there, each whole or not at all. Errors (ORR_ERROR_ENV):
 * gnuplot is missing or fails (its words are in the message; table and script stay), the folder
 * cannot be written.
 */
bool orr_plot_draw(const OrrPlot *plot, const char *folder, GError **error);

#endif
