# Memory by stage, stacked by kind, against what the GPU has.
# Run it in its folder: gnuplot memory.gp
# Reads memory.csv: stage, capacity, then a column a kind (GiB). Writes PNG and SVG.
if (!exists("out")) out = 'memory'
load 'style.gp'
load 'names.gp'
table = 'memory.csv'

stats table using 2 name 'capacity' nooutput
stats table using 3 name 'peak' nooutput
array colours[8] = [blue, sky, green, orange, vermilion, purple, grey, lighter(grey, 0.5)]
top = peak_max > capacity_max ? peak_max : capacity_max

set title sprintf("%s: memory at the peak of each stage, %s", job, verdict)
set ylabel 'GiB'
set xlabel 'stage'
set yrange [0 : top * 1.08]
set style data histograms
set style histogram rowstacked
set boxwidth 0.78
set style fill solid 1.0 border rgb '#444444'
set key outside right top vertical reverse Left invert
set xtics scale 0
set arrow 1 from graph 0, first capacity_max to graph 1, first capacity_max nohead lc rgb '#000000' lw 2 dt 2
set label 1 sprintf('capacity %.1f GiB', capacity_max) at graph 0.005, first capacity_max offset 0, 0.6 left
set terminal @png_terminal
set output out . '.png'
plot for [i = 4 : 11] table using i:xtic(1) lc rgb colours[i - 3] lw 0.4 title columnheader(i), \
     table skip 1 using 0:3:(capacity_records <= 32 ? sprintf("%.1f", $3) : "") with labels offset 0, 0.6 \
     font ",9" notitle
set terminal @svg_terminal
set output out . '.svg'
replot
set output
