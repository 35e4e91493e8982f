package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

type renderJSON struct {
	Schema  string           `json:"schema"`
	Devices []renderedDevice `json:"devices"`
}

type renderedDevice struct {
	Device string `json:"device"`
	OS     string `json:"os"`
	Text   string `json:"text"`
}

func (a *app) newRender() *cobra.Command {
	var only []string
	var out string
	c := &cobra.Command{
		Use:   "render",
		Short: "Write each device's configuration in its own language",
		Long: `Render the model: one file per device, holding what the model asks for and nothing else. No device is contacted,
and what is observed is rendered too. Same input, same bytes.`,
		Example: "  fabricctl render -f fabric.yaml --device leaf1\n  fabricctl render -f fabric.yaml --out rendered/",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			formats := []string{"text", "json"}
			if out != "" {
				formats = formats[:1] // the files are the result
			}
			json, err := a.wants(formats...)
			if err != nil {
				return err
			}
			if err := outDir("--out", out); err != nil {
				return err
			}
			m, err := a.mustLoad(ctx)
			if err != nil {
				return err
			}
			res, err := renderAll(m.net, only)
			switch {
			case err != nil:
				return err
			case out != "":
				return writeRendered(a.sys.err, out, res)
			case json:
				return a.printJSON(renderJSON{"fabricctl/render/v1", res})
			}
			for _, d := range res {
				if len(res) > 1 {
					fmt.Fprintf(a.sys.out, "==> %s (%s)\n", d.Device, d.OS)
				}
				fmt.Fprint(a.sys.out, d.Text)
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&only, "device", nil, "only these devices")
	c.Flags().StringVar(&out, "out", "", "write one file per device into this directory")
	return c
}

// renderAll renders the named devices, or all of them.
func renderAll(net *intent.Net, only []string) ([]renderedDevice, error) {
	for _, n := range only {
		if net.Device(n) == nil {
			return nil, noDevice(net, n)
		}
	}
	var res []renderedDevice
	var shared render.Shared
	for i := range net.Devices {
		dev := &net.Devices[i]
		if len(only) > 0 && !slices.Contains(only, dev.Name) || dev.State == intent.Absent {
			continue
		}
		d := render.ByOS(dev.OS())
		if d == nil {
			return nil, fmt.Errorf("%s: there is no dialect for platform %s", dev.Name, dev.Platform)
		}
		c, _ := shared.Render(d, dev, render.Facts{})
		res = append(res, renderedDevice{dev.Name, d.OS, string(d.Text(c))})
	}
	return res, nil
}

func writeRendered(talk io.Writer, dir string, res []renderedDevice) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range res {
		path := filepath.Join(dir, d.Device+render.ByOS(d.OS).Ext)
		if err := os.WriteFile(path, []byte(d.Text), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(talk, "%s written to %s\n", diag.Count(len(res), "file"), dir)
	return nil
}
