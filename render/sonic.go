package render

var sonic = Dialect{OS: "sonic"}
