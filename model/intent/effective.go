package intent

// Effective is what the hardware of d makes of the policy of p: marking thresholds in its own steps, buffers in whole
// cells, and what it fills in itself where the policy leaves that to it. A value that fabricctl knows nothing about the
// rounding of is as it was asked for. Lint and explain use it; what is rendered and lifted is the policy as it stands.
func Effective(d *Device, p *Port) Policy {
	pol := *d.PolicyOf(p)
	for i := range pol.Queues {
		q := &pol.Queues[i]
		q.ECN = ECNInEffect(q.ECN, d.Profile.Chip)
		if b, known := BufferInEffect(d, p, i); known && b.On {
			b.Device = false // filled in
			q.Buffer = b
		}
	}
	return pol
}
