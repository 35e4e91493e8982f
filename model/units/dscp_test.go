package units

import "testing"

// TestCodePoints: every name has its number, and nothing else has one.
func TestCodePoints(t *testing.T) {
	want := map[string]uint8{
		"0": 0, "63": 63, "default": 0, "be": 0, "le": 1, "cs0": 0, "cs1": 8, "cs6": 48, "CS7": 56, "af11": 10, "af12": 12, "af13": 14, "af21": 18, "AF31": 26, "af41": 34, "af43": 38,
		"ef": 46, "va": 44, "voice-admit": 44,
	}
	for s, n := range want {
		if got, ok := ParseCodePoint(s); !ok || got != n {
			t.Errorf("%s is %d, %v, want %d", s, got, ok, n)
		}
	}
	for _, s := range []string{"", "64", "-1", "256", "cs8", "cs", "cs10", "af14", "af50", "af01", "af1", "af111", "efx", "cs-1"} {
		if n, ok := ParseCodePoint(s); ok {
			t.Errorf("%q is %d", s, n)
		}
	}
}
