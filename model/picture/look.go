package picture

// look is how everything is drawn: on light by day, on dark where the viewer prefers that, and on light on paper.
// Colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any colour vision tell apart; red
// is for findings alone.
const look = `
svg{color-scheme:light dark;font-family:ui-monospace,"DejaVu Sans Mono","Liberation Mono",Menlo,Consolas,monospace}
.bg{fill:#ffffff}
text{fill:#1f2328;font-size:11px}
.mid{text-anchor:middle}
.title{font-size:20px;font-weight:bold}
.caption{font-size:12px;font-weight:bold}
.name{font-size:13px;font-weight:bold}
.rowname{font-size:13px;font-weight:bold}
.noted{font-weight:bold}
.framename{font-weight:bold}
.planename{fill:#57606a}
.framename,.planename{paint-order:stroke;stroke:#ffffff;stroke-width:4;stroke-linejoin:round}
.found{fill:#b3121d}
.switch{fill:#f3f6fa;stroke:#3d4a5c;stroke-width:1.2}
.host{fill:#fbfaf3;stroke:#6b6445;stroke-width:1}
.pods{fill:#eef3ee;stroke:#3d5c46;stroke-width:1.2}
.dashed{stroke-dasharray:6 4}
.warned{stroke:#b3121d;stroke-width:1.6}
.wrong{stroke:#b3121d;stroke-width:3}
.badge{fill:#b3121d;stroke:#b3121d;stroke-width:1.6}
.badge.light{fill:#ffffff}
.badgetext{fill:#ffffff;font-weight:bold}
.badge.lighttext{fill:#b3121d;stroke:none;font-weight:bold}
.pod{fill:#000000;fill-opacity:.025;stroke:#8c959f;stroke-width:1}
.plane{fill:#0072b2;fill-opacity:.06;stroke:none}
.rule{stroke:#d0d7de;stroke-width:1}
.link{fill:none;stroke-width:1.5}
.k0{stroke:#0072b2}
.k1{stroke:#009e73}
.k2{stroke:#b8860b}
.k3{stroke:#a8558b}
.k4{stroke:#3a9bd0}
.k5{stroke:#5a5a5a}
.again{stroke-width:2.6}
.lossy{stroke-dasharray:2 4}
.redlink{stroke:#b3121d;stroke-width:2.6}
.bond{fill:none;stroke:#3d4a5c;stroke-width:1.2}
.cycle{fill:none;stroke:#d1410c;stroke-width:4}
.arrow{fill:#d1410c;stroke:#ffffff;stroke-width:1}
.number{fill:#d1410c;stroke:#ffffff;stroke-width:1.5}
.numbertext{fill:#ffffff;font-weight:bold}
.dim{opacity:.4}
.edge.dim .link{stroke:#8c959f}
@media screen and (prefers-color-scheme:dark){
.bg{fill:#0d1117}
text{fill:#e6edf3}
.planename{fill:#9da7b3}
.framename,.planename{stroke:#0d1117}
.found{fill:#ff8182}
.switch{fill:#161d27;stroke:#9fb0c6}
.host{fill:#1c1b14;stroke:#b3a97f}
.pods{fill:#141d17;stroke:#8fb39a}
.warned,.wrong{stroke:#ff6b6b}
.badge{fill:#ff6b6b;stroke:#ff6b6b}
.badge.light{fill:#0d1117}
.badgetext{fill:#0d1117}
.badge.lighttext{fill:#ff8182}
.pod{fill:#ffffff;fill-opacity:.03;stroke:#57606a}
.plane{fill:#56b4e9;fill-opacity:.1}
.rule{stroke:#30363d}
.k0{stroke:#4aa8e0}
.k1{stroke:#2cc79a}
.k2{stroke:#e0b040}
.k3{stroke:#d98fc0}
.k4{stroke:#8fd0f5}
.k5{stroke:#a8a8a8}
.redlink{stroke:#ff6b6b}
.bond{stroke:#9fb0c6}
.cycle{stroke:#ff7b42}
.arrow{fill:#ff7b42;stroke:#0d1117}
.number{fill:#ff7b42;stroke:#0d1117}
.numbertext{fill:#0d1117}
}
`
