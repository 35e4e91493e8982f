package render

// Dialects is the table of all targets. Adding one is adding its file and its row.
func Dialects() []*Dialect { return []*Dialect{&eos, &linux, &sonic} }

// Linux is the dialect of hosts, for who needs no other.
func Linux() *Dialect { return &linux }

// ByOS finds a dialect by its name ("sonic"); nil when there is none.
func ByOS(os string) *Dialect {
	for _, d := range Dialects() {
		if d.OS == os {
			return d
		}
	}
	return nil
}
