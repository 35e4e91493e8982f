package profiles

import "testing"

// BenchmarkPersonality is finding the personality of a NIC in a catalog that nobody has read yet, and in one that somebody has.
func BenchmarkPersonality(b *testing.B) {
	b.Run("first", func(b *testing.B) {
		c, err := Default()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			fresh := c.With() // its rows are new below
			for name, r := range fresh.rows[KindPersonality] {
				fresh.rows[KindPersonality][name] = &row{kind: r.kind, name: r.name, file: r.file, line: r.line, tree: r.tree}
			}
			if p := fresh.Personality("mlx5_core", "15b3:1021"); p.Name != "mlx5" {
				b.Fatal(p.Name)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		c, err := Default()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if p := c.Personality("mlx5_core", "15b3:1021"); p.Name != "mlx5" {
				b.Fatal(p.Name)
			}
		}
	})
}
