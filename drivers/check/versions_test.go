package check_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// nicOf is what a host says of a NIC at a port of the model.
func nicOf(iface, firmware string) render.HostNIC {
	return render.HostNIC{Name: iface, Model: "15b3:1021", Driver: "mlx5_core", OutOfTree: true, DriverVersion: "24.10-1.1.4", Firmware: firmware}
}

// TestVersions: NICs of the fabric are judged by the matrix and against each other, the host's other ones are not, and the model
// may acknowledge what is found.
func TestVersions(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	for i, d := range n.Devices {
		if !d.Host {
			continue
		}
		b := boxes[d.Name]
		b.facts.Version = "6.8.0-51-generic"
		for _, p := range d.Ports {
			firmware := "28.43.2566"
			if d.Name == "host2" {
				firmware = "28.40.1000"
			}
			b.facts.NICs = append(b.facts.NICs, nicOf(p.Iface, firmware))
		}
		if i%2 == 0 {
			b.facts.NICs = append(b.facts.NICs, nicOf("management", "28.20.1000"))
		}
		boxes[d.Name] = b
	}
	find := func(r *check.Report) []string {
		var got []string
		for _, x := range r.Findings {
			got = append(got, x.Word()+": "+x.Rule+" "+x.Devices[0])
		}
		return got
	}
	if d := cmp.Diff([]string{"warning: compatibility host2", "warning: fleet-versions host2"}, find(live(t, f, n, boxes))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestVersionsOfOneHost: doctor says the same of one host, which no model need have.
func TestVersionsOfOneHost(t *testing.T) {
	cat, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	old := nicOf("ens2f0", "28.40.1000")
	d, _ := check.Doctor(context.Background(), check.Subject{
		Name: "linux:192.0.2.1", OS: "linux", Host: "192.0.2.1", Catalog: cat,
		Open: func(context.Context) (*drivers.View, error) {
			return drivers.ViewOf("linux:192.0.2.1", box{facts: render.Facts{Hostname: "h", Version: "6.8.0", NICs: []render.HostNIC{
				nicOf("ens1f0", "28.43.2566"), old, {Name: "eth0", Model: "1af4:1041", Driver: "virtio_net"},
			}}}), nil
		},
		Stage: func(error) check.Stage { return check.AtSession },
	}, surroundings())
	var got []string
	for _, i := range d.Items {
		if i.Name == "compatibility" || i.Name == "fleet-versions" {
			got = append(got, string(i.Status)+" "+i.Name)
		}
	}
	if x := cmp.Diff([]string{"warning compatibility", "warning fleet-versions"}, got); x != "" {
		t.Errorf("(-want +got):\n%s\n%+v", x, d.Items)
	}
}
