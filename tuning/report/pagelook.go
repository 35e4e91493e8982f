package report

// lookOfPages is how pages look: a column of text that a telephone shows without scrolling sideways, by day, by night and on paper.
const lookOfPages = `
:root{color-scheme:light dark;--ink:#1f2328;--soft:#57606a;--line:#d0d7de;--back:#ffffff;--pale:#f6f8fa;--good:#0b6e4f;--careful:#8a5a00;--bad:#b3121d;--plain:#57606a;--link:#0059a3;--plus:#0b6e4f;--minus:#b3121d}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif;overflow-wrap:anywhere}
main{max-width:54rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.2rem;line-height:1.3;margin:2.2rem 0 .6rem;padding-bottom:.25rem;border-bottom:1px solid var(--line)}
p{margin:.5rem 0}
ul,ol{margin:.5rem 0;padding-left:1.4rem}
li{margin:.2rem 0}
.under{color:var(--soft);margin:0}
a{color:var(--link)}
.answer{margin:1.2rem 0;padding:.8rem 1rem;background:var(--pale);border-left:.35rem solid var(--plain);border-radius:.25rem}
.answer.good{border-color:var(--good)}
.answer.careful{border-color:var(--careful)}
.answer.bad{border-color:var(--bad)}
.answer .head{font-size:1.12rem;font-weight:600}
.answer p{margin:.25rem 0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.9rem,1fr));gap:.6rem;margin:1rem 0}
.facts div{border:1px solid var(--line);border-radius:.25rem;padding:.5rem .75rem}
.facts dt{color:var(--soft);font-size:.85rem}
.facts dd{margin:0}
.facts .value{font-size:1.2rem;font-weight:600;line-height:1.35}
.facts .note,.small{color:var(--soft);font-size:.85rem}
nav ol{display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;padding:0;list-style:none;font-size:.92rem}
.wide{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums;overflow-wrap:normal}
p.caption{color:var(--soft);font-size:.9rem;margin:1rem 0 0;break-after:avoid}
p.caption+.wide{margin-top:.2rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600;white-space:nowrap}
th.number,td.number{text-align:right;white-space:nowrap}
@media (min-width:40rem){td:first-child:not(.number){min-width:7.6rem}}
tr:has(>:nth-child(7))>td:first-child:not(.number){min-width:7.6rem}
tr.strong td{background:var(--pale)}
tr.strong td:first-child{font-weight:600}
figure{margin:1rem 0;break-inside:avoid}
figure svg{display:block;width:100%;max-width:44rem;height:auto;border:1px solid var(--line);border-radius:.25rem}
details{margin:.4rem 0;font-size:.92rem}
summary{cursor:pointer;color:var(--soft)}
.log{padding-left:2.2rem}
.log li{margin:.9rem 0;break-inside:avoid}
.log p{margin:.1rem 0}
.asked{font-weight:600;margin-right:.6rem}
.tag{display:inline-block;font-size:.8rem;padding:0 .5rem;border:1px solid currentColor;border-radius:1rem;white-space:nowrap;color:var(--plain)}
.tag.good{color:var(--good)}
.tag.careful{color:var(--careful)}
.tag.bad{color:var(--bad)}
pre{margin:0;padding:.7rem .9rem;background:var(--pale);border-radius:.25rem;font:.85rem/1.45 ui-monospace,"DejaVu Sans Mono","Liberation Mono",Menlo,Consolas,monospace;white-space:pre-wrap}
.wide:has(pre){background:var(--pale)}
.plus{color:var(--plus)}
.minus{color:var(--minus)}
footer{margin-top:2.5rem;color:var(--soft);font-size:.85rem;border-top:1px solid var(--line)}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e6edf3;--soft:#9da7b3;--line:#30363d;--back:#0d1117;--pale:#161b22;--good:#3fb950;--careful:#d29922;--bad:#ff7b72;--plain:#9da7b3;--link:#58a6ff;--plus:#3fb950;--minus:#ff7b72}
}
@media print{
@page{margin:16mm}
body{font-size:10.5pt}
main{max-width:none;padding:0}
nav,summary{display:none}
h2{break-after:avoid}
.wide{overflow:visible}
thead{display:table-header-group}
tr{break-inside:avoid}
figure svg{max-width:23rem}
.answer,.facts div{break-inside:avoid;print-color-adjust:exact;-webkit-print-color-adjust:exact}
a{color:inherit;text-decoration:none}
}
`
