package render

// Dialects is the table of all targets. Adding one is adding its file and its row.
func Dialects() []*Dialect { return []*Dialect{&eos, &linux, &sonic} }

// ByOS finds a dialect by its name ("sonic"); nil when there is none.
func ByOS(os string) *Dialect {
	for _, d := range Dialects() {
		if d.OS == os {
			return d
		}
	}
	return nil
}
