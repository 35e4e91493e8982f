package report

// look is how charts look: on light by day, on dark where the viewer prefers that, and on light on paper. Colours are those of Okabe and
// Ito (Color Universal Design, 2008), which people with any colour vision tell apart; from the seventh line on they come
// again, dashed. Red is for thresholds alone.
const look = `
svg{color-scheme:light dark;font-family:ui-monospace,"DejaVu Sans Mono","Liberation Mono",Menlo,Consolas,monospace}
.bg{fill:#ffffff}
text{fill:#1f2328;font-size:12px}
.title{font-size:15px;font-weight:bold}
.caption{fill:#57606a}
.axis{font-weight:bold}
.tick{fill:#57606a}
.end{text-anchor:end}
.mid{text-anchor:middle}
.grid{stroke:#d0d7de;stroke-width:.6}
.frame{fill:none;stroke:#8c959f;stroke-width:1}
.span{fill:#8c959f;fill-opacity:.16}
.spanname{fill:#57606a}
.level{stroke:#b3121d;stroke-width:1.2;stroke-dasharray:7 3}
.levelname{fill:#b3121d}
.data{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}
.again{stroke-dasharray:4 3}
.k0{stroke:#0072b2}
.k1{stroke:#c25a00}
.k2{stroke:#009e73}
.k3{stroke:#a8558b}
.k4{stroke:#b8860b}
.k5{stroke:#5a5a5a}
@media screen and (prefers-color-scheme:dark){
.bg{fill:#0d1117}
text{fill:#e6edf3}
.caption,.tick,.spanname{fill:#9da7b3}
.grid{stroke:#30363d}
.frame{stroke:#57606a}
.level{stroke:#ff6b6b}
.levelname{fill:#ff8182}
.k0{stroke:#4aa8e0}
.k1{stroke:#f08c3a}
.k2{stroke:#2cc79a}
.k3{stroke:#d98fc0}
.k4{stroke:#e0b040}
.k5{stroke:#a8a8a8}
}
`

// lookOfMarks is what charts with points have besides: points are filled, with a rim that keeps them apart.
const lookOfMarks = `
.place{stroke:#57606a;stroke-width:1.2;stroke-dasharray:2 3}
.mark{stroke:#ffffff;stroke-width:.8}
.m0{fill:#0072b2}
.m1{fill:#c25a00}
.m2{fill:#009e73}
.m3{fill:#a8558b}
.m4{fill:#b8860b}
.m5{fill:#5a5a5a}
.whisker{stroke-width:1.2}
.thin{stroke-width:.9}
@media screen and (prefers-color-scheme:dark){
.place{stroke:#9da7b3}
.mark{stroke:#0d1117}
.m0{fill:#4aa8e0}
.m1{fill:#f08c3a}
.m2{fill:#2cc79a}
.m3{fill:#d98fc0}
.m4{fill:#e0b040}
.m5{fill:#a8a8a8}
}
`

// colours is how many lines have one of their own.
const colours = 6
