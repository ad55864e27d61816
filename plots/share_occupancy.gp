# What the GPUs of a shared cluster do over time, stacked.
# Run it in its folder: gnuplot share_occupancy.gp
# Reads share_occupancy.csv: time_h and a column of GPUs an owner. Writes PNG and SVG.
if (!exists("out")) out = 'share_occupancy'
load 'style.gp'
load 'names.gp'
table = 'share_occupancy.csv'

set title sprintf("%s: what %.0f GPUs do, policy %s%s", share, n_gpus, policy, \
                  n_seeds > 1 ? sprintf(", seed %.0f", seed) : "")
set xlabel 'time (hours)'
set ylabel 'GPUs'
set xrange [0 : *] noextend
set yrange [0 : n_gpus]
set key outside right top vertical invert
# Columns: 2 useful, 3 spread, 4 rework, 5 start, 6 checkpoint, 7 detect, 8 down, 9 away,
# 10 idle_empty, 11 idle_short, 12 idle_fragmented
running(x) = column(2) + column(3) + column(4)
stands(x) = running(0) + column(5) + column(6) + column(7)
gone(x) = stands(0) + column(8) + column(9)
fragments(x) = gone(0) + column(12)
short(x) = fragments(0) + column(11)
set style fill solid 1 noborder
set terminal @png_terminal
set output out . '.png'
plot table using 1:(running(0)) with filledcurves x1 lc rgb blue title 'at work', \
     table using 1:(running(0)):(stands(0)) with filledcurves lc rgb orange title 'starting, saving, hung', \
     table using 1:(stands(0)):(gone(0)) with filledcurves lc rgb vermilion title 'in repair, taken back', \
     table using 1:(gone(0)):(fragments(0)) with filledcurves lc rgb purple title 'idle: fragments', \
     table using 1:(fragments(0)):(short(0)) with filledcurves lc rgb grey title 'idle: too few for the first', \
     table using 1:(short(0)):(n_gpus) with filledcurves lc rgb lighter(grey, 0.7) title 'idle: nothing waits'
set terminal @svg_terminal
set output out . '.svg'
replot
set output
