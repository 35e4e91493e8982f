package main

import (
	"testing"

	"github.com/fabricctl/fabricctl/model/picture"
	"github.com/fabricctl/fabricctl/model/units"
)

// TestRates: ratios read from the larger side, and sums of rates have one unit for their size.
func TestRates(t *testing.T) {
	for in, want := range map[float64]string{0: "unknown", 0.5: "1:2", 1: "1:1", 1.5: "1.5:1", 3: "3:1"} {
		if got := ratioText(in); got != want {
			t.Errorf("ratio %v: %s, want %s", in, got, want)
		}
	}
	const giga = 1_000_000_000
	for in, want := range map[units.BitRate]string{
		400 * giga: "400Gbps", 66_666_666_667: "66.7Gbps", 2560 * giga: "2.56Tbps", 3200 * giga: "3.2Tbps", 5_688_888_888_889: "5.69Tbps",
	} {
		if got := rateText(in); got != want {
			t.Errorf("rate %d: %s, want %s", in, got, want)
		}
	}
	if got := sideText(picture.Side{Ports: 4}); got != "4 ports of unknown speed" {
		t.Error(got)
	}
}
