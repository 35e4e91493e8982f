package hostssh

import (
	"context"
	"fmt"

	"github.com/fabricctl/fabricctl/drivers"
)

var _ drivers.Trier = (*stock)(nil)

// Try asks the host who the user is, with sudo too where that is not root: fabricctl-host needs root to change links.
// id changes nothing; sudo writes a line into the host's log. That fabricctl-host can be copied there is not tried,
// since the copy would stay.
func (s *stock) Try(ctx context.Context) ([]drivers.Trial, error) {
	const who, root = "id -u", "sudo -n id -u"
	t := drivers.Trial{Operation: "become root", For: "apply", Verdict: drivers.Allowed, How: fmt.Sprintf("ran %q: the user is root", who)}
	id, err := s.line(ctx, who)
	if err != nil {
		return nil, err
	}
	if id != "0" {
		out, err := s.client.Run(ctx, root, nil)
		if err != nil {
			return nil, err
		}
		t.How = fmt.Sprintf("ran %q", root)
		if out.Exit != 0 {
			t.Verdict, t.Answer = drivers.Refused, oneLine(out.Stderr)
		}
	}
	return []drivers.Trial{
		{Operation: "read links and nccl.conf", For: "plan", Verdict: drivers.Allowed, How: "read them with ip and cat"},
		t,
		{Operation: "copy fabricctl-host", For: "apply", Verdict: drivers.NotTried, How: "the copy would stay there, in " + DefaultDir + " of the user's home directory"},
	}, nil
}
