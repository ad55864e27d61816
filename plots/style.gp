# What the plots share: size, fonts, colours. Colours are those of Okabe and Ito (2008), which people
# with any common colour blindness can tell apart; shades of one colour mean parts of one thing.
set encoding utf8
set datafile separator comma
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set grid y lc rgb '#dddddd' lw 1
set key outside right top vertical samplen 1.5 spacing 1.2

sky = 0x56B4E9; blue = 0x0072B2; green = 0x009E73; yellow = 0xF0E442
orange = 0xE69F00; vermilion = 0xD55E00; purple = 0xCC79A7; grey = 0x999999

png_terminal = 'pngcairo noenhanced size 1500,750 font "DejaVu Sans,12" background rgb "white"'
svg_terminal = 'svg noenhanced size 1500,750 font "DejaVu Sans,12" background rgb "white"'

# Mixes a colour with white: share 0 is the colour, 1 is white.
part(c, shift) = (int(c) >> shift) & 0xff
lighter(c, share) = (int(part(c, 16) + (255 - part(c, 16)) * share) << 16) \
                  + (int(part(c, 8) + (255 - part(c, 8)) * share) << 8) \
                  + int(part(c, 0) + (255 - part(c, 0)) * share)
