# Predicted against measured step time of published runs, a point a run, a colour a framework.
# Run it in its folder: gnuplot validation.gp
# Reads validation.csv: framework, measured and predicted in ms; blocks by framework, two empty
# lines apart. Writes PNG and SVG.
if (!exists("out")) out = 'validation'
load 'style.gp'
load 'names.gp'
table = 'validation.csv'
stats table using 2:3 name 'all' nooutput
blocks = int(all_blocks)
array shapes[3] = [7, 4, 9] # filled circle, open square, filled triangle: with the colour one look each
array colours[8] = [blue, orange, green, vermilion, purple, sky, grey, yellow]
low = all_min_x < all_min_y ? all_min_x : all_min_y
high = all_max_x > all_max_y ? all_max_x : all_max_y

set title sprintf("Step times of %.0f published runs: mean absolute error %.1f %%", rows, mape)
set logscale xy
set grid x y lc rgb '#dddddd' lw 1
set xlabel 'measured, ms'
set ylabel 'predicted, ms'
set xrange [low * 0.8 : high * 1.25]
set yrange [low * 0.8 : high * 1.25]
name(i) = system(sprintf("awk -F, -v want=%d 'BEGIN { b = 0; empty = 0 } /^$/ { empty++; next } \
{ if (empty >= 2) b++; empty = 0; if (b == want && $1 != \"framework\") { print $1; exit } }' %s", i, table))
set terminal @png_terminal
set output out . '.png'
set samples 200
plot '+' using 1:($1 / 1.2):($1 * 1.2) with filledcurves lc rgb '#e6e6e6' title 'within 20 %', \
     x with lines lc rgb '#000000' lw 1.5 title 'exact', \
     for [i = 0 : blocks - 1] table index i using 2:3 with points pt shapes[i / 8 % 3 + 1] ps 0.8 \
     lc rgb colours[i % 8 + 1] title name(i)
set terminal @svg_terminal
set output out . '.svg'
replot
set output
