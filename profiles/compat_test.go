package profiles

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
)

func TestBound(t *testing.T) {
	for _, x := range []struct {
		bound, version string
		want           bool
	}{
		{">= 24.10", "24.10-1.1.4", true},
		{">= 24.10", "24.07-0.6.1", false},
		{"< 24.10", "24.7", true}, // by number, not by text
		{"< *.43", "28.40.1000", true},
		{"< *.43", "28.43.1014", false},
		{"< *.43", "28.43.1014 (MT_0000000838)", false},
		{"= 28.43", "28.43.1014", true}, // as far as the bound goes
		{"> 28.43", "28.43.1014", false},
		{"<= 28.43", "28.43.1014", true},
		{"< 219", "218.0.219.13/pkg 218.1", true},
		{"< 219", "231.0.154.0/pkg 231.1.162.1", false},
		{"< 5.14", "5.10.0-33-amd64", true},
		{">= 4.40", "4.40 0x8001c967 1.3534.0", true},
		{">= 5.9", "MLNX_OFED_LINUX-5.10", true},
		{"< 24", "", false},        // what is not known holds no bound
		{"< 24", "unknown", false}, //
		{"= *.*.3", "1.2", false},
		{"24", "24", false}, // not a bound
		{">= 1.x", "1.1", false},
	} {
		if got := within([]string{x.bound}, x.version); got != x.want {
			t.Errorf("%q %s: got %v", x.version, x.bound, got)
		}
	}
	for _, bad := range []string{"", "24", ">= ", ">= 1.", ">=v1", "~ 1", ">= 12345678901", ">= 1 ", "=> 1"} {
		if CheckBound(bad) == nil {
			t.Errorf("%q is taken for a bound", bad)
		}
	}
}

// TestMatrix: published builds, and ones that are published as not working.
func TestMatrix(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	mlx5 := func(nic, driver, firmware string) Build {
		return Build{NIC: nic, Driver: "mlx5_core", Vendor: driver != "", DriverVersion: driver, Firmware: firmware, Kernel: "6.12.0"}
	}
	for _, x := range []struct {
		b    Build
		want string // grades and rows
	}{
		{mlx5("connectx-7", "24.10-1.1.4", "28.43.2566"), ""}, // DOCA 2.9.2
		{mlx5("connectx-7", "24.10-1.1.4", "28.40.1000"), "warn nvidia-firmware-of-24.10"},
		{mlx5("connectx-7", "25.07-0.9.7", "28.46.1006"), ""}, // DOCA 3.1.0
		{mlx5("connectx-7", "", "28.38.1002"), ""},            // of the kernel's driver nobody says
		{mlx5("connectx-7", "24.10-1.1.4", ""), ""},           // the firmware is not known
		{mlx5("connectx-8", "24.10-1.1.4", "40.44.1036"), "bad connectx-8-before-doca-2.10"},
		{mlx5("connectx-8", "25.01-0.6.0", "40.44.1036"), ""},
		{mlx5("connectx-6", "25.07-0.9.7", "20.43.3608"), ""},
		{mlx5("connectx-4", "25.01-0.6.0", "12.28.2302"), "bad connectx-4-after-doca-2.9"},
		{Build{Driver: "mlx4_core", Vendor: true, DriverVersion: "5.8-1.0.1"}, "bad mlx4-with-ofed"},
		{Build{Driver: "mlx4_core", Vendor: true, DriverVersion: "4.9-4.1.7"}, ""},
		{Build{NIC: "e810", Driver: "ice", Kernel: "5.10.0-33-amd64"}, "bad e810-kernel-without-irdma"},
		{Build{NIC: "e810", Driver: "ice", Kernel: "5.15.0"}, "bad e810-kernel-without-dscp"},
		{Build{NIC: "e810", Driver: "ice", Kernel: "6.12.0"}, ""},
		{Build{NIC: "e810", Driver: "ice", Vendor: true, DriverVersion: "1.14.9", Kernel: "5.10.0"}, ""},
		{Build{NIC: "bcm57508", Driver: "bnxt_en", Firmware: "216.0.220.0"}, "warn bnxt-firmware-with-rocev1"},
		{Build{NIC: "e810", Driver: "ice", Kernel: "4.18.0-553.el8_10.x86_64"}, ""},              // RHEL 8 has irdma
		{Build{NIC: "e810", Driver: "ice", Kernel: "5.14.0-427.13.1.el9_4.x86_64"}, ""},          // RHEL 9 has the map
		{Build{NIC: "e810", Driver: "ice", Kernel: "5.14.21-150500.55.83-default"}, ""},          // SLES 15
		{Build{Driver: "hns3", Kernel: "5.10.0-216.0.0.115.oe2203sp4.aarch64"}, ""},              // openEuler
		{Build{Driver: "hns3", Kernel: "5.10.0-33-arm64"}, "bad hns3-kernel-without-dscp"},       // Debian
		{Build{Driver: "hns3", Kernel: "5.15.0-113-generic"}, "bad hns3-kernel-without-dscp"},    // Ubuntu
		{Build{Driver: "hns3", Kernel: "5.15.0.x86_64"}, "bad hns3-kernel-without-dscp"},         // built by hand
		{Build{NIC: "xsc", Driver: "xsc_pci", Kernel: "6.18.2"}, "warn xsc-kernel-without-rdma"}, //
		{Build{NIC: "xsc", Driver: "xsc_pci", Kernel: "7.2.0"}, ""},                              // nobody looked
		{Build{NIC: "xsc", Driver: "xsc_pci"}, ""},                                               // the kernel is not known
		{Build{NIC: "pollara-400", Driver: "ionic", Kernel: "6.8.0"}, "bad ionic-kernel-without-rdma"},
		{Build{}, ""},
	} {
		var got []string
		for _, v := range c.Compat(x.b) {
			got = append(got, string(v.Grade)+" "+v.Name)
		}
		if s := strings.Join(got, ", "); s != x.want {
			t.Errorf("%s: got %q, want %q", x.b, s, x.want)
		}
	}
	for _, n := range c.NamesOf(KindCompat) {
		r := c.find(KindCompat, n).compat
		if len(r.NICs)+len(r.Drivers) == 0 || r.Says == "" || r.Source == "" || r.Remedy == "" {
			t.Errorf("row %s is about everything, or says no remedy or source: %+v", n, r)
		}
		for _, nic := range r.NICs {
			if _, ok := c.NIC(nic); !ok {
				t.Errorf("row %s is about %s, which the catalog lacks", n, nic)
			}
		}
	}
}

// TestOwnMatrix: a site that lists what it tried is warned of the rest, for the NICs that its rows are about alone.
func TestOwnMatrix(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	fact := func(key string, values ...string) Fact {
		return Fact{Key: key, Values: values, Source: "our lab", Confidence: "high"}
	}
	c = c.With(Entry{Kind: KindCompat, Name: "tried-in-may", Pos: diag.Pos{File: "site.yaml", Line: 3, Col: 1}, Facts: []Fact{
		fact("nics", "connectx-7"), fact("firmware", "= 28.43.2566"), fact("driver_version", ">= 24.10", "< 25"), fact("grade", "ok"), fact("says", "was tried in May"),
	}})
	for _, x := range []struct {
		b    Build
		want string
	}{
		{Build{NIC: "connectx-7", Driver: "mlx5_core", Vendor: true, DriverVersion: "24.10-1.1.4", Firmware: "28.43.2566"}, "ok was tried in May"},
		{Build{NIC: "connectx-7", Driver: "mlx5_core", Vendor: true, DriverVersion: "24.10-1.1.4", Firmware: "28.43.3608"}, "warn is none of the builds that the matrix lists as good: tried-in-may"},
		{Build{NIC: "connectx-6-dx", Driver: "mlx5_core", Vendor: true, DriverVersion: "24.10-1.1.4", Firmware: "22.43.3608"}, ""},
	} {
		var got []string
		for _, v := range c.Compat(x.b) {
			got = append(got, string(v.Grade)+" "+v.Says)
		}
		if s := strings.Join(got, ", "); s != x.want {
			t.Errorf("%s: got %q, want %q", x.b, s, x.want)
		}
	}
}

// TestFleet: what is said of a fleet, once for each thing.
func TestFleet(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	var fleet []Fitted
	for h := range 16 {
		for i := range 2 {
			b := Build{NIC: "connectx-7", Driver: "mlx5_core", Vendor: true, DriverVersion: "24.10-1.1.4", Firmware: "28.43.2566", Kernel: "6.8.0-51-generic"}
			switch {
			case h == 3 && i == 1:
				b.Firmware = "28.40.1000"
			case h >= 10 && h < 15:
				b.Kernel = "6.8.0-49-generic"
			case h == 15:
				b.Vendor, b.DriverVersion = false, ""
			}
			fleet = append(fleet, Fitted{fmt.Sprintf("host%02d", h+1), fmt.Sprintf("ens%df0", i+1), diag.Pos{File: "site.yaml", Line: h + 10, Col: 3}, b})
		}
	}
	fleet = append(fleet, Fitted{"store1", "eth2", diag.Pos{}, Build{NIC: "e810", Driver: "ice", Kernel: "5.10.0"}}, Fitted{"store2", "eth2", diag.Pos{}, Build{}})
	var got []string
	for _, f := range c.Fleet(fleet) {
		got = append(got, f.String()+fmt.Sprintf("\n    %v", f.Devices))
	}
	want := []string{
		`store1:eth2: error: compatibility: e810 with driver ice (the kernel's own), kernel 5.10.0 has no RDMA with this kernel, which is from before irdma (Linux 5.14: irdma takes the place of i40iw; high confidence), on store1:eth2
    hint: use Linux 5.14 or later, or the vendor's ice and irdma
    [store1]`,
		`site.yaml:13:3: warning: compatibility: connectx-7 with driver mlx5_core 24.10-1.1.4 (the vendor's), firmware 28.40.1000, kernel 6.8.0-51-generic is older than the firmware released with this driver, which is of branch xx.43 (DOCA 2.9.2 release notes give the firmware; which driver goes with it is by the time of release; medium confidence), on host04:ens2f0
    hint: update the firmware, to the one that the driver brings (mlxfwmanager --online, or mlxup), then measure again
    [host04]`,
		`site.yaml:13:3: warning: fleet-versions: firmware of connectx-7 is 28.43.2566 on 31 NICs of 16 hosts, and 28.40.1000 on host04:ens2f0
    hint: bring host04 to 28.43.2566 and measure again, or acknowledge fleet-versions with the reason
    [host04]`,
		`site.yaml:20:3: warning: fleet-versions: kernel of connectx-7 is 6.8.0-51-generic on 22 NICs of 11 hosts, and 6.8.0-49-generic on host11:ens1f0, host11:ens2f0, host12:ens1f0, 7 more
    hint: bring host11, host12, host13, 2 more to 6.8.0-51-generic and measure again, or acknowledge fleet-versions with the reason
    [host11 host12 host13 host14 host15]`,
		`site.yaml:25:3: warning: fleet-versions: driver of connectx-7 is mlx5_core 24.10-1.1.4 of the vendor on 30 NICs of 15 hosts, and mlx5_core of the kernel on host16:ens1f0, host16:ens2f0
    hint: bring host16 to mlx5_core 24.10-1.1.4 of the vendor and measure again, or acknowledge fleet-versions with the reason
    [host16]`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if l := c.Fleet(fleet[:6]); len(l) != 0 {
		t.Errorf("three hosts that are alike: %v", l)
	}
}
