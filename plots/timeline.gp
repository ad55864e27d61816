# Pipeline timeline: a row a stage, a box a pass; the white between boxes is the bubble.
# Run it in its folder: gnuplot timeline.gp
# Reads timeline.csv: row,rank,step,pass,chunk,micro_batch,start_ns,end_ns. Writes PNG and SVG.
if (!exists("out")) out = 'timeline'
load 'style.gp'
load 'names.gp'
table = 'timeline.csv'

stats table using 1 name 'row' nooutput
stats table using 5 name 'chunk' nooutput
stats table using 7 name 'begin' nooutput
stats table using 8 name 'end' nooutput
stats table using (strcol(4) eq 'W' ? 1 : 0) name 'weight' nooutput
rows = row_max + 1
chunks = chunk_max + 1
span_ms = (end_max - begin_min) / 1e6
unit_ns = span_ms > 20000 ? 1e9 : 1e6
unit = span_ms > 20000 ? 's' : 'ms'

# Later chunks are lighter, down to a quarter of the colour.
shade(c, chunk) = lighter(c, chunks > 1 ? 0.6 * chunk / (chunks - 1.0) : 0)
colour(p, chunk) = p eq 'F' ? shade(blue, chunk) : p eq 'B' ? shade(vermilion, chunk) \
                 : p eq 'I' ? shade(orange, chunk) : p eq 'W' ? shade(green, chunk) : grey
# Numbers of micro-batches where a box is wide enough to hold them.
is_labelled = row_records / rows <= 70
ink(chunk) = chunks > 1 && chunk > (chunks - 1) / 2.0 ? 0x000000 : 0xffffff
number(p, micro_batch) = p eq 'step' ? '' : sprintf('%d', micro_batch)

set title sprintf("%s: one step of a pipeline, %s", job, step_time)
set xlabel sprintf('time since the step began (%s)', unit)
set ylabel 'stage'
set xrange [0 : (end_max / unit_ns) * 1.002]
set yrange [rows - 0.4 : -0.6]
set ytics 1 out
set grid noy
if (is_labelled) { set style fill solid 1.0 border rgb '#ffffff' } else { set style fill solid 1.0 noborder }
set key horizontal below center maxrows 1
set terminal @png_terminal
set output out . '.png'
plot table using (strcol(4) eq 'step' ? NaN : $7 / unit_ns):1:($7 / unit_ns):($8 / unit_ns) \
         :($1 - 0.42):($1 + 0.42):(colour(strcol(4), $5)) \
         with boxxyerror lc rgb variable notitle, \
     table using (strcol(4) eq 'step' ? $7 / unit_ns : NaN):1:($7 / unit_ns):($8 / unit_ns) \
         :($1 - 0.42):($1 + 0.42) with boxxyerror lc rgb grey notitle, \
     table using (is_labelled && strcol(4) ne 'step' ? ($7 + $8) / 2 / unit_ns : NaN):1 \
         :(number(strcol(4), $6)):(ink($5)) with labels font ',8' textcolor rgb variable notitle, \
     NaN with boxes lc rgb blue title 'forward', \
     NaN with boxes lc rgb vermilion title 'backward', \
     NaN with boxes lc rgb (weight_max > 0 ? orange : 0xffffff) title (weight_max > 0 ? 'backward, input half' : ' '), \
     NaN with boxes lc rgb (weight_max > 0 ? green : 0xffffff) title (weight_max > 0 ? 'backward, weight half' : ' '), \
     NaN with boxes lc rgb grey title 'step begin and end', \
     NaN with boxes lc rgb 'white' title (chunks > 1 ? sprintf('lighter: later of %d chunks', chunks) : ' ')
set terminal @svg_terminal
set output out . '.svg'
replot
set output
