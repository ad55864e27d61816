# Bus bandwidth by size: what was measured as points, what the calibration says as lines, a colour a
# table. Rows that the fit did not see are open points.
# Run it in its folder: gnuplot calibration_collectives.gp
# Reads calibration_collectives.csv: series, size, measured and fitted us, measured and fitted GB/s,
# whether it was fitted; blocks by table, two empty lines apart. Writes PNG and SVG.
if (!exists("out")) out = 'calibration_collectives'
load 'style.gp'
load 'names.gp'
table = 'calibration_collectives.csv'
stats table using 2:5 name 'all' nooutput
blocks = int(all_blocks)
array colours[8] = [blue, orange, green, vermilion, purple, sky, grey, yellow]
array points[4] = [7, 5, 9, 13]
array hollow[4] = [6, 4, 8, 12]

set title sprintf("Collectives of %s: measured (points) and fitted (lines)", machine)
set logscale x 2
set logscale y
set format x '%.0b%BB'
set key font ',9' spacing 1 maxrows 40
set yrange [all_max_y / 3000 : *]
set xlabel 'size'
set ylabel 'bus bandwidth, GB/s'
name(i) = system(sprintf("awk -F, -v want=%d 'BEGIN { b = 0; empty = 0 } /^$/ { empty++; next } \
{ if (empty >= 2) b++; empty = 0; if (b == want && $1 != \"series\") { print $1; exit } }' %s", i, table))
used(i, x) = stringcolumn(7) eq 'fitted' ? x : NaN
held(i, x) = stringcolumn(7) eq 'held out' ? x : NaN
set terminal @png_terminal
set output out . '.png'
plot for [i = 0 : blocks - 1] table index i using 2:(used(i, $5)) with points \
     pt points[(i / 8) % 4 + 1] ps 0.8 lc rgb colours[i % 8 + 1] notitle, \
     for [i = 0 : blocks - 1] table index i using 2:(held(i, $5)) with points \
     pt hollow[(i / 8) % 4 + 1] ps 1 lc rgb colours[i % 8 + 1] notitle, \
     for [i = 0 : blocks - 1] table index i using 2:6 smooth unique with lines lw 1.5 \
     lc rgb colours[i % 8 + 1] title name(i)
set terminal @svg_terminal
set output out . '.svg'
replot
set output
