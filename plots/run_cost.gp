# Cost of the run under each contract.
# Run it in its folder: gnuplot run_cost.gp
# Reads run_cost.csv: contract, cost_usd. Writes PNG and SVG.
if (!exists("out")) out = 'run_cost'
load 'style.gp'
load 'names.gp'
table = 'run_cost.csv'

stats table using 2 name 'usd' nooutput
unit = usd_max >= 2e6 ? 1e6 : 1e3
set title sprintf("%s: cost by contract (prices %s)", run, prices)
set ylabel (unit == 1e6 ? 'million USD' : 'thousand USD')
set style data histograms
set boxwidth 0.6
set style fill solid 1.0 border rgb '#444444'
set xtics scale 0 noenhanced
set yrange [0 : usd_max / unit * 1.12]
unset key
set terminal @png_terminal
set output out . '.png'
plot table skip 1 using ($2 / unit):xtic(1) lc rgb blue lw 0.4, \
     table skip 1 using 0:($2 / unit):(sprintf("%.4g", $2 / unit)) with labels offset 0, 0.7
set terminal @svg_terminal
set output out . '.svg'
replot
set output
