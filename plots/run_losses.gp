# Losses by cause, mean of the seeds: what each cost in share of the wall time, and on what.
# Run it in its folder: gnuplot run_losses.gp
# Reads run_losses.csv: cause, share of wall, hours lost, then hours by group. Writes PNG and SVG.
if (!exists("out")) out = 'run_losses'
load 'style.gp'
load 'names.gp'
table = 'run_losses.csv'

stats table using 2 name 'share' nooutput
rows = share_records
array colours[4] = [vermilion, orange, blue, grey]
set title sprintf("%s: %.1f %% of %.4g days lost, by cause", run, 100 * (1 - goodput), wall_d)
set ylabel 'hours lost, mean of the seeds'
set style data histograms
set style histogram rowstacked
set boxwidth 0.75
set style fill solid 1.0 border rgb '#444444'
set xtics rotate by 35 right scale 0 noenhanced
set yrange [0 : *]
set bmargin 9
set key inside right top vertical reverse Left
set terminal @png_terminal
set output out . '.png'
plot for [i = 4 : 7] table skip 1 using i:xtic(1) lc rgb colours[i - 3] lw 0.4 \
     title word('stopped rework saving slow', i - 3), \
     table skip 1 using 0:3:($2 >= 0.05 ? sprintf("%.2g %%", $2) : "") with labels offset 0, 0.6 font ',9' notitle
set terminal @svg_terminal
set output out . '.svg'
replot
set output
