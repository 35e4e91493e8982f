package gnmi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/drivers"
)

// maxNeighbours bounds what is read: more ports than any switch has.
const maxNeighbours = 4096

// Neighbours is the table LLDP_ENTRY_TABLE of APPL_DB, where lldp-syncd keeps what lldpd hears. A switch that hears
// nobody, or runs no LLDP, has no such table: then there are none. The field names follow sonic-dbsyncd; that a switch
// answers for APPL_DB under origin sonic-db as it does for CONFIG_DB is not verified.
func (d *Device) Neighbours(ctx context.Context) ([]drivers.Neighbour, error) {
	const op = "get LLDP_ENTRY_TABLE"
	if err := d.open(op); err != nil {
		return nil, err
	}
	p := path("LLDP_ENTRY_TABLE")
	p.Elem[0].Name = "APPL_DB"
	text, err := d.get(ctx, p)
	switch {
	case status.Code(err) == codes.NotFound:
		return nil, nil
	case err != nil:
		return nil, d.failed(ctx, op, err)
	}
	ns, err := neighbours(text)
	if err != nil {
		return nil, fmt.Errorf("%s: gnmi %s: %w", d.config.Name, op, err)
	}
	return ns, nil
}

// neighbours reads rows by port. A row without fields, as redis keeps an empty one, is no neighbour.
func neighbours(text []byte) ([]drivers.Neighbour, error) {
	var rows map[string]map[string]any
	if json.Unmarshal(text, &rows) != nil {
		return nil, errors.New("the answer is not a table of rows of fields")
	}
	if len(rows) > maxNeighbours {
		return nil, fmt.Errorf("%d rows; at most %d are read", len(rows), maxNeighbours)
	}
	var out []drivers.Neighbour
	for _, port := range slices.Sorted(maps.Keys(rows)) {
		field := func(name string) string {
			s, _ := rows[port]["lldp_rem_"+name].(string)
			return s
		}
		n := drivers.Neighbour{
			Port: port, Chassis: field("chassis_id"), System: field("sys_name"), PeerPort: field("port_id"),
			PeerDescr: field("port_desc"), Forwards: forwards(field("sys_cap_enabled")),
		}
		if n.Chassis != "" || n.System != "" || n.PeerPort != "" {
			out = append(out, n)
		}
	}
	return out, nil
}

// forwards reads capabilities as LLDP-MIB writes them: the bits of hexadecimal octets from the left, where bit 2 is
// bridge and bit 4 is router ("28 00" is both).
func forwards(octets string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(octets), " ")
	b, err := strconv.ParseUint(first, 16, 8)
	return err == nil && b&(0x20|0x08) != 0
}
