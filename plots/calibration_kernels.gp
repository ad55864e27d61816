# What a calibration says of each measured kernel, over what was measured, a colour a series.
# Run it in its folder: gnuplot calibration_kernels.gp
# Reads calibration_kernels.csv: series, work (FLOPs, or bytes), measured and fitted in us, their
# ratio; blocks by series, two empty lines apart. Writes PNG and SVG.
if (!exists("out")) out = 'calibration_kernels'
load 'style.gp'
load 'names.gp'
table = 'calibration_kernels.csv'
stats table using 3:5 name 'all' nooutput
blocks = int(all_blocks)
array colours[8] = [blue, orange, green, vermilion, purple, sky, grey, yellow]
array points[4] = [7, 5, 9, 13]

set title sprintf("Kernels of %s: fitted over measured time", machine)
set logscale x
set format x '%.0s %cs'
set xlabel 'measured time'
set ylabel 'fitted over measured'
set yrange [0.5 : 1.5]
name(i) = system(sprintf("awk -F, -v want=%d 'BEGIN { b = 0; empty = 0 } /^$/ { empty++; next } \
{ if (empty >= 2) b++; empty = 0; if (b == want && $1 != \"series\") { print $1; exit } }' %s", i, table))
set terminal @png_terminal
set output out . '.png'
plot 1 with lines lc rgb '#000000' lw 1.5 title 'exact', \
     1.1 with lines lc rgb '#888888' dt 2 title '10 % off', 1 / 1.1 with lines lc rgb '#888888' dt 2 notitle, \
     for [i = 0 : blocks - 1] table index i using ($3 / 1e6):5 with points pt points[(i / 8) % 4 + 1] ps 0.7 \
     lc rgb colours[i % 8 + 1] title name(i)
set terminal @svg_terminal
set output out . '.svg'
replot
set output
