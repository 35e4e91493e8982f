package sshcli

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
)

// eosMaxNeighbours bounds what is read: more ports than any switch has.
const eosMaxNeighbours = 4096

// eosNeighbours reads the JSON of "show lldp neighbors detail": per interface a list of neighbours. Only members that
// published outputs of EOS 4.2x and 4.3x show are read (the ANTA test suite's, among others); whether the switch
// quotes a port id depends on the release, so the quotes are taken off. Not tried on a switch of ours.
func eosNeighbours(answer string) ([]drivers.Neighbour, error) {
	var doc struct {
		Errors        []string `json:"errors"`
		LLDPNeighbors map[string]struct {
			Info []struct {
				ChassisID  string          `json:"chassisId"`
				SystemName string          `json:"systemName"`
				Capable    map[string]bool `json:"systemCapabilities"` // present: enabled or not
				Interface  struct {
					ID          string `json:"interfaceId"`
					IDv2        string `json:"interfaceId_v2"`
					Description string `json:"interfaceDescription"`
				} `json:"neighborInterfaceInfo"`
			} `json:"lldpNeighborInfo"`
		} `json:"lldpNeighbors"`
	}
	var shape *json.UnmarshalTypeError
	switch err := json.Unmarshal([]byte(answer), &doc); {
	case errors.As(err, &shape):
		return nil, errors.New("JSON " + shape.Value + " where " + cmp.Or(shape.Field, "an object") + " should stand")
	case err != nil:
		return nil, errors.New("the answer is not JSON")
	case len(doc.Errors) > 0:
		return nil, errors.New("the device says: " + doc.Errors[0])
	case doc.LLDPNeighbors == nil:
		return nil, errors.New("there are no lldpNeighbors in it")
	}
	var out []drivers.Neighbour
	for _, port := range slices.Sorted(maps.Keys(doc.LLDPNeighbors)) {
		for _, x := range doc.LLDPNeighbors[port].Info {
			if len(out) == eosMaxNeighbours {
				return nil, errors.New("there are too many neighbours")
			}
			out = append(out, drivers.Neighbour{
				Port: port, Chassis: x.ChassisID, System: x.SystemName,
				PeerPort:  cmp.Or(x.Interface.IDv2, strings.Trim(x.Interface.ID, `"`)),
				PeerDescr: strings.Trim(x.Interface.Description, `"`),
				Forwards:  x.Capable["bridge"] || x.Capable["router"],
			})
		}
	}
	return out, nil
}
