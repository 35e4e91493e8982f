package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Where PCI Express keeps the size of reads (PCI Express Base Specification, 7.5.3: capability 10h, Device Control at 8,
// Max_Read_Request_Size in bits 14:12, of 128 bytes times two to it).
const (
	pciStatus     = 0x06
	pciHasCaps    = 1 << 4
	pciCaps       = 0x34
	pciExpress    = 0x10
	pciDevControl = 8
	maxReadShift  = 12
	maxReadMask   = 7 << maxReadShift
	maxReadLimit  = 5
)

// deviceControl is where in its configuration space a device has Device Control, and what is there. Who is not root
// sees the first 64 bytes only, and then there is none.
func deviceControl(config []byte) (at int, value uint16, ok bool) {
	if len(config) < 64 || config[pciStatus]&pciHasCaps == 0 {
		return 0, 0, false
	}
	p := int(config[pciCaps] &^ 3)
	for range 48 { // as many as fit; a loop ends here
		if p < 0x40 || p+pciDevControl+2 > len(config) {
			return 0, 0, false
		}
		if config[p] == pciExpress {
			at = p + pciDevControl
			return at, binary.LittleEndian.Uint16(config[at:]), true
		}
		p = int(config[p+1] &^ 3)
	}
	return 0, 0, false
}

// maxReadRequest is the size in bytes; false where it cannot be read.
func (d *Device) maxReadRequest(pci string) (int, bool) {
	b, err := d.tree.Read(path.Join(sysPCI, pci, "config"))
	if err != nil {
		return 0, false
	}
	_, v, ok := deviceControl(b)
	return 128 << (v & maxReadMask >> maxReadShift), ok && v&maxReadMask>>maxReadShift <= maxReadLimit
}

// readCode is the number of a size in Device Control.
func readCode(value string) (uint16, error) {
	code := slices.Index([]string{"128", "256", "512", "1024", "2048", "4096"}, value)
	if code < 0 {
		return 0, fmt.Errorf("%q is not a size that PCI Express has: 128, 256, 512, 1024, 2048 or 4096", value)
	}
	return uint16(code), nil
}

// setMaxReadRequest changes three bits and leaves the others as they are in this moment.
func (d *Device) setMaxReadRequest(pci, value string) error {
	code, err := readCode(value)
	if err != nil {
		return err
	}
	name := path.Join(sysPCI, pci, "config")
	b, err := d.tree.Read(name)
	if err != nil {
		return err
	}
	at, v, ok := deviceControl(b)
	if !ok {
		return errors.New("its configuration space shows no PCI Express capability: only root sees it")
	}
	w := binary.LittleEndian.AppendUint16(nil, v&^uint16(maxReadMask)|code<<maxReadShift)
	return d.tree.Write(name, int64(at), w)
}

// Values of irq|IF|affinity. Where the machine is one node they are the same, and it reads "local spread". Any other
// arrangement is written out, so that it can be put back: "other 24:0-3 25:7".
const (
	irqLocal  = "local"  // each interrupt goes to one CPU of the NIC's node, in turn
	irqSpread = "spread" // each goes to one CPU of the machine, in turn
	irqOther  = "other"
)

// cores are CPUs that interrupts may go to, as lists: those of a NIC's node, and all that are on line.
type cores struct{ local, all string }

// interrupts is the interrupts of a NIC in the order of their numbers, with the CPUs of each, and those that they may go
// to. It is nil where that cannot be read.
func (d *Device) interrupts(pci string) (irqs []int, cpus []string, may cores) {
	dir := path.Join(sysPCI, pci)
	names, err := d.tree.List(dir + "/msi_irqs")
	if err != nil {
		return nil, nil, may
	}
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			irqs = append(irqs, n)
		}
	}
	slices.Sort(irqs)
	for _, n := range irqs {
		list, err := line(d.tree, fmt.Sprintf("proc/irq/%d/smp_affinity_list", n))
		if err != nil {
			return nil, nil, may
		}
		cpus = append(cpus, list)
	}
	return irqs, cpus, cores{said(d.tree, dir+"/local_cpulist"), said(d.tree, "sys/devices/system/cpu/online")}
}

// affinity is the value of irq|IF|affinity.
func (d *Device) affinity(pci string) (string, bool) {
	irqs, cpus, may := d.interrupts(pci)
	if len(irqs) == 0 {
		return "", false
	}
	var words []string
	for _, word := range []string{irqLocal, irqSpread} {
		if want, err := arrange(word, irqs, may); err == nil && slices.Equal(want, cpus) {
			words = append(words, word)
		}
	}
	if words != nil {
		return strings.Join(words, " "), true
	}
	b := strings.Builder{}
	b.WriteString(irqOther)
	for i, n := range irqs {
		fmt.Fprintf(&b, " %d:%s", n, cpus[i])
	}
	return b.String(), true
}

// arrange is the CPUs that a value of irq|IF|affinity gives each interrupt.
func arrange(value string, irqs []int, may cores) ([]string, error) {
	out := make([]string, len(irqs))
	switch word, rest, _ := strings.Cut(value, " "); word {
	case irqLocal, irqSpread:
		list := may.all
		if word == irqLocal {
			list = may.local
		}
		cpus, err := cpuList(list)
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i] = strconv.Itoa(cpus[i%len(cpus)])
		}
		return out, nil
	case irqOther:
		for w := range strings.FieldsSeq(rest) {
			name, list, _ := strings.Cut(w, ":")
			n, err := strconv.Atoi(name)
			i := slices.Index(irqs, n)
			if err != nil || i < 0 {
				return nil, fmt.Errorf("interrupt %s is not one of this NIC: its driver was loaded again since", name)
			}
			if _, err := cpuList(list); err != nil {
				return nil, err
			}
			out[i] = list
		}
		if i := slices.Index(out, ""); i >= 0 {
			return nil, fmt.Errorf("nothing is said of interrupt %d", irqs[i])
		}
		return out, nil
	}
	return nil, fmt.Errorf("%q is none of local, spread", value)
}

// cpuList reads "0-3,8".
func cpuList(s string) ([]int, error) {
	var out []int
	for r := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(r, "-")
		if !isRange {
			hi = lo
		}
		a, err1 := strconv.Atoi(lo)
		b, err2 := strconv.Atoi(hi)
		if err1 != nil || err2 != nil || a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("%q is not a list of CPUs", s)
		}
		for c := a; c <= b; c++ {
			out = append(out, c)
		}
	}
	return out, nil
}

func (d *Device) setAffinity(pci, value string) error {
	irqs, now, may := d.interrupts(pci)
	if len(irqs) == 0 {
		return errors.New("this NIC has no message signalled interrupts to move")
	}
	want, err := arrange(value, irqs, may)
	if err != nil {
		return err
	}
	for i, n := range irqs {
		if now[i] == want[i] {
			continue
		}
		if err := d.tree.Write(fmt.Sprintf("proc/irq/%d/smp_affinity_list", n), 0, []byte(want[i]+"\n")); err != nil {
			return fmt.Errorf("interrupt %d: %w (the kernel keeps interrupts that a driver leaves to it)", n, err)
		}
	}
	return nil
}
