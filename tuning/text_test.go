package tuning_test

import (
	"math"
	"testing"

	"github.com/fabricctl/fabricctl/tuning"
)

func TestText(t *testing.T) {
	for _, x := range []struct {
		of   tuning.Quantity
		v    float64
		want string
	}{
		{tuning.Number, 7, "7"},
		{tuning.Number, 1.23456, "1.235"},
		{tuning.Factor, 0.125, "1/8"},
		{tuning.Factor, 1.0 / 64, "1/64"},
		{tuning.Factor, 0.1875, "3/16"},
		{tuning.Factor, 4, "4"},
		{tuning.Factor, 0.1, "0.1"},
		{tuning.Size, 1.6e6, "1.6MB"},
		{tuning.Size, 4999.7, "5000B"},
		{tuning.Share, 0.1, "10%"},
		{tuning.Share, 0.015, "1.5%"},
		{tuning.Ratio, 0.08, "0.08"},
		{tuning.Rate, 5e6, "5Mbps"},
		{tuning.Time, 4e-6, "4us"},
		{tuning.Size, math.NaN(), "-"},
	} {
		v := tuning.Variable{Of: x.of}
		if got := v.Text(x.v); got != x.want {
			t.Errorf("%d %v: %q, want %q", x.of, x.v, got, x.want)
		}
	}
	vars := []tuning.Variable{{Name: "alpha", Of: tuning.Factor}, {Name: "kmax", Of: tuning.Size}}
	if got, want := tuning.SettingText(vars, tuning.Setting{0.5, 2e5}), "alpha 1/2, kmax 200KB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for q := range tuning.Time + 1 {
		var back tuning.Quantity
		if b, err := q.MarshalText(); err != nil || back.UnmarshalText(b) != nil || back != q {
			t.Errorf("%d: %q %v", q, b, err)
		}
	}
	var q tuning.Quantity
	if err := q.UnmarshalText([]byte("weight")); err == nil {
		t.Errorf("weight is read as %s", q)
	}
}
