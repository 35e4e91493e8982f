package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/lab"
)

func (a *app) newLabTell() *cobra.Command {
	c := &cobra.Command{
		Use:   "tell DIR DEVICE COMMAND...",
		Short: "Do something to an emulated host: jobs, faults, firmware that rules, a reboot",
		Long: `Do something to a host of the lab that runs with directory DIR, from outside of it: let programs have queue pairs, let a
driver acknowledge a setting and not do it, let firmware rule QoS, change a setting as another tool would, cut the host
off, move its clock, start it anew. show says what happened to it: flaps, queue pairs that were killed, transactions
that nobody confirmed. help lists all commands. How a driver behaves without any of that is its own: an E810 takes its
port down for a code point, a ConnectX its link for PFC, a Broadcom adapter neither.`,
		Example: "  fabricctl lab tell lab host1 help\n  fabricctl lab tell lab host1 show\n  fabricctl lab tell lab host1 jobs rdma0 16\n" +
			"  fabricctl lab tell lab host1 wrong rdma0 pfc lie\n  fabricctl lab tell lab host1 set rdma0 app dscp 26 5",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fail(exitUsage, "for example: fabricctl lab tell lab host1 show", "lab tell wants a directory, a device and a command")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			return a.runLabTell(ctx, args[0], args[1], args[2:], json)
		},
	}
	c.Flags().SetInterspersed(false) // -1 and - are words of a command
	return c
}

type labTellJSON struct {
	Schema string   `json:"schema"`
	Device string   `json:"device"`
	Said   []string `json:"said"`
}

func (a *app) runLabTell(ctx context.Context, dir, device string, words []string, json bool) error {
	said, err := lab.Tell(ctx, dir, device, words...)
	if err != nil {
		return err
	}
	if json {
		lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
		if said == "" {
			lines = []string{}
		}
		return a.printJSON(labTellJSON{"fabricctl/lab-tell/v1", device, lines})
	}
	_, err = a.sys.out.Write([]byte(said))
	return err
}
