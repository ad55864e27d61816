# Time account: where each nanosecond of the compute stream goes, mean and by stage.
# Run it in its folder: gnuplot time_account.gp
# Reads time_account.csv: stage, then a column a group of owners (ms). Writes PNG and SVG.
if (!exists("out")) out = 'time_account'
load 'style.gp'
load 'names.gp'
table = 'time_account.csv'

stats table using 2 name 'bar' nooutput
bars = bar_records
columns = 14
# Cool colours work, warm ones wait; in the order of the columns.
array colours[13] = [blue, sky, lighter(sky, 0.55), lighter(blue, 0.75), purple, 0xffffff, vermilion, \
    orange, lighter(vermilion, 0.5), yellow, grey, lighter(grey, 0.3), lighter(grey, 0.6)]

set title sprintf("%s: time account of the compute stream, step %s", job, step_time)
set ylabel 'share of the step (%)'
set yrange [0 : 100]
set xlabel (bars > 1 ? 'stage' : '')
set style data histograms
set style histogram rowstacked
set boxwidth 0.78
set style fill solid 1.0 border rgb '#444444'
set key outside right top vertical reverse Left invert
set xtics scale 0
set terminal @png_terminal
set output out . '.png'
plot for [i = 2 : columns] table using (column(i) / step_ms * 100):xtic(1) \
     lc rgb colours[i - 1] lw 0.4 title columnheader(i)
set terminal @svg_terminal
set output out . '.svg'
replot
set output
