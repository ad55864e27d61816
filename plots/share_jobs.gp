# What each job of a shared cluster does over time: a row a job, in the order of the table.
# Run it in its folder: gnuplot share_jobs.gp
# Reads share_jobs.csv: row, job, begin_h, end_h, does, gpus. Writes PNG and SVG.
if (!exists("out")) out = 'share_jobs'
load 'style.gp'
load 'names.gp'
table = 'share_jobs.csv'

set title sprintf("%s: what its jobs do, policy %s%s", share, policy, \
                  n_seeds > 1 ? sprintf(", seed %.0f", seed) : "")
set xlabel 'time (hours)'
set xrange [0 : *] noextend
set yrange [n_jobs - 0.4 : -0.6]
set ylabel n_jobs > 40 ? 'jobs, in the order of the table' : ''
# Names, as long as they can be read.
if (n_jobs <= 40) set ytics () ; set grid noy
half = n_jobs <= 40 ? 0.38 : 0.5
is(what) = strcol(5) eq what ? column(1) : NaN
stands(x) = strcol(5) eq 'start' || strcol(5) eq 'checkpoint' || strcol(5) eq 'detect' ? column(1) : NaN
set style fill solid 1 noborder
set terminal @png_terminal
set output out . '.png'
plot table using 3:(is('waiting')):3:4:($1 - half / 3):($1 + half / 3) with boxxyerror lc rgb lighter(grey, 0.4) title 'waiting', \
     table using 3:(is('useful')):3:4:($1 - half):($1 + half) with boxxyerror lc rgb blue title 'at work', \
     table using 3:(stands(0)):3:4:($1 - half):($1 + half) with boxxyerror lc rgb orange title 'starting, saving, hung', \
     table using (n_jobs <= 40 ? 0 : NaN):1:ytic(n_jobs <= 40 ? strcol(2) : '') with points pt 0 lc rgb grey notitle
set terminal @svg_terminal
set output out . '.svg'
replot
set output
