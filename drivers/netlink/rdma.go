package netlink

import (
	"context"
	"encoding/binary"

	"github.com/mdlayher/netlink"
)

// RDMA is what is asked of the kernel's RDMA subsystem.
type RDMA interface {
	// QPs counts the queue pairs of programs by RDMA device; those of the kernel itself do not count. A device without
	// any may be missing.
	QPs(ctx context.Context) (map[string]int, error)
	Close() error
}

// Numbers of include/uapi/rdma/rdma_netlink.h.
const (
	rdmaQPs = 5<<10 | 10 // RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET
	rdmaDev = 5<<10 | 1  // RDMA_NLDEV_CMD_GET

	rdmaDevIndex = 1
	rdmaDevName  = 2
	rdmaQPTable  = 19
	rdmaQPEntry  = 20
	rdmaKernName = 29
)

// rdmaDevice is one answer to rdmaDev.
type rdmaDevice struct {
	index uint32
	name  string
}

func parseRDMADevice(b []byte) (rdmaDevice, error) {
	var d rdmaDevice
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return d, err
	}
	for ad.Next() {
		switch ad.Type() {
		case rdmaDevIndex:
			d.index = ad.Uint32()
		case rdmaDevName:
			d.name = ad.String()
		}
	}
	return d, ad.Err()
}

// countQPs counts the entries of one answer to rdmaQPs that are not the kernel's own.
func countQPs(b []byte) (n int, err error) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return 0, err
	}
	for ad.Next() {
		if ad.Type() != rdmaQPTable {
			continue
		}
		ad.Nested(func(table *netlink.AttributeDecoder) error {
			for table.Next() {
				if table.Type() != rdmaQPEntry {
					continue
				}
				kernel := false
				table.Nested(func(qp *netlink.AttributeDecoder) error {
					for qp.Next() {
						kernel = kernel || qp.Type() == rdmaKernName
					}
					return nil
				})
				if !kernel {
					n++
				}
			}
			return nil
		})
	}
	return n, ad.Err()
}

// ofRDMADevice is the data of a request about one device.
func ofRDMADevice(index uint32) []byte {
	b := []byte{8, 0, rdmaDevIndex, 0, 0, 0, 0, 0}
	binary.NativeEndian.PutUint16(b, 8)
	binary.NativeEndian.PutUint16(b[2:], rdmaDevIndex)
	binary.NativeEndian.PutUint32(b[4:], index)
	return b
}
