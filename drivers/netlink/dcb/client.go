package dcb

import (
	"context"
	"errors"
	"fmt"
)

// Transport carries one message to a kernel, with RTM_GETDCB or RTM_SETDCB as its type, and returns the data of the one
// that answers it. It ends when ctx does, then with an error that wraps that of ctx. A refusal of the message is an
// Errno, which may be wrapped; one by the driver is in the data.
type Transport interface {
	Execute(ctx context.Context, typ uint16, data []byte) ([]byte, error)
	Close() error
}

// Client reads and sets the DCB state of interfaces. It may be used from several goroutines as far as its Transport may;
// the kernel's takes one message at a time.
//
// Every error is an *Error. One that is neither a Status, nor an Errno, nor ErrAbsent leaves open whether a set was done.
type Client struct{ t Transport }

// New is a client of t, which Close closes.
func New(t Transport) *Client { return &Client{t} }

// Close closes the transport.
func (c *Client) Close() error { return c.t.Close() }

// Get reads everything of an interface. It needs no privilege. With EOPNOTSUPP, Supported tells whether the kernel or
// the interface is to blame.
func (c *Client) Get(ctx context.Context, ifname string) (*State, error) {
	r, err := GetRequest(ifname)
	if err != nil {
		return nil, err
	}
	return c.get(ctx, r)
}

func (c *Client) get(ctx context.Context, r Request) (*State, error) {
	b, err := c.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	_, s, err := Decode(b)
	if err == nil && s.Ifname != r.ifname {
		err = fmt.Errorf("the answer is about %q", s.Ifname)
	}
	if err != nil {
		return nil, &Error{r.ifname, r.op, err}
	}
	return s, nil
}

// Supported reports whether the kernel speaks dcbnl at all (CONFIG_DCB). Only such a kernel looks for the interface that
// a message names, and this one names none that can be.
func (c *Client) Supported(ctx context.Context) (bool, error) {
	r, err := getRequest("/")
	if err != nil {
		return false, err
	}
	_, err = c.get(ctx, r)
	switch {
	case errors.Is(err, ENODEV):
		return true, nil
	case errors.Is(err, EOPNOTSUPP):
		return false, nil
	case err == nil:
		err = errors.New("the kernel knows an interface that cannot be")
	}
	return false, err
}

// Do sends a set or a deletion as it is, and returns nil or what the driver or the kernel had against it.
func (c *Client) Do(ctx context.Context, r Request) error {
	b, err := c.exchange(ctx, r)
	if err != nil {
		return err
	}
	if err := DecodeStatus(b); err != nil {
		return &Error{r.ifname, r.op, err}
	}
	return nil
}

func (c *Client) exchange(ctx context.Context, r Request) ([]byte, error) {
	if len(r.Data) < lenMsg {
		return nil, &Error{r.ifname, r.op, errors.New("an empty request")}
	}
	b, err := c.t.Execute(ctx, r.Type, r.Data)
	switch {
	case err != nil:
	case len(b) < lenMsg:
		err = damaged(short("message", b, lenMsg))
	case b[1] != r.Data[1]:
		err = fmt.Errorf("the answer is to command %d, asked was %d", b[1], r.Data[1])
	}
	if err != nil {
		return nil, &Error{r.ifname, r.op, err}
	}
	return b, nil
}

// SetPFC reads the PFC of an interface, lets change alter it, and sets the result: what change leaves alone (delay,
// MACsec bypass) stays.
func (c *Client) SetPFC(ctx context.Context, ifname string, change func(*PFC)) error {
	return edit(ctx, c, ifname, "set pfc", func(s *State) *PFC { return s.PFC }, change, PFCRequest)
}

// SetETS does with the traffic classes what SetPFC does with PFC.
func (c *Client) SetETS(ctx context.Context, ifname string, change func(*ETS)) error {
	return edit(ctx, c, ifname, "set ets", func(s *State) *ETS { return s.ETS }, change, ETSRequest)
}

// SetMaxRate does with the rate limits what SetPFC does with PFC.
func (c *Client) SetMaxRate(ctx context.Context, ifname string, change func(*MaxRate)) error {
	return edit(ctx, c, ifname, "set maxrate", func(s *State) *MaxRate { return s.MaxRate }, change, MaxRateRequest)
}

// SetBuffer does with the receive buffers what SetPFC does with PFC.
func (c *Client) SetBuffer(ctx context.Context, ifname string, change func(*Buffer)) error {
	return edit(ctx, c, ifname, "set buffer", func(s *State) *Buffer { return s.Buffer }, change, BufferRequest)
}

// edit reads, changes and sets one object.
func edit[T any](ctx context.Context, c *Client, ifname, op string, part func(*State) *T, change func(*T), encode func(string, T) (Request, error)) error {
	s, err := c.Get(ctx, ifname)
	if err != nil {
		return err
	}
	p := part(s)
	if p == nil {
		return &Error{ifname, op, ErrAbsent}
	}
	change(p)
	r, err := encode(ifname, *p)
	if err != nil {
		return err
	}
	return c.Do(ctx, r)
}

// AddApp adds one entry; that the very entry is there is no error. What happens to another entry for the same DSCP
// differs: the kernel's own table keeps both, mlx5 and hns3 replace it, ice refuses (EINVAL) until it is deleted.
func (c *Client) AddApp(ctx context.Context, ifname string, a App) error {
	r, err := AddAppRequest(ifname, a)
	if err == nil {
		err = c.Do(ctx, r)
	}
	return unless(err, EEXIST)
}

// DelApp removes one entry; that it is not there is no error. To hns3, a pair that another one has replaced is EINVAL:
// whether it is gone, the next Get tells.
func (c *Client) DelApp(ctx context.Context, ifname string, a App) error {
	r, err := DelAppRequest(ifname, a)
	if err == nil {
		err = c.Do(ctx, r)
	}
	return unless(err, ENOENT)
}

// unless is err, or nil when err is the driver's, or the table's, word that there was nothing to do.
func unless(err error, done Errno) error {
	var s Status
	if errors.As(err, &s) && s.errno() == done {
		return nil
	}
	return err
}

// SetTrust sets what the priority of a packet is taken from. Drivers without the operation say so (EOPNOTSUPP); on their
// NICs an entry for a DSCP in the application table means trust in DSCP.
func (c *Client) SetTrust(ctx context.Context, ifname string, order ...Selector) error {
	r, err := TrustRequest(ifname, order)
	if err != nil {
		return err
	}
	return c.Do(ctx, r)
}

// SetDCBX sets who negotiates. The refusal of a driver is a positive status, and so is ice's answer that nothing had to
// change: ErrReadBack, as for all of them.
func (c *Client) SetDCBX(ctx context.Context, ifname string, mode DCBX) error {
	r, err := DCBXRequest(ifname, mode)
	if err != nil {
		return err
	}
	return c.Do(ctx, r)
}
