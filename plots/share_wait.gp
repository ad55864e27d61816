# How long each job of a shared cluster waits, the longest first.
# Run it in its folder: gnuplot share_wait.gp
# Reads share_wait.csv: row, job, waited_h, p50_h, p95_h, gpus. Writes PNG and SVG.
if (!exists("out")) out = 'share_wait'
load 'style.gp'
load 'names.gp'
table = 'share_wait.csv'

set title sprintf("%s: hours that each job waits, policy %s", share, policy)
set ylabel 'time in the queue (hours)'
set xlabel n_jobs > 40 ? 'jobs, the longest wait first' : ''
set yrange [0 : *]
set xrange [-0.7 : n_jobs - 0.3]
if (n_jobs <= 40) set xtics rotate by -40
set key inside right top
set style fill solid 1 noborder
set boxwidth 0.8
name(x) = n_jobs <= 40 ? sprintf("%s (%g)", strcol(2), column(6)) : ''
set terminal @png_terminal
set output out . '.png'
plot table using 1:3 with boxes lc rgb blue title (n_seeds > 1 ? sprintf('seed %.0f', seed) : 'wait (GPUs in brackets)'), \
     table using 1:(n_seeds > 1 ? $4 : NaN):4:5 with yerrorbars pt 7 ps 0.8 lc rgb vermilion title (n_seeds > 1 ? 'median to 95 % of the seeds' : ''), \
     table using 1:(n_jobs <= 40 ? 0 : NaN):xtic(name(0)) with points pt 0 lc rgb blue notitle
set terminal @svg_terminal
set output out . '.svg'
replot
set output
