package render

var eos = Dialect{OS: "eos"}
