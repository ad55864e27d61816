# Checkpoint interval against goodput: the seeds, and Daly's expectation of failures and saves alone.
# Run it in its folder: gnuplot run_interval.gp
# Reads run_interval.csv: interval_min, goodput_percent, daly_percent. Writes PNG and SVG.
if (!exists("out")) out = 'run_interval'
load 'style.gp'
load 'names.gp'
table = 'run_interval.csv'

set title sprintf("%s: goodput by checkpoint interval (this run: %.4g min)", run, interval_min)
set xlabel 'training between two checkpoints (minutes, logarithmic)'
set ylabel 'goodput (%)'
set logscale x 2
set key inside left bottom
set arrow 1 from first interval_min, graph 0 to first interval_min, graph 1 nohead lc rgb grey dt 2 lw 1.5
set terminal @png_terminal
set output out . '.png'
plot table using 1:3 with lines lc rgb orange lw 2 title 'Daly 2006: failures and saves alone', \
     table using 1:2 with linespoints lc rgb blue lw 2 pt 7 ps 0.9 title 'simulated, mean of the seeds'
set terminal @svg_terminal
set output out . '.svg'
replot
set output
