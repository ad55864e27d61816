# Progress of one seed over the days: work that is kept, against a run that loses nothing.
# Run it in its folder: gnuplot run_progress.gp
# Reads run_progress.csv: time_d, useful_d, lost_replicas. Writes PNG and SVG.
if (!exists("out")) out = 'run_progress'
load 'style.gp'
load 'names.gp'
table = 'run_progress.csv'

stats table using 1 name 'time' nooutput
set title sprintf("%s: work kept over time, seed %.0f (goodput %.1f %%)", run, seed, 100 * seed_goodput)
set xlabel 'wall time (days)'
set ylabel 'work kept (days of steps at nominal speed)'
set xrange [0 : time_max]
set yrange [0 : time_max]
set y2range [0 : *]
set y2label 'lost so far (hours)'
set y2tics out textcolor rgb '#222222'
set border 11
set key inside left top
set terminal @png_terminal
set output out . '.png'
plot x with lines lc rgb grey dt 2 lw 1.5 title 'nothing lost', \
     table using 1:2 with lines lc rgb blue lw 1.8 title 'kept', \
     table using 1:(($1 - $2) * 24) axes x1y2 with lines lc rgb vermilion lw 1.2 title 'lost so far (right)', \
     table using ($3 > 0 ? $1 : NaN):2 with points pt 7 ps 0.3 lc rgb orange title (has_shrunk > 0 ? 'with fewer replicas' : '')
set terminal @svg_terminal
set output out . '.svg'
replot
set output
