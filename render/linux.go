package render

var linux = Dialect{OS: "linux"}
