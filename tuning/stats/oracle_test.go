package stats

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gopkg.in/yaml.v3"
)

// oracle is a case of testdata/statistics.yaml: an input and what a program that is not ours made of it.
type oracle struct {
	ID, Kind string
	Input    yaml.Node
	Expect   map[string]yaml.Node
}

// ask computes what a case of its kind expects. Values are numbers, booleans, or what prints alike.
var ask = map[string]func(t *testing.T, in yaml.Node) map[string]any{
	"jain": func(t *testing.T, in yaml.Node) map[string]any {
		return map[string]any{"jain": Jain(as[[]float64](t, in))}
	},
	"mann_kendall": func(t *testing.T, in yaml.Node) map[string]any {
		r := TrendOf(as[[]float64](t, in))
		return map[string]any{"S": r.S, "var": r.Variance, "z": r.Z, "p_two_sided": r.P, "theil_sen_slope_per_step": r.Slope}
	},
	"quantile_ci": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct {
			N       int
			Q, Conf float64
		}](t, in)
		r := QuantileRanks(x.N, x.Q, x.Conf)
		return map[string]any{"lower_rank": r.Lower, "upper_rank": r.Upper, "coverage": r.Coverage, "upper_exists": r.Bounded}
	},
	"min_n_upper_bound": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct{ Q, Conf float64 }](t, in)
		return map[string]any{"n": SamplesForUpper(x.Q, x.Conf)}
	},
	"repeats_per_arm": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct {
			CV, Alpha, Power float64
			Detect           float64 `yaml:"detect_rel"`
			Pairing          float64 `yaml:"pair_corr"`
		}](t, in)
		return map[string]any{"n": Repeats(x.CV, x.Detect, x.Pairing, x.Alpha, x.Power)}
	},
	"kneedle": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct{ X, Y []float64 }](t, in)
		return map[string]any{"knee_x": x.X[Knee(x.X, x.Y)]}
	},
	"search_evals": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct{ Width, Tol float64 }](t, in)
		e := SearchCost(x.Width, x.Tol)
		return map[string]any{"golden": e.Golden, "fibonacci": e.Fibonacci, "ternary": e.Ternary, "grid": e.Grid}
	},
	"interaction_2x2": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct {
			Y00, Y10, Y01, Y11, Sigma float64
			N                         int `yaml:"n_per_cell"`
		}](t, in)
		f := Factorial2x2(x.Y00, x.Y10, x.Y01, x.Y11, x.Sigma, x.N)
		return map[string]any{"effect_A": f.A, "effect_B": f.B, "interaction_AB": f.AB, "se": f.SE, "significant": f.Interacts()}
	},
	"abba": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct {
			Order string
			Y     []float64
		}](t, in)
		if got := ABBA(len(x.Y) / 2); got != x.Order {
			t.Errorf("order %s, want %s", got, x.Order)
		}
		e, err := Effect(x.Order, x.Y)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"effect": e}
	},
	"successive_halving": func(t *testing.T, in yaml.Node) map[string]any {
		x := as[struct {
			Arms, Eta int
			Repeats   int `yaml:"initial_repeats"`
		}](t, in)
		rounds, runs := Halving(x.Arms, x.Repeats, x.Eta)
		var rows [][]int
		for _, r := range rounds {
			rows = append(rows, []int{r.Arms, r.Repeats})
		}
		return map[string]any{"rounds_arms_repeats": rows, "total_runs": runs}
	},
}

func TestOracles(t *testing.T) {
	path := filepath.Join("testdata", "statistics.yaml")
	if ref := os.Getenv("FABRICCTL_REFERENCE"); ref != "" { // what is there now, if it has grown
		path = filepath.Join(ref, "reference", "statistics.yaml")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []oracle }
	if err := yaml.Unmarshal(b, &all); err != nil || len(all.Cases) < 30 {
		t.Fatalf("%d cases, %v", len(all.Cases), err)
	}
	for _, c := range all.Cases {
		t.Run(c.ID, func(t *testing.T) {
			f := ask[c.Kind]
			if f == nil {
				t.Fatalf("nobody computes %s", c.Kind)
			}
			got := f(t, c.Input)
			for key, node := range c.Expect {
				g, ok := got[key]
				if !ok {
					if key != "naive_AAAABBBB_effect" { // what one gets who does it the wrong way
						t.Errorf("nobody computes %s", key)
					}
					continue
				}
				if !same(t, g, node) {
					t.Errorf("%s = %v, want %s", key, g, node.Value)
				}
			}
		})
	}
}

func as[T any](t *testing.T, n yaml.Node) T {
	t.Helper()
	var v T
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func same(t *testing.T, got any, want yaml.Node) bool {
	t.Helper()
	if g, ok := got.(float64); ok {
		w := as[float64](t, want)
		digits := 0.0 // an expectation is no better than it is printed
		if _, frac, ok := cut(want.Value); ok {
			digits = 0.51 * math.Pow10(-frac)
		}
		return math.Abs(g-w) <= max(1e-6*math.Abs(w), min(digits, 1e-4*math.Abs(w)+1e-9))
	}
	return fmt.Sprint(got) == fmt.Sprint(as[any](t, want))
}

// cut is how many digits a number has after its point.
func cut(s string) (whole, frac int, ok bool) {
	for i, c := range s {
		if c == '.' {
			return i, len(s) - i - 1, true
		}
	}
	return len(s), 0, false
}
